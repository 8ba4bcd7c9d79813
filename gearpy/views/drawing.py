"""Draws the graph of an application as SVG without scripts, for notebooks.

All of it is in the colour of the text around it, with four colours that can be told apart on light
and on dark ground and by the colour-blind; what they say is said by dots, width or words, too.
"""

from collections.abc import Sequence
from typing import Final

from gearpy.views import text
from gearpy.views.layout import HEIGHT, WIDTH, Point, layout_of
from gearpy.views.model import AppView, EdgeView, ProcessorFigures

BLUE: Final = "#3a7fc4"
AMBER: Final = "#c98019"
RED: Final = "#d04a5b"

_NAME_MAX: Final = 20  # Characters that fit into a box.
_ABOUT_MAX: Final = 32
_LINE_MIN: Final = 1.5
_LINE_MAX: Final = 7.0
_BUSY: Final = 0.9  # A processor that works for more of its time than this is full.
_STYLE: Final = (
    "<style>.gp-g{font-family:system-ui,sans-serif;font-size:12px;fill:currentColor;"
    "font-variant-numeric:tabular-nums}.gp-g .n{font-size:14px;font-weight:600}"
    ".gp-g .q{opacity:.68}.gp-g .r{font-size:13px;text-anchor:end}</style>"
)


def graph_svg(view: AppView) -> str:
    if not view.processors:
        return ""
    edges = [(each.source, each.target) for each in view.edges]
    layout = layout_of([each.id for each in view.processors], edges)
    fastest = max((each.rate or 0 for each in view.edges), default=0)
    lines = (
        _edge(each, layout.lines[each.source, each.target], fastest)
        for each in sorted(view.edges, key=lambda edge: edge.backpressured)
    )
    accent = view.headline.processor if view.headline.level in {"warn", "bad"} else None
    boxes = (
        _box(each, layout.boxes[each.id], is_accent=each.id == accent, has_run=bool(view.at_ms))
        for each in view.processors
    )
    label = f"the data flow of {view.name}, {text.plural(len(view.processors), 'processor')}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gp-g" role="img" '
        f'aria-label="{text.html(label)}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}">{_STYLE}'
        f"{''.join([*lines, *boxes])}</svg>"
    )


def _edge(edge: EdgeView, points: Sequence[Point], fastest: float) -> str:
    share = (edge.rate or 0) / fastest if fastest else 0
    width = _LINE_MIN + (_LINE_MAX - _LINE_MIN) * share
    style = f'stroke="currentColor" stroke-opacity=".35" stroke-width="{width:.1f}"'
    if edge.backpressured:
        style = f'stroke="{AMBER}" stroke-width="3" stroke-dasharray="6 4"'
    says = [edge.partitioner, text.rate(edge.rate)]
    says += ["back-pressure"] * edge.backpressured + ["holds the clock"] * edge.holds_clock
    title = text.html(", ".join(each for each in says if each))
    (x, y), *rest = points
    path = f"M{x:.0f} {y:.0f}"
    for to_x, to_y in rest:
        middle = (x + to_x) / 2
        path += f"C{middle:.0f} {y:.0f} {middle:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
        x, y = to_x, to_y
    return f'<path d="{path}" fill="none" {style}><title>{title}</title></path>'


def _box(processor: ProcessorFigures, place: Point, *, is_accent: bool, has_run: bool) -> str:
    x, y = place
    frame = f'stroke="{RED}" stroke-width="2.5"' if is_accent else _FRAME
    count = text.count(processor.records_in) if has_run else ""
    rate = text.rate(processor.records_in_rate) or count
    tasks = text.plural(processor.parallelism, "task")
    steps = len(processor.steps)
    about = f"{processor.role} · {tasks}{f' · {steps} steps' if steps > 1 else ''}"
    parts = [
        f"<title>{text.html(_title(processor))}</title>",
        _FACE.format(x=x, y=y, frame=frame),
        _words(x + 12, y + 23, "n", _cut(processor.name, _NAME_MAX)),
        _words(x + 12, y + 41, "q", _cut(about, _ABOUT_MAX)),
        _spark(processor.rates, (x + 12, y + 50), (WIDTH - 110, 18)),
        _words(x + WIDTH - 12, y + 65, "r", rate),
        _bar(processor, x + 12, y + 79, WIDTH - 24),
    ]
    return f"<g>{''.join(parts)}</g>"


_FACE: Final = (
    f'<rect x="{{x:.0f}}" y="{{y:.0f}}" width="{WIDTH}" height="{HEIGHT}" rx="8" '
    'fill="currentColor" fill-opacity=".03" {frame}/>'
)
_FRAME: Final = 'stroke="currentColor" stroke-opacity=".25" stroke-width="1.2"'


def _title(processor: ProcessorFigures) -> str:
    """Return all that is known of a processor, as lines that show when it is pointed at."""
    facts = {
        "steps": " → ".join(processor.steps),
        "records": f"{processor.records_in:,} in, {processor.records_out:,} out",
        "busy": text.share(processor.busy),
        "held back": text.share(processor.backpressured),
        "watermark": text.watermark(processor.watermark_ms),
        "late": text.count(processor.late) if processor.late else "",
        "quarantined": text.count(processor.quarantined) if processor.quarantined else "",
    }
    lines = [f"{name}: {fact}" for name, fact in facts.items() if fact]
    clock = ["it holds the clock"] if processor.holds_clock else []
    return "\n".join([f"{processor.name} ({processor.id})", *lines, *clock])


def _bar(processor: ProcessorFigures, x: float, y: float, width: float) -> str:
    """Draw the share of its time that it is busy, and behind it that it is held back."""
    back = _rect(x, y, width, "currentColor", ".12")
    if processor.busy is None:
        return back
    busy = min(1.0, processor.busy)
    held = min(1.0 - busy, processor.backpressured or 0.0)
    colour = RED if busy >= _BUSY else BLUE
    bars = [_rect(x, y, width * busy, colour, "1")]
    if held > 0:
        bars.append(_rect(x + width * busy, y, width * held, AMBER, ".7"))
    return back + "".join(bars)


def _rect(x: float, y: float, width: float, colour: str, opacity: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="5" rx="2.5" '
        f'fill="{colour}" fill-opacity="{opacity}"/>'
    )


def _spark(values: Sequence[float], at: Point, box: Point) -> str:
    if len(values) < 2:  # noqa: PLR2004 - one point is no line
        return ""
    (x, y), (width, height), top = at, box, max(values) or 1.0
    step = width / (len(values) - 1)
    points = (
        f"{x + n * step:.1f},{y + height * (1 - value / top):.1f}" for n, value in enumerate(values)
    )
    return f'<polyline points="{" ".join(points)}" fill="none" stroke="{BLUE}" stroke-width="1.4"/>'


# -- pieces ------------------------------------------------------------------------------------


def _words(x: float, y: float, kind: str, words: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{text.html(words)}</text>'


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"
