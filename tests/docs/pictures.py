"""The pictures of the documentation: what programs really put out, drawn as SVG.

Nothing in a picture is put there by hand but the records: the windows, firings and pairs are the
results of an application that was fed with them. Written anew by::

    .venv/bin/python -m tests.docs.pictures
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

import gearpy as gp
from gearpy.testing import FlowDriver, ManualSource

__all__ = ["FOLDER", "PICTURES", "pictures"]

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"

_SECOND_MS: Final = 1000
_LEFT: Final = 74  # Where time 0 is, in pixels.
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.dim { fill: var(--dim); }
.small { font-size: 11px; }
.head { font-weight: 600; }
.on-dot { fill: var(--back); font-size: 10px; font-weight: 600; text-anchor: middle; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.back { fill: var(--back); }
.axis { stroke: var(--line); }
.watermark { stroke: var(--late); stroke-width: 2; fill: none; }
.a { --own: var(--first); }
.b { --own: var(--second); }
.c { --own: var(--late); }
.dot { fill: var(--own); }
.span { fill: var(--own); fill-opacity: 0.14; stroke: var(--own); }
.more { fill: var(--own); fill-opacity: 0.06; stroke: var(--own); stroke-dasharray: 4 3; }
.pair { stroke: var(--own); stroke-width: 1.5; }
svg { --back: #ffffff; --ink: #1f2328; --dim: #59636e; --line: #d1d9e0;
  --first: #0969da; --second: #bc4c00; --late: #8250df; }
@media (prefers-color-scheme: dark) {
  svg { --back: #0d1117; --ink: #f0f6fc; --dim: #9198a1; --line: #3d444d;
    --first: #58a6ff; --second: #f0883e; --late: #bc8cff; }
}
"""


class Record(NamedTuple):
    """A record that is sent."""

    key: str
    value: int
    at_s: float


class Watermark(NamedTuple):
    """A promise that is made."""

    at_s: float


@dataclass(slots=True)
class Canvas:
    """Gathers shapes; times in seconds become places."""

    seconds: int
    scale: float
    parts: list[str] = field(default_factory=list)

    def x(self, at_s: float) -> float:
        """Return where a time is."""
        return round(_LEFT + min(at_s, self.seconds + 2) * self.scale, 1)

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        """Write a text."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>')

    def dot(self, record: Record, y: float, kind: str) -> None:
        """Draw a record with its value."""
        x = self.x(record.at_s)
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="9" class="dot {kind}"/>')
        self.text(x, y + 4, str(record.value), "on-dot")

    def span(self, start_s: float, end_s: float, y: float, height: float, kind: str) -> None:
        """Draw a rectangle from one time to another."""
        x, width = self.x(start_s), self.x(end_s) - self.x(start_s)
        # Neighbours stand a little apart.
        shape = f'x="{x + 1:g}" y="{y:g}" width="{width - 2:g}" height="{height:g}" rx="5"'
        self.parts.append(f'<rect {shape} class="{kind}"/>')

    def line(self, x: float, y: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line."""
        shape = f'x1="{x:g}" y1="{y:g}" x2="{x2:g}" y2="{y2:g}"'
        self.parts.append(f'<line {shape} class="{kind}"/>')

    def axis(self, y: float, top: float, *, every: int = 10) -> None:
        """Draw the times, and a line up from each, behind all else."""
        before, self.parts = self.parts, []
        for at_s in range(0, self.seconds + 1, every):
            self.line(self.x(at_s), top, self.x(at_s), y, "axis")
            self.text(self.x(at_s), y + 16, f"{at_s} s", "dim small middle")
        self.parts += before

    def svg(self, title: str, width: float, height: float) -> str:
        """Return the picture."""
        size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
                f"<title>{escape(title)}</title>",
                f"<style>{_STYLE}</style>",
                f'<rect width="{width:g}" height="{height:g}" class="back"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


# -- what is drawn -----------------------------------------------------------------------------

_RECORDS: Final = (
    Record("a", 1, 4),
    Record("b", 2, 11),
    Record("a", 3, 14),
    Record("a", 2, 22),
    Record("b", 1, 27),
    Record("b", 4, 36),
    Record("a", 5, 41),
    Record("b", 1, 49),
)

#: Two are early enough, one is late but allowed, and one is too late.
_STEPS: Final[tuple[Record | Watermark, ...]] = (
    Record("a", 1, 12),
    Record("a", 2, 25),
    Record("a", 4, 37),
    Watermark(30),
    Watermark(40),
    Record("a", 3, 33),
    Watermark(50),
    Record("a", 5, 28),
)


