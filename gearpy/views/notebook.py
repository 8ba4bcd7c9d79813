"""Applications and records for notebooks: small pieces of HTML, without scripts or server.

Everything of a user's is escaped. Colours are those of the text around, so that a piece fits a
light and a dark notebook.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.views import text
from gearpy.views.drawing import AMBER, BLUE, RED, graph_svg
from gearpy.views.model import AppView, Level

_COLOURS: Final[Mapping[Level, str]] = {"ok": BLUE, "info": BLUE, "warn": AMBER, "bad": RED}
_WORDS: Final[Mapping[Level, str]] = {"ok": "", "info": "", "warn": "look: ", "bad": "bad: "}
_ROWS_MAX: Final = 100
_COLUMNS_MAX: Final = 20
_CELL_CHARS_MAX: Final = 120
#: Fields of results of windows and joins that are event times.
_TIMES: Final = frozenset({"start", "end"})
_BOX: Final = '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5">'
_QUIET: Final = 'style="opacity:.68"'


def app_html(view: AppView) -> str:
    title = f"<b>{text.html(view.name)}</b> <span {_QUIET}>{text.html(view.status)}</span>"
    headline = view.headline
    colour = _COLOURS[headline.level]
    advice = f": {headline.advice}" if headline.advice else ""
    words = text.html(f"{_WORDS[headline.level]}{headline.text}")
    parts = [
        f"<div>{title}</div>",
        (
            f'<div style="border-left:3px solid {colour};padding-left:8px;margin:4px 0">'
            f"{words}<span {_QUIET}>{text.html(advice)}</span></div>"
        ),
        _scrolling(graph_svg(view)),
    ]
    facts = " · ".join(fact for fact in _facts(view) if fact)
    return f"{_BOX}{''.join(parts)}<div {_QUIET}>{text.html(facts)}</div></div>"


def plan_html(view: AppView, *, about: Sequence[str] = ()) -> str:
    """Return a program that has not run: its data flow, and lines about it."""
    title = f"<b>{text.html(view.name)}</b> <span {_QUIET}>plan</span>"
    lines = "".join(f"<div {_QUIET}>{text.html(each)}</div>" for each in about)
    return f"{_BOX}<div>{title}</div>{_scrolling(graph_svg(view))}{lines}</div>"


def mistakes_html(name: str, mistakes: Sequence[str]) -> str:
    wrong = "".join(f'<div style="color:{RED}">{text.html(each)}</div>' for each in mistakes)
    return f"{_BOX}<div><b>{text.html(name)}</b> cannot run:</div>{wrong}</div>"


def records_html(records: Sequence[Any]) -> str:
    shown = [*map(_cells_of, records[:_ROWS_MAX])]
    names = list(dict.fromkeys(name for row in shown for name in row))
    left_out = [
        f"{len(records) - len(shown):,} more records" if len(records) > len(shown) else "",
        f"{len(names) - _COLUMNS_MAX} more columns" if len(names) > _COLUMNS_MAX else "",
    ]
    names = names[:_COLUMNS_MAX]
    head = "".join(f'<th style="text-align:left">{text.html(name)}</th>' for name in names)
    body = "".join(
        f"<tr>{''.join(_cell(row[n]) if n in row else '<td></td>' for n in names)}</tr>"
        for row in shown
    )
    note = ", ".join(each for each in left_out if each) or text.plural(len(records), "record")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{_BOX}{_scrolling(table)}<div {_QUIET}>{text.html(note)}</div></div>"


# -- an application ----------------------------------------------------------------------------


def _facts(view: AppView) -> Iterable[str]:
    totals = view.totals
    yield _with_rate("in", totals.records_in, totals.records_in_rate)
    yield _with_rate("out", totals.records_out, totals.records_out_rate)
    for name, count in (
        ("late", totals.late),
        ("skipped", totals.skipped),
        ("in quarantine", totals.quarantined),
        ("restarts", totals.restarts),
    ):
        yield f"{count:,} {name}" if count else ""
    if totals.latency_p99_ms is not None:
        yield f"latency p99 {text.span(totals.latency_p99_ms)}"
    if totals.epoch:
        yield f"epoch {totals.epoch}"
    if totals.state_bytes:
        yield f"state {text.size(totals.state_bytes)}"
    if view.at_ms:
        yield text.moment(view.at_ms)


def _with_rate(name: str, count: int, rate: float | None) -> str:
    return f"{count:,} {name}" + ("" if rate is None else f" ({text.rate(rate)})")


# -- records -----------------------------------------------------------------------------------


def _cells_of(record: Any) -> Mapping[str, Any]:
    if isinstance(record, Mapping):
        return {str(name): value for name, value in record.items()}
    if names := getattr(record, "_fields", None):
        cells = {name: getattr(record, name) for name in names}
        for name in _TIMES & cells.keys():
            if type(cells[name]) is int and cells[name] not in {MIN_MS, MAX_MS}:
                cells[name] = text.time(cells[name])
        return cells
    if is_dataclass(record) and not isinstance(record, type):
        return {each.name: getattr(record, each.name) for each in fields(record)}
    return {"value": record}


def _cell(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td style="text-align:right">{text.html(str(value))}</td>'
    shown = value if isinstance(value, str) else repr(value)
    cut = shown if len(shown) <= _CELL_CHARS_MAX else f"{shown[: _CELL_CHARS_MAX - 1]}…"
    return f'<td style="text-align:left">{text.html(cut)}</td>'


def _scrolling(inner: str) -> str:
    return f'<div style="overflow-x:auto">{inner}</div>' if inner else ""
