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
_LEFT: Final = 90  # Where time 0 is, in pixels.
#: Colours by their use. They stand in each rule as they are: a viewer that does not know variables
#: of CSS, as many previews and converters, would draw everything black.
_LIGHT: Final = {
    "back": "#ffffff",
    "ink": "#1f2328",
    "dim": "#59636e",
    "line": "#d1d9e0",
    "a": "#0969da",
    "b": "#bc4c00",
    "c": "#8250df",
}
_DARK: Final = {
    "back": "#0d1117",
    "ink": "#f0f6fc",
    "dim": "#9198a1",
    "line": "#3d444d",
    "a": "#58a6ff",
    "b": "#f0883e",
    "c": "#bc8cff",
}
_SHAPES: Final = """
text { font: 13px system-ui, sans-serif; }
.small { font-size: 11px; }
.head { font-weight: 600; }
.on-dot { font-size: 10px; font-weight: 600; text-anchor: middle; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.watermark { stroke-width: 2; fill: none; }
.span { fill-opacity: 0.14; }
.more { fill-opacity: 0.06; stroke-dasharray: 4 3; }
.pair { stroke-width: 1.5; }
"""


def _colours(palette: Mapping[str, str]) -> str:
    """Write the rules that give each class its colour."""
    rules = [
        f"text {{ fill: {palette['ink']}; }}",
        f".dim {{ fill: {palette['dim']}; }}",
        f".on-dot, .back {{ fill: {palette['back']}; }}",
        f".axis {{ stroke: {palette['line']}; }}",
        f".watermark {{ stroke: {palette['c']}; }}",
    ]
    for kind in ("a", "b", "c"):
        colour = palette[kind]
        rules.append(f".dot.{kind} {{ fill: {colour}; }}")
        rules.append(f".span.{kind}, .more.{kind} {{ fill: {colour}; stroke: {colour}; }}")
        rules.append(f".pair.{kind} {{ stroke: {colour}; }}")
    return "\n".join(rules)


_STYLE: Final = (
    f"{_SHAPES}{_colours(_LIGHT)}\n@media (prefers-color-scheme: dark) {{\n{_colours(_DARK)}\n}}\n"
)


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

#: Those of the code beside the pictures, in docs/operators/windows.md.
_RECORDS: Final = (
    Record("ada", 1, 4),
    Record("bo", 2, 11),
    Record("ada", 3, 14),
    Record("ada", 2, 22),
    Record("bo", 1, 27),
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
    for key, kind in (("ada", "a"), ("bo", "b")):
        rows = _stacked([result for result in results if result.key == key])
        canvas.text(14, y + 19, key)
        for record in _RECORDS:
            if record.key == key:
                canvas.dot(record, y + 14, kind)
        for row in rows:
            y += 30
            for result in row:
                _draw_window(canvas, result, y, kind)
        y += 44
    canvas.axis(y, top)
    return canvas.svg(title, 730, y + 26)


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


def join_picture(title: str, streams: Mapping[str, Sequence[Record]], how: Any) -> str:
    """Draw two streams, and a line for each pair that comes out."""
    (left_name, lefts), (right_name, rights) = streams.items()
    pairs = _pairs(lefts, rights, how)
    canvas = Canvas(60, 10)
    canvas.text(14, 20, title, "head")
    ys = {"left": 62.0, "right": 142.0}
    names = {"left": left_name, "right": right_name}
    canvas.axis(176, 36)
    for side, y in ys.items():
        canvas.text(14, y + 5, names[side])
    for left, right in pairs:
        if left is not None and right is not None:
            places = canvas.x(left.at_s), ys["left"], canvas.x(right.at_s), ys["right"]
            canvas.line(*places, "pair a")
        else:
            alone, side = (left, "left") if left is not None else (right, "right")
            assert alone is not None
            above = ys[side] - 14 if side == "left" else ys[side] + 26
            canvas.text(canvas.x(alone.at_s), above, "alone", "dim small middle")
    for records, side, kind in ((lefts, "left", "a"), (rights, "right", "b")):
        for record in records:
            canvas.dot(record, ys[side], kind)
    return canvas.svg(title, 730, 202)


def _draw_window(canvas: Canvas, result: Any, y: float, kind: str) -> None:
    start_s, end_s = result.start / _SECOND_MS, result.end / _SECOND_MS
    canvas.span(start_s, end_s, y, 24, f"span {kind}")
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
    steps(app.read(_source(records))).write(gp.to_list(results))
    gp.run(app)
    return results


def _source(records: Iterable[Record]) -> gp.Source:
    return gp.collection(gp.Message(record, int(record.at_s * _SECOND_MS)) for record in records)


def _fired(windows: gp.Windows) -> list[list[Any]]:
    """Return what the window puts out at each step."""
    app, source, results = gp.StreamApp("picture"), ManualSource(), list[Any]()
    _sums(app.read(source), windows).write(gp.to_list(results))
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
    how(left, right).write(gp.to_list(results))
    gp.run(app)
    return sorted(results, key=str)


def _pair(left: Record | None, right: Record | None) -> tuple[Record | None, Record | None]:
    return left, right


# -- all pictures ------------------------------------------------------------------------------

#: Those of the code beside the pictures, in docs/operators/joins.md.
_ORDERS: Final = (Record("1", 1, 10), Record("2", 2, 24), Record("3", 3, 47))
_PAYMENTS: Final = (Record("1", 1, 13), Record("4", 4, 33), Record("2", 2, 41))
_TRADES: Final = (Record("tea", 2, 7), Record("tea", 1, 30))
_QUOTES: Final = (Record("tea", 3, 1), Record("tea", 4, 6), Record("tea", 5, 9))

_MINUTE: Final = gp.tumbling("40s")
_EARLY: Final = _MINUTE.triggering(gp.every(count=2)).allowed_lateness("10s")

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
            'allowed_lateness("10s")': _MINUTE.allowed_lateness("10s"),
            'allowed_lateness("10s").accumulating()': _MINUTE.allowed_lateness(
                "10s"
            ).accumulating(),
        },
    ),
    "accumulation": lambda: firings_picture(
        'sums in gp.tumbling("40s").triggering(gp.every(count=2)).allowed_lateness("10s")',
        {
            "discarding": _EARLY.discarding(),
            "accumulating": _EARLY.accumulating(),
            "retracting": _EARLY.retracting(),
        },
    ),
    "join-interval": lambda: join_picture(
        'orders.join_interval(payments, after="30s", how="left")',
        {"orders": _ORDERS, "payments": _PAYMENTS},
        lambda left, right: left.join_interval(right, after="30s", how="left", combine=_pair),
    ),
    "join-window": lambda: join_picture(
        'orders.join(payments, gp.tumbling("20s"), how="outer")',
        {"orders": _ORDERS, "payments": _PAYMENTS},
        lambda left, right: left.join(right, gp.tumbling("20s"), how="outer", combine=_pair),
    ),
    "join-asof": lambda: join_picture(
        'trades.join_asof(quotes, tolerance="10s")',
        {"trades": _TRADES, "quotes": _QUOTES},
        lambda left, right: left.join_asof(right, tolerance="10s", combine=_pair),
    ),
}


def pictures() -> dict[str, str]:
    """Return all pictures by the names of their files."""
    return {f"{name}.svg": draw() for name, draw in PICTURES.items()}


if __name__ == "__main__":
    for file_name, text in pictures().items():
        (FOLDER / file_name).write_text(text, encoding="utf-8")