def windows_picture(title: str, windows: gp.Windows) -> str:
    """Draw the windows of two keys, with the sum of each."""
    results = _results(_RECORDS, lambda stream: _sums(stream, windows))
    canvas, y = Canvas(60, 10), 34.0
    canvas.text(14, 20, title, "head")
    top = y
    for key in ("a", "b"):
        rows = _stacked([result for result in results if result.key == key])
        canvas.text(14, y + 19, f"key {key}")
        for record in _RECORDS:
            if record.key == key:
                canvas.dot(record, y + 14, key)
        for row in rows:
            y += 30
            for result in row:
                _draw_window(canvas, result, y)
        y += 44
    canvas.axis(y, top)
    return canvas.svg(title, 714, y + 26)


def firings_picture(title: str, variants: Mapping[str, gp.Windows]) -> str:
    """Draw records as they come, the watermark, and what one window puts out at each step."""
    canvas, top, height = Canvas(60, 6), 52.0, 34
    canvas.text(14, 20, title, "head")
    bottom = top + height * len(_STEPS)
    some = next(iter(variants.values()))
    assert isinstance(some, gp.TumblingWindows)
    end_s = some.size_ms / _SECOND_MS
    canvas.span(0, end_s, top, bottom - top, "span a")
    lateness_s = some.allowed_lateness_ms / _SECOND_MS
    if lateness_s:
        canvas.span(end_s, end_s + lateness_s, top, bottom - top, "more a")
        canvas.text(canvas.x(end_s) + 3, top - 6, "lateness", "dim small")
    canvas.text(canvas.x(0), top - 6, "window", "dim small")
    _draw_steps(canvas, top, height)
    canvas.axis(bottom, top)
    left = canvas.x(canvas.seconds) + 36
    for name, windows in variants.items():
        canvas.text(left, top - 6, name, "head")
        for number, fired in enumerate(_fired(windows)):
            text = ", ".join(map(_shown, fired)) or "-"
            canvas.text(left, top + height * number + 21, text, "" if fired else "dim")
        left += max(150, 8 * len(name) + 24)
    return canvas.svg(title, left, bottom + 26)


def join_picture(title: str, lefts: Sequence[Record], rights: Sequence[Record], how: Any) -> str:
    """Draw two streams, and a line for each pair that comes out."""
    pairs = _pairs(lefts, rights, how)
    canvas = Canvas(60, 10)
    canvas.text(14, 20, title, "head")
    ys = {"left": 62.0, "right": 142.0}
    canvas.axis(176, 36)
    for name, y in ys.items():
        canvas.text(14, y + 5, name)
    for left, right in pairs:
        if left is not None and right is not None:
            places = canvas.x(left.at_s), ys["left"], canvas.x(right.at_s), ys["right"]
            canvas.line(*places, f"pair {left.key}")
        else:
            alone, side = (left, "left") if left is not None else (right, "right")
            assert alone is not None
            above = ys[side] - 14 if side == "left" else ys[side] + 26
            canvas.text(canvas.x(alone.at_s), above, "alone", "dim small middle")
    for records, side, kind in ((lefts, "left", "a"), (rights, "right", "b")):
        for record in records:
            canvas.dot(record, ys[side], kind)
    return canvas.svg(title, 714, 202)


def _draw_window(canvas: Canvas, result: Any, y: float) -> None:
    start_s, end_s = result.start / _SECOND_MS, result.end / _SECOND_MS
    canvas.span(start_s, end_s, y, 24, f"span {result.key}")
    x = max(canvas.x(start_s), _LEFT - 18)
    canvas.text(x + 7, y + 17, f"{result.value}")


def _draw_steps(canvas: Canvas, top: float, height: float) -> None:
    """Draw records from top to bottom as they come, and the watermark between them."""
    at_s, places = 0.0, [f"{canvas.x(0):g},{top:g}"]
    for number, step in enumerate(_STEPS):
        y = top + height * number + height / 2
        if isinstance(step, Record):
            canvas.text(14, y + 4, "record", "dim small")
            canvas.dot(step, y, "b")
        else:
            canvas.text(14, y + 4, "watermark", "dim small")
            places += [f"{canvas.x(at_s):g},{y:g}", f"{canvas.x(step.at_s):g},{y:g}"]
            at_s = step.at_s
    places.append(f"{canvas.x(at_s):g},{top + height * len(_STEPS):g}")
    canvas.parts.append(f'<polyline points="{" ".join(places)}" class="watermark"/>')


def _shown(result: Any) -> str:
    if result.retracts:
        return f"not {result.value}"
    return f"{result.value} {result.timing}"


def _stacked(results: Iterable[Any]) -> list[list[Any]]:
    """Put windows into rows, so that none covers another."""
    rows: list[list[Any]] = []
    for result in sorted(results, key=lambda each: (each.start, each.end)):
        for row in rows:
            if row[-1].end <= result.start:
                row.append(result)
                break
        else:
            rows.append([result])
    return rows


# -- what is run -------------------------------------------------------------------------------


