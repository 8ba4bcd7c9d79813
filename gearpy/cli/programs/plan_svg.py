"""A physical plan as a picture, which every browser shows: SVG, without any other program."""

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap
from typing import Final

from gearpy.cli.programs.plan_graph import edge_label, processor_lines
from gearpy.cli.programs.plan_layout import Placed, Point, layered
from gearpy.dsl.plan.describe import PhysicalPlan

__all__ = ["svg"]

_CHAR: Final = 7.3  # Width of a character, of a font in which all have one.
_LINE: Final = 17.0
_PAD: Final = 12.0
_MARGIN: Final = 16.0
_BETWEEN_LAYERS: Final = 56.0
_CHARS_MAX: Final = 56
_STYLE: Final = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2937}"
    ".head{font-weight:bold}.kept{fill:#0f766e}.label{fill:#4b5563;font-size:11px}"
    ".box{fill:#f8fafc;stroke:#334155;stroke-width:1.2}"
    ".columns{fill:#eff6ff}.line{fill:none;stroke:#64748b;stroke-width:1.4}"
    ".back{fill:#fff}"
)
_BEGIN: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
    'viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}">'
)
_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
    'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>'
)


def svg(plan: PhysicalPlan) -> str:
    """Return a picture: boxes of processors, and edges with what travels on them."""
    texts = {each.number: _folded(list(processor_lines(each))) for each in plan.processors}
    layout = layered(
        {each.number: each.level for each in plan.processors},
        [(edge.source, edge.target) for edge in plan.edges],
        {number: _size(lines) for number, lines in texts.items()},
        between_layers=_BETWEEN_LAYERS,
    )
    labels = [edge_label(edge) for edge in plan.edges]
    sides = max((len(each) for each in labels), default=0) * _CHAR / 2
    margin = _MARGIN + max(0.0, sides - layout.width / 2)
    width, height = layout.width + 2 * margin, layout.height + 2 * _MARGIN
    parts = [
        _BEGIN.format(width=width, height=height, left=-margin, top=-_MARGIN),
        f"<title>{escape(plan.name)}</title>",
        f"<style>{_STYLE}</style>",
        _TIP,
        *(_line(points) for points in layout.lines),
        *(
            _label(points, text, place)
            for place, (points, text) in enumerate(zip(layout.lines, labels, strict=True))
        ),
    ]
    for each in plan.processors:
        is_columns = any(step.takes == "columns" for step in each.steps)
        parts += _box(layout.boxes[each.number], texts[each.number], is_columns=is_columns)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _folded(lines: Sequence[str]) -> list[str]:
    """Return lines that are no longer than a box should be wide."""
    folded: list[str] = []
    for line in lines:
        indent = "    " if line.startswith(" ") else "  "
        folded += wrap(line, _CHARS_MAX, subsequent_indent=indent) or [""]
    return folded


def _size(lines: Sequence[str]) -> Point:
    return max(map(len, lines)) * _CHAR + 2 * _PAD, len(lines) * _LINE + 2 * _PAD


def _box(box: Placed, lines: Sequence[str], *, is_columns: bool) -> Iterator[str]:
    kind = "box columns" if is_columns else "box"
    yield (
        f'<rect class="{kind}" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6"/>'
    )
    for number, line in enumerate(lines):
        style = "head" if number == 0 else "kept" if line.startswith("  keeps") else ""
        shown = escape(line)
        yield (
            f'<text class="{style}" xml:space="preserve" x="{box.x + _PAD:.1f}" '
            f'y="{box.y + _PAD + (number + 0.75) * _LINE:.1f}">{shown}</text>'
        )


def _line(points: Sequence[Point]) -> str:
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for number, (to_x, to_y) in enumerate(rest):
        if number % 2 == 0:  # From a layer to the next; else straight through one.
            half = (y + to_y) / 2
            path += f"C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}"
        else:
            path += f"L{to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return f'<path class="line" marker-end="url(#tip)" d="{path}"/>'


def _label(points: Sequence[Point], text: str, place: int) -> str:
    """Return what stands at the last part of a line; neighbours stand at different heights."""
    (from_x, from_y), (to_x, to_y) = points[-2:]
    part = (0.35, 0.6)[place % 2]
    x, y = from_x + (to_x - from_x) * part, from_y + (to_y - from_y) * part
    half = len(text) * _CHAR * 0.46
    return (
        f'<rect class="back" x="{x - half:.1f}" y="{y - 7:.1f}" width="{2 * half:.1f}" '
        f'height="14"/><text class="label" text-anchor="middle" x="{x:.1f}" y="{y + 4:.1f}">'
        f"{escape(text)}</text>"
    )
