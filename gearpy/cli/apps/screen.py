"""The drawing of ``gear top``: views of a cluster and an application as lines of a terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gearpy.core.master.registry import TERMINAL
from gearpy.views import text
from gearpy.views.model import AppView, Headline, Level, OverviewView, ProcessorFigures

#: What processors can be sorted by; the first is the order in which data flows.
ORDERS: Final = ("flow", "rate", "busy", "behind")
Order: TypeAlias = str

_STYLES: Final[Mapping[Level, str]] = {
    "ok": "green",
    "info": "cyan",
    "warn": "yellow",
    "bad": "bold red",
}
_MARKS: Final[Mapping[Level, str]] = {"ok": "✓", "info": "·", "warn": "!", "bad": "✗"}
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_BAR: Final = 8  # Characters.
_FULL: Final = 0.9  # Who works for more of its time than this is full.
_WIDE: Final = 110  # Characters from which on there is room for sparklines and latency.
_SPARK: Final = 16
_EVENTS_MAX: Final = 5
_LEGEND: Final = "what the sentence above is about; waits: for what is behind it"


def application_screen(view: AppView, *, width: int, order: Order = ORDERS[0]) -> RenderableType:
    until = view.finished_ms or view.at_ms
    tasks = sum(len(each.tasks) for each in view.executors)
    facts = [
        f"application {view.app_id}",
        text.duration(max(0, until - view.submitted_ms)),
        text.plural(len(view.executors), "executor")
        + ("" if view.of_actors else f", {text.plural(tasks, 'task')}"),
    ]
    facts += [f"user {view.user}"] if view.user else []
    head, level = _foreign(view.name, style="bold"), view.headline.level
    parts: list[RenderableType] = [
        Text.assemble(head, f"  {view.status}  ", (text.printable(" · ".join(facts)), "dim")),
        _foreign(f"{_MARKS[level]} {view.headline.text}", style=_STYLES[level]),
    ]
    parts += [_foreign(f"  {view.headline.advice}")] if view.headline.advice else []
    parts += [Text(text.past(view.known_ms), style="yellow")] if view.known_ms else []
    parts.append(Text())
    parts += [] if view.of_actors else [*_totals(view)]
    if view.processors:
        parts += [Text(), _processors(view, width, order)]
        if level in {"warn", "bad"} and view.headline.processor is not None:
            parts.append(Text(f"{_MARKS[level]} {_LEGEND}", style="dim"))
    for title, lines in (
        (
            "metrics of the program",
            [
                f"{each.name}: {text.metric(each)} ({processor.name})"
                for processor in view.processors
                for each in processor.metrics
            ],
        ),
        ("alerts", [f"{each.rule}: {each.text}" for each in view.alerts]),
        (
            "latest",
            [f"{text.moment(each.at_ms)}  {each.text}" for each in view.events[-_EVENTS_MAX:]],
        ),
    ):
        if lines:
            parts += [Text(), Text(title, style="bold"), *map(_foreign, lines)]
    return Group(*parts)


def overview_screen(view: OverviewView, *, width: int) -> RenderableType:
    slots, free = sum(each.slots for each in view.workers), sum(w.free_slots for w in view.workers)
    living = [each for each in view.applications if each.status not in TERMINAL]
    head = (
        f"cluster {view.cluster_id} · {text.plural(len(view.workers), 'worker')} · "
        f"{slots - free} of {text.plural(slots, 'slot')} in use · "
        f"{text.plural(len(living), 'living application')}"
    )
    parts: list[RenderableType] = [Text(head, style="bold")]
    parts += [
        _foreign(
            f"{_MARKS[each.level]} {each.rule}: {each.name}: {each.text}",
            style=_STYLES[each.level],
        )
        for each in view.alerts
    ]
    if not view.applications:
        start = "no applications yet: start one with 'gear app submit PROGRAM'"
        return Group(*parts, Text(), Text(start))
    ended = [each for each in view.applications if each.status in TERMINAL]
    rows = [*living, *reversed(ended)]
    table = _table()
    for name in ("id", "name", "status", "in/s", "out/s", "behind"):
        is_text = name in {"name", "status"}
        table.add_column(
            name,
            justify="left" if is_text else "right",
            no_wrap=True,
            overflow="ellipsis",
            max_width=width // 4 if name == "name" else None,
        )
    table.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    for one in rows:
        level = one.headline.level
        table.add_row(
            Text(str(one.id)),
            _foreign(one.name),
            Text(one.status),
            Text(text.rate(one.records_in_rate)),
            Text(text.rate(one.records_out_rate)),
            Text(text.span(one.lag_ms)),
            _foreign(f"{_MARKS[level]} {one.headline.text}", style=_STYLES[level]),
        )
    return Group(*parts, Text(), table)


# -- an application ----------------------------------------------------------------------------


def _totals(view: AppView) -> Iterator[Text]:
    totals = view.totals
    latency = [text.span(each) for each in (totals.latency_p50_ms, totals.latency_p99_ms)]
    yield _facts(
        {
            "in": text.rate(totals.records_in_rate),
            "out": text.rate(totals.records_out_rate),
            "latency p50, p99": ", ".join(latency) if all(latency) else "",
            "behind": text.span(totals.lag_ms),
        }
    )
    counts = {
        "late": totals.late,
        "skipped": totals.skipped,
        "quarantined": totals.quarantined,
        "restarts": totals.restarts,
    }
    yield _facts(
        {
            "records": f"{totals.records_in:,} in, {totals.records_out:,} out",
            **{name: text.count(number) for name, number in counts.items() if number},
        }
    )
    stored = max((each.stored_ms for each in view.epochs), default=0)
    yield _facts(
        {
            "epoch": f"{totals.epoch or 'none yet'}",
            "stored": f"{text.span(max(0, view.at_ms - stored))} ago" if stored else "",
            "took": text.span(totals.epoch_ms),
            "size": text.size(totals.epoch_bytes),
            "state": text.size(totals.state_bytes),
            "clock": text.watermark(totals.clock_ms),
        }
    )


def _facts(facts: Mapping[str, str]) -> Text:
    line = Text()
    for name, fact in facts.items():
        if fact:
            line.append("   " if line else "")
            line.append(f"{name} ", style="dim")
            line.append(text.printable(fact))
    return line


def _processors(view: AppView, width: int, order: Order) -> Table:
    is_wide = width >= _WIDE
    has_shares = any(one.busy is not None for one in view.processors)
    table = _table()
    table.add_column("", width=1)
    table.add_column("step", ratio=1, no_wrap=True, overflow="ellipsis", min_width=12)
    for name in ("tasks", "records/s", "behind", "late"):
        table.add_column(name, justify="right", no_wrap=True)
    if has_shares:
        table.add_column("busy", no_wrap=True, min_width=_BAR + 6)
        table.add_column("waits", justify="right", no_wrap=True)
    if is_wide:
        table.add_column("lately", no_wrap=True, min_width=_SPARK)
        table.add_column("p99", justify="right", no_wrap=True)
        table.add_column("state", justify="right", no_wrap=True)
    read = [each.watermark_ms for each in view.processors if each.role == "source"]
    newest = max((each for each in read if each is not None), default=None)
    behind = {
        each.id: None
        if newest is None or each.watermark_ms is None
        else max(0, newest - each.watermark_ms)
        for each in view.processors
    }
    keys: dict[str, Callable[[ProcessorFigures], float]] = {
        "rate": lambda each: each.records_in_rate or 0,
        "busy": lambda each: each.busy or 0,
        "behind": lambda each: behind[each.id] or 0,
    }
    shown = list(view.processors)
    if order in keys:
        shown.sort(key=keys[order], reverse=True)
    for one in shown:
        cells = _row(one, behind[one.id], view.headline, has_shares=has_shares, is_wide=is_wide)
        table.add_row(*cells)
    return table


def _row(
    each: ProcessorFigures,
    behind_ms: int | None,
    headline: Headline,
    *,
    has_shares: bool,
    is_wide: bool,
) -> Iterator[Text]:
    is_named = each.id == headline.processor and headline.level in {"warn", "bad"}
    style = "bold red" if is_named else ""
    yield Text(_MARKS[headline.level] if is_named else "", style="bold red")
    yield _foreign(each.name, style=style)
    yield Text(str(each.parallelism))
    yield Text(text.rate(each.records_in_rate) or text.count(each.records_in))
    yield Text(text.span(behind_ms))
    yield Text(text.count(each.late) if each.late else "")
    if has_shares:
        full = "red" if (each.busy or 0) >= _FULL else ""
        yield Text(f"{bar(each.busy)} {text.share(each.busy):>5}", style=full)
        yield Text(text.share(each.backpressured) if each.backpressured else "", style="yellow")
    if is_wide:
        yield Text(spark(each.rates[-_SPARK:]), style="blue")
        yield Text(text.span(each.latency_p99_ms))
        yield Text(text.size(each.state_bytes))


# -- both --------------------------------------------------------------------------------------


def bar(part: float | None) -> str:
    """Return a share as a bar of eight characters; blanks if it is not known."""
    eighths = round(min(1.0, max(0.0, part or 0.0)) * _BAR * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)


def spark(values: Sequence[float]) -> str:
    """Return values as a line of blocks; the highest is full."""
    top = max(values, default=0.0)
    if top <= 0:
        return _SPARKS[0] * len(values)
    last = len(_SPARKS) - 1
    return "".join(_SPARKS[round(max(0.0, value) / top * last)] for value in values)


def _table() -> Table:
    return Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")


def _foreign(words: str, style: str = "") -> Text:
    return Text(text.printable(words), style=style)
