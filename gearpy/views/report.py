"""Writes the report of a run: one HTML file with all that is known, to keep or to send on.

It loads nothing and runs nothing: drawings are SVG, styles are in it, and text of users is text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gearpy.messages.client import QuarantinedRecord
from gearpy.messages.metrics import SeriesData
from gearpy.messages.summaries import ErrorCard
from gearpy.views import text
from gearpy.views.drawing import AMBER, BLUE, VIOLET, Line, chart_svg, graph_svg
from gearpy.views.model import AppView, ProcessorView, TaskFigures

_TASKS_MAX: Final = 200  # Of a processor with more the slowest are shown.
_RECORDS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a report is made of.

    Attributes:
        series: of its last minutes; None if nobody has them.
        missing: what could not be got, and why, a sentence each.
    """

    view: AppView
    cluster_id: str = ""
    version: str = ""
    series: SeriesData | None = None
    processors: Sequence[ProcessorView] = ()
    config: Mapping[str, str] | None = None
    quarantined: Sequence[QuarantinedRecord] = ()
    missing: Sequence[str] = ()


def report_html(report: Report) -> str:
    """Return the whole file."""
    view = report.view
    title = f"{view.name} · gearpy"
    body = "\n".join(part for part in _parts(report) if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text.html(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _parts(report: Report) -> Iterator[str]:
    view = report.view
    yield _head(report)
    yield _headline(view)
    if graph := graph_svg(view):
        note = "bar: share of its time that it is busy, then held back · dotted: the path that "
        note += "holds the clock, or back-pressure"
        yield f'<section class="card wide">{graph}<p class="quiet">{text.html(note)}</p></section>'
    yield _charts(report.series)
    yield _section("Totals", f'<div class="columns">{_facts(_totals(view))}</div>')
    yield _section("Alerts", _list(f"{each.rule}: {each.text}" for each in view.alerts))
    yield _errors(view)
    yield _section("Processors", _processors(view))
    for each in report.processors:
        yield _tasks(each)
    yield _section("Metrics of the program", _metrics(view))
    yield _section("Executors", _executors(view))
    yield _section("Epochs", _epochs(view))
    yield _section("Consumers", _consumers(view))
    yield _section("Guarantees", _list(view.guarantees))
    yield _section("Events", _events(view))
    yield _quarantine(report.quarantined)
    yield _section("Configuration", _facts(report.config or {}))
    yield _section("What is missing", _list(report.missing))


def _head(report: Report) -> str:
    view = report.view
    until = view.finished_ms or view.at_ms
    tasks = sum(each.parallelism for each in view.processors)
    facts = [
        f"application {view.app_id}",
        f"cluster {report.cluster_id}" if report.cluster_id else "",
        f"user {view.user}" if view.user else "",
        f"submitted {text.moment(view.submitted_ms)}",
        f"finished {text.moment(view.finished_ms)}" if view.finished_ms else "",
        text.duration(max(0, until - view.submitted_ms)),
        f"{text.plural(len(view.executors), 'executor')}" if view.executors else "",
        text.plural(tasks, "task") if tasks else "",
        f"gearpy {report.version}" if report.version else "",
        f"seen {text.moment(view.at_ms)}",
        text.past(view.known_ms) if view.known_ms else "",
    ]
    line = " · ".join(each for each in facts if each)
    return (
        f'<h1>{text.html(view.name)} <span class="status">{view.status}</span></h1>'
        f'<p class="quiet">{text.html(line)}</p>'
    )


def _headline(view: AppView) -> str:
    headline = view.headline
    advice = f"<br>{text.html(headline.advice)}" if headline.advice else ""
    return f'<p class="headline {headline.level}"><b>{text.html(headline.text)}</b>{advice}</p>'


# -- charts ------------------------------------------------------------------------------------


def _charts(series: SeriesData | None) -> str:
    if series is None or not series.at_ms:
        return ""
    sizes = [None if each is None else each / 1e3 for each in series.epoch_bytes]
    charts = [
        (
            "Throughput",
            "/s",
            [
                Line("in", series.records_in_rate, BLUE),
                Line("out", series.records_out_rate, VIOLET),
            ],
        ),
        (
            "Latency",
            "ms",
            [
                Line("p50", series.latency_p50_ms, BLUE),
                Line("p99", series.latency_p99_ms, AMBER),
            ],
        ),
        ("Watermark lag", "ms", [Line("lag", series.watermark_lag_ms, AMBER)]),
        ("Epochs", "ms", [Line("time", series.epoch_ms, VIOLET)]),
        ("Size of an epoch", "kB", [Line("size", sizes, BLUE)]),
    ]
    events = [(each.at_ms, each.text) for each in series.events]
    cards = "".join(_chart(name, unit, series.at_ms, lines, events) for name, unit, lines in charts)
    return f'<section class="charts">{cards}</section>'


def _chart(
    name: str,
    unit: str,
    at_ms: Sequence[int],
    lines: Sequence[Line],
    events: Sequence[tuple[int, str]],
) -> str:
    """Draw one, with the newest value of each line; nothing if no value is known."""
    if all(value is None for line in lines for value in line.values):
        return ""
    keys = " · ".join(
        f'<span style="color:{line.colour}">{text.html(line.name)}</span> '
        f"<b>{text.html(_newest(line))}</b>"
        for line in lines
    )
    drawn = chart_svg(name, at_ms, lines, events=events)
    return (
        f'<div class="card"><p><span class="quiet">{text.html(name)}, {unit}</span> '
        f'<span class="right">{keys}</span></p>{drawn}</div>'
    )


def _newest(line: Line) -> str:
    known = [value for value in line.values if value is not None]
    return text.short(known[-1]) if known else "not known"


# -- tables ------------------------------------------------------------------------------------


def _totals(view: AppView) -> dict[str, str]:
    totals = view.totals
    return {
        "records": f"{totals.records_in:,} in, {totals.records_out:,} out",
        "rate in": text.rate(totals.records_in_rate),
        "rate out": text.rate(totals.records_out_rate),
        "latency p50": text.span(totals.latency_p50_ms),
        "latency p99": text.span(totals.latency_p99_ms),
        "late": text.count(totals.late),
        "skipped": text.count(totals.skipped),
        "quarantined": text.count(totals.quarantined),
        "restarts": text.count(totals.restarts),
        "clock": text.watermark(totals.clock_ms),
        "behind": text.span(totals.lag_ms),
        "epoch": str(totals.epoch or "none"),
        "size of it": text.size(totals.epoch_bytes),
        "state": text.size(totals.state_bytes),
        "waits for": view.waits or "",
    }


_PROCESSOR: Final = (
    "#id",
    "name",
    "role",
    "#tasks",
    "#in",
    "#out",
    "#rate",
    "#busy",
    "#held back",
    "#behind",
    "#latency p99",
    "#state",
    "#late",
    "#quarantined",
    "steps",
)


def _processors(view: AppView) -> str:
    rows = [
        (
            str(each.id),
            f"{each.name}{' (holds the clock)' if each.holds_clock else ''}",
            each.role,
            str(each.parallelism),
            text.count(each.records_in),
            text.count(each.records_out),
            text.rate(each.records_out_rate if each.role == "source" else each.records_in_rate),
            text.share(each.busy),
            text.share(each.backpressured),
            text.span(each.watermark_lag_ms),
            text.span(each.latency_p99_ms),
            text.size(each.state_bytes),
            text.count(each.late),
            text.count(each.quarantined),
            " → ".join(each.steps),
        )
        for each in view.processors
    ]
    return _table(_PROCESSOR, rows)


def _metrics(view: AppView) -> str:
    rows = [
        (each.name, each.kind, processor.name, text.metric(each))
        for processor in view.processors
        for each in processor.metrics
    ]
    return _table(("metric", "kind", "processor", "#value"), rows) if rows else ""


_TASK: Final = (
    "task",
    "#executor",
    "#in",
    "#out",
    "#rate",
    "#busy",
    "#held back",
    "#queue",
    "#state",
    "#late",
    "why",
)


def _tasks(processor: ProcessorView) -> str:
    shown = sorted(processor.tasks, key=lambda each: -(each.records_in_rate or 0))[:_TASKS_MAX]
    if len(processor.tasks) < 2:  # noqa: PLR2004 - one task is the processor
        return ""
    skew = f", the fastest {processor.skew:.1f} times the mean" if processor.skew else ""
    summary = f"{processor.name}: {text.plural(len(processor.tasks), 'task')}{skew}"
    table = _table(_TASK, [_task_row(each) for each in shown])
    return f'<details class="card"><summary>{text.html(summary)}</summary>{table}</details>'


def _task_row(task: TaskFigures) -> tuple[str, ...]:
    return (
        task.task,
        "" if task.executor_id is None else str(task.executor_id),
        text.count(task.records_in),
        text.count(task.records_out),
        text.rate(task.records_in_rate),
        text.share(task.busy),
        text.share(task.backpressured),
        "" if task.queue_records is None else text.count(task.queue_records),
        text.size(task.state_bytes),
        text.count(task.late),
        task.why or "",
    )


def _executors(view: AppView) -> str:
    columns = (
        "#id",
        "#launch",
        "status",
        "#worker",
        "#pid",
        "#tasks",
        "#memory",
        "#cores",
        "address",
    )
    rows = [
        (
            str(each.id),
            str(each.launch),
            each.status,
            str(each.worker_id),
            str(each.pid or ""),
            str(len(each.tasks)),
            text.size(each.rss_bytes),
            "" if each.cpu is None else f"{each.cpu:.2f}",
            each.address,
        )
        for each in view.executors
    ]
    return _table(columns, rows)


def _epochs(view: AppView) -> str:
    columns = (
        "#region",
        "#epoch",
        "stored",
        "#size",
        "#kept",
        "#given up",
        "#fell back",
        "last given up",
    )
    rows = [
        (
            str(each.region),
            str(each.epoch or ""),
            text.moment(each.stored_ms),
            text.size(each.size_bytes),
            text.count(each.kept),
            text.count(each.aborted),
            text.count(each.fallbacks),
            each.last_abort,
        )
        for each in view.epochs
    ]
    return _table(columns, rows)


def _consumers(view: AppView) -> str:
    columns = ("sink", "consumer", "#batch", "#rows", "#rows/s", "#waiting", "since", "trouble")
    rows = [
        (
            each.sink,
            each.report.name,
            text.count(each.report.batch_id),
            text.count(each.report.rows),
            text.rate(each.report.rows_per_s),
            text.count(each.report.waiting_rows),
            text.moment(each.report.waiting_since_ms),
            each.report.trouble,
        )
        for each in view.consumers
    ]
    return _table(columns, rows)


def _events(view: AppView) -> str:
    rows = [(text.moment(each.at_ms), each.kind, each.text) for each in reversed(view.events)]
    return _table(("time", "what", "text"), rows)


# -- errors ------------------------------------------------------------------------------------


def _errors(view: AppView) -> str:
    cards = []
    if view.cause is not None:
        ended = "the application failed"
        cards.append(_card(view.app_id, ended, text.moment(view.finished_ms), view.cause))
    cards += [
        _card(view.app_id, each.what, text.moment(each.at_ms), each.error)
        for each in reversed(view.failures)
    ]
    return _section("Errors", "".join(cards))


def _card(app_id: int, what: str, when: str, card: ErrorCard) -> str:
    facts = {
        "in": f"{card.operator}{f' (task {card.task})' if card.task else ''}",
        "at": card.source,
        "line": card.source_line,
        "record": card.record,
        "time": "" if card.event_time_ms is None else text.watermark(card.event_time_ms),
        "run again": text.run_again(app_id, card),
    }
    traceback = ""
    if card.traceback:
        traceback = (
            f"<details><summary>traceback</summary><pre>{text.html(card.traceback)}</pre></details>"
        )
    return (
        f'<div class="error"><p><b>{text.html(card.cause)}</b></p>'
        f'<p class="quiet">{text.html(when)} {text.html(what)}</p>{_facts(facts)}{traceback}</div>'
    )


def _quarantine(records: Sequence[QuarantinedRecord]) -> str:
    columns = ("#number", "put aside", "in", "cause", "record")
    rows = [
        (
            str(each.number),
            text.moment(each.at_ms),
            each.error.operator,
            each.error.cause,
            each.error.record,
        )
        for each in records[:_RECORDS_MAX]
    ]
    return _section("Quarantine", _table(columns, rows))


# -- HTML --------------------------------------------------------------------------------------


def _section(title: str, body: str) -> str:
    return f'<section class="card"><h2>{text.html(title)}</h2>{body}</section>' if body else ""


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f"<dt>{text.html(name)}</dt><dd>{text.html(fact)}</dd>"
        for name, fact in facts.items()
        if fact
    )
    return f"<dl>{rows}</dl>" if rows else ""


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{text.html(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table without the columns that are empty; a leading ``#`` means numbers."""
    if not rows:
        return ""
    used = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    numbers = {at for at in used if columns[at].startswith("#")}

    def cell(kind: str, at: int, words: str) -> str:
        return f"<{kind}{_NUMBER if at in numbers else ''}>{text.html(words)}</{kind}>"

    heads = "".join(cell("th", at, columns[at].lstrip("#")) for at in used)
    lines = ("".join(cell("td", at, row[at]) for at in used) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


_NUMBER: Final = ' class="n"'


_STYLE: Final = """
:root{color-scheme:light dark;--ground:#fafbfb;--card:#fff;--ink:#17202b;--line:#dfe4e8;
--bad:#fbeff1;--warn:#fdf5e6;--ok:#edf6f0;--info:#edf3fa}
@media (prefers-color-scheme:dark){:root{--ground:#11161b;--card:#171d23;--ink:#dde4ec;
--line:#2b343d;--bad:#3a1f25;--warn:#362b17;--ok:#182b20;--info:#1a2735}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:14px/1.5 system-ui,sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:1240px;margin:0 auto;padding:20px 16px 60px}
h1{font-size:24px;margin:0}h2{font-size:15px;margin:0 0 8px}
.status{font-size:13px;font-weight:400;border:1px solid var(--line);border-radius:9px;
padding:1px 9px;vertical-align:middle}
.quiet{opacity:.7;font-size:13px;margin:4px 0}.right{float:right}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px;
margin:12px 0}
.wide{overflow-x:auto}.headline{border-left:4px solid;border-radius:4px;padding:10px 14px;
margin:12px 0}
.headline.bad{background:var(--bad);border-color:#d04a5b}
.headline.warn{background:var(--warn);border-color:#c98019}
.headline.ok{background:var(--ok);border-color:#2f8f5b}
.headline.info{background:var(--info);border-color:#3a7fc4}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(290px,1fr));gap:12px}
.charts .card{margin:0}.charts p{margin:0 0 4px}.charts svg{width:100%;height:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th{text-align:left;font-weight:500;opacity:.7;white-space:nowrap}
th,td{padding:4px 12px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
.n{text-align:right;white-space:nowrap}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0}
dt{opacity:.7}dd{margin:0;overflow-wrap:anywhere}ul{margin:0;padding-left:18px}
.error{border-top:1px solid var(--line);padding:8px 0}.error p{margin:0;overflow-wrap:anywhere}
.columns dl{display:block;columns:3 240px}.columns dt{float:left;clear:left;width:130px}
.columns dd{break-inside:avoid}
pre{overflow-x:auto;font-size:12px}summary{cursor:pointer}
@media print{body{background:#fff;color:#000}.card{break-inside:avoid}}
"""