def _sums(stream: Any, windows: gp.Windows) -> Any:
    by_key = stream.key_by(lambda record: record.key).window(windows)
    return by_key.sum(lambda record: record.value)


def _results(records: Iterable[Record], steps: Callable[[Any], Any]) -> list[Any]:
    """Return what comes out of a stream of records, in order of event time."""
    app, results = gp.StreamApp("picture"), list[Any]()
    steps(app.read(_source(records))).write(gp.memory(results))
    gp.run(app)
    return results


def _source(records: Iterable[Record]) -> gp.Source:
    return gp.collection(gp.Message(record, int(record.at_s * _SECOND_MS)) for record in records)


def _fired(windows: gp.Windows) -> list[list[Any]]:
    """Return what the window puts out at each step."""
    app, source, results = gp.StreamApp("picture"), ManualSource(), list[Any]()
    _sums(app.read(source), windows).write(gp.memory(results))
    flow, fired = FlowDriver(app), list[list[Any]]()
    for step in _STEPS:
        if isinstance(step, Record):
            flow.send(source, step, timestamp=int(step.at_s * _SECOND_MS))
        else:
            flow.watermark(source, int(step.at_s * _SECOND_MS))
        fired.append(results[:])
        results.clear()
    flow.stop()
    return fired


def _pairs(lefts: Iterable[Record], rights: Iterable[Record], how: Any) -> list[Any]:
    app, results = gp.StreamApp("picture"), list[Any]()
    left, right = (
        app.read(_source(records), name=name).key_by(lambda record: record.key)
        for name, records in (("left", lefts), ("right", rights))
    )
    how(left, right).write(gp.memory(results))
    gp.run(app)
    return sorted(results, key=str)


def _pair(left: Record | None, right: Record | None) -> tuple[Record | None, Record | None]:
    return left, right


# -- all pictures ------------------------------------------------------------------------------

_LEFTS: Final = (Record("a", 1, 10), Record("a", 2, 24), Record("a", 3, 47))
_RIGHTS: Final = (Record("a", 1, 4), Record("a", 2, 13), Record("a", 3, 22), Record("a", 4, 33))

_MINUTE: Final = gp.tumbling("40s")
_EARLY: Final = _MINUTE.triggering(gp.every(count=2)).allowing("10s")

PICTURES: Final[Mapping[str, Callable[[], str]]] = {
    "tumbling": lambda: windows_picture('sums in gp.tumbling("20s")', gp.tumbling("20s")),
    "offset": lambda: windows_picture(
        'sums in gp.tumbling("20s", offset="5s")', gp.tumbling("20s", offset="5s")
    ),
    "sliding": lambda: windows_picture(
        'sums in gp.sliding("20s", every="10s")', gp.sliding("20s", every="10s")
    ),
    "session": lambda: windows_picture('sums in gp.session("10s")', gp.session("10s")),
    "count": lambda: windows_picture("sums in gp.count_window(2)", gp.count_window(2)),
    "firings": lambda: firings_picture(
        "one key in a window of 40 s",
        {
            "at the close": _MINUTE,
            "early: every(count=2)": _MINUTE.triggering(
                gp.after_watermark(early=gp.every(count=2))
            ),
        },
    ),
    "late": lambda: firings_picture(
        "one key in a window of 40 s",
        {
            'allowing("10s")': _MINUTE.allowing("10s"),
            'allowing("10s").accumulating()': _MINUTE.allowing("10s").accumulating(),
        },
    ),
    "accumulation": lambda: firings_picture(
        'sums in gp.tumbling("40s").triggering(gp.every(count=2)).allowing("10s")',
        {
            "discarding": _EARLY.discarding(),
            "accumulating": _EARLY.accumulating(),
            "retracting": _EARLY.retracting(),
        },
    ),
    "join-interval": lambda: join_picture(
        'left.join_interval(right, before="10s", after="5s", how="outer")',
        _LEFTS,
        _RIGHTS,
        lambda left, right: left.join_interval(
            right, before="10s", after="5s", how="outer", combine=_pair
        ),
    ),
    "join-window": lambda: join_picture(
        'left.join(right, gp.tumbling("20s"), how="outer")',
        _LEFTS,
        _RIGHTS,
        lambda left, right: left.join(right, gp.tumbling("20s"), how="outer", combine=_pair),
    ),
    "join-asof": lambda: join_picture(
        'left.join_asof(right, tolerance="10s")',
        _LEFTS,
        _RIGHTS,
        lambda left, right: left.join_asof(right, tolerance="10s", combine=_pair),
    ),
}


def pictures() -> dict[str, str]:
    """Return all pictures by the names of their files."""
    return {f"{name}.svg": draw() for name, draw in PICTURES.items()}


if __name__ == "__main__":
    for file_name, text in pictures().items():
        (FOLDER / file_name).write_text(text, encoding="utf-8")
