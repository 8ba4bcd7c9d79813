"""A physical plan as a drawing of other programs: Mermaid, or the DOT language of Graphviz."""

from collections.abc import Iterator

from gearpy.cli.programs.plan_text import form_of, order_text
from gearpy.cli.terminal import text
from gearpy.dsl.plan.describe import PhysicalPlan, PlannedEdge, PlannedProcessor

__all__ = ["dot", "edge_label", "mermaid", "processor_lines"]


def mermaid(plan: PhysicalPlan) -> str:
    """Return a flowchart."""
    lines = ["flowchart TD"]
    for each in plan.processors:
        label = "<br>".join(map(_for_mermaid, processor_lines(each)))
        lines.append(f'    p{each.number}["{label}"]')
    for edge in plan.edges:
        label = _for_mermaid(edge_label(edge))
        lines.append(f'    p{edge.source} -->|"{label}"| p{edge.target}')
    return "\n".join(lines) + "\n"


def dot(plan: PhysicalPlan) -> str:
    """Return a directed graph."""
    lines = [
        f"digraph {_for_dot(plan.name)} {{",
        '    node [shape=box, style=rounded, fontname="sans-serif", fontsize=11];',
        '    edge [fontname="sans-serif", fontsize=10];',
    ]
    for each in plan.processors:
        label = "".join(f"{_escaped(line)}\\l" for line in processor_lines(each))
        lines.append(f'    p{each.number} [label="{label}"];')
    lines += [
        f"    p{edge.source} -> p{edge.target} [label={_for_dot(edge_label(edge))}];"
        for edge in plan.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


def processor_lines(processor: PlannedProcessor) -> Iterator[str]:
    """Yield what stands in the box of a processor."""
    yield f"[{processor.number}] {text.plural(processor.parallelism, 'task')}"
    for step in processor.steps:
        yield f"{text.printable(step.name)}: {form_of(step)}"
        if step.order:
            yield f"  {order_text(step)}"
        if step.keeps:
            yield f"  keeps {step.keeps}"


def edge_label(edge: PlannedEdge) -> str:
    """Return what stands at an edge."""
    return f"{edge.spread}, as {edge.form}"


def _for_mermaid(line: str) -> str:
    coded = line.replace("&", "&amp;").replace('"', "&quot;")
    return coded.replace("<", "&lt;").replace(">", "&gt;").replace("`", "&#96;")


def _for_dot(line: str) -> str:
    return f'"{_escaped(line)}"'


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')
