"""The pictures of the documentation: what programs really put out, drawn as Mermaid or as a table.

Nothing in a picture is put there by hand but the records: the windows, firings and pairs are the
results of an application that was fed with them. Written anew in the pages, each below the comment
that names it, by::

    .venv/bin/python -m tests.docs.pictures
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import gearpy as gp
from gearpy.testing import FlowDriver, ManualSource

PAGES: Final = Path(__file__).parents[2] / "docs"

_SECOND_MS: Final = 1000
#: A picture in a page: the comment that names it, and what is drawn up to the next empty line
#: behind a table, or the end of a block.
_PLACE: Final = re.compile(
    r"<!-- picture: ([\w-]+) -->\n\n(?:```mermaid\n.*?\n```\n|(?:\|[^\n]*\n)+)", re.DOTALL
)


class Record(NamedTuple):
    key: str
    value: int
    at_s: float


class Watermark(NamedTuple):
    at_s: float


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
    """Draw the windows of two keys on a time line, with the sum of each."""
    results = _results(_RECORDS, lambda stream: _sums(stream, windows))
    lines = ["gantt", f"title {title}", "dateFormat X", "axisFormat %s s"]
    for key in ("ada", "bo"):
        lines.append(f"section {key}")
        lines += [
            f"{record.value} :milestone, {record.at_s:g}, {record.at_s:g}"
            for record in _RECORDS
            if record.key == key
        ]
        mine = [result for result in results if result.key == key]
        lines += map(_window_bar, sorted(mine, key=lambda each: (each.start, each.end)))
    return _mermaid(lines)


def _window_bar(result: Any) -> str:
    start_s, end_s = result.start // _SECOND_MS, result.end // _SECOND_MS
    since = f" (since {start_s} s)" if start_s < 0 else ""  # The time line begins at 0.
    return f"sum {result.value}{since} :{max(start_s, 0)}, {end_s}"


def firings_picture(title: str, variants: Mapping[str, gp.Windows]) -> str:
    """Make a table of records as they come, the watermark, and what a window puts out for each."""
    lines = [f"| {title} |" + "".join(f" {name} |" for name in variants)]
    lines.append("|---|" + "---|" * len(variants))
    fired = [_fired(windows) for windows in variants.values()]
    for number, step in enumerate(_STEPS):
        comes = f"at {step.at_s:g} s: **{step.value}**" if isinstance(step, Record) else None
        cells = [", ".join(map(_shown, each[number])) for each in fired]
        lines.append(
            f"| {comes or f'watermark {step.at_s:g} s'} |" + "".join(f" {cell} |" for cell in cells)
        )
    return "\n".join(lines) + "\n"


def join_picture(title: str, streams: Mapping[str, Sequence[Record]], how: Any) -> str:
    (left_name, lefts), (right_name, rights) = streams.items()
    lines = ["---", f"title: {title}", "---", "flowchart LR"]
    for name, records in streams.items():
        lines.append(f"subgraph {name}")
        lines += [f'{_node(name, each)}["{each.value} at {each.at_s:g} s"]' for each in records]
        lines.append("end")
    for left, right in _pairs(lefts, rights, how):
        if left is not None and right is not None:
            lines.append(f"{_node(left_name, left)} --- {_node(right_name, right)}")
        elif left is not None:
            node = _node(left_name, left)
            lines.append(f"{node} --- {node}alone((alone))")
        else:
            node = _node(right_name, right)
            lines.append(f"{node}alone((alone)) --- {node}")
    return _mermaid(lines)


def _node(stream: str, record: Record) -> str:
    return f"{stream}{record.value}"


def _mermaid(lines: Iterable[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"]) + "\n"


def _shown(result: Any) -> str:
    if result.retracts:
        return f"not {result.value}"
    return f"{result.value} {result.timing}"


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


def page_with_pictures(text: str) -> str:
    return _PLACE.sub(lambda found: f"<!-- picture: {found[1]} -->\n\n{PICTURES[found[1]]()}", text)


if __name__ == "__main__":
    for page in PAGES.rglob("*.md"):
        page.write_text(page_with_pictures(page.read_text(encoding="utf-8")), encoding="utf-8")
