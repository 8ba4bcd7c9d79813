"""Clicks of a shop: what a line of a file says, and which lines are none.

A line is a JSON object: ``{"at": "2026-03-02T19:04:11.052Z", "user": "u00017", "page": "p003",
"kind": "view"}``; of a purchase also ``"cents": 1250``.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard

import gearpy as gp

__all__ = ["KINDS", "NO_TIME_MS", "Bad", "Click", "is_click", "parse", "time_of"]

KINDS: Final = ("view", "purchase")

#: No shop had clicks before, none can have any after; a clock that says so is wrong.
EARLIEST_MS: Final = 1_735_689_600_000  # 2025-01-01T00:00:00Z
LATEST_MS: Final = 1_893_456_000_000  # 2030-01-01T00:00:00Z

#: Event time of a line that has none. It is older than all others, so it holds nothing back.
NO_TIME_MS: Final = 0

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


@gp.register_record
class Click(NamedTuple):
    """Somebody has looked at a page, or bought what it offers."""

    user: str
    page: str
    kind: str
    cents: int


@gp.register_record
class Bad(NamedTuple):
    """A line that is no click, and why."""

    line: str
    why: str


Parsed: TypeAlias = Click | Bad


def parse(line: str) -> Parsed:
    """Return the click that a line tells of, or what is wrong with the line."""
    try:
        return _click(json.loads(line))
    except (ValueError, TypeError, KeyError) as error:
        return Bad(line, f"{type(error).__name__}: {error}")


def is_click(parsed: Parsed) -> TypeGuard[Click]:
    """Tell whether a line was understood."""
    return type(parsed) is Click


def time_of(line: str) -> int:
    """Return when it happened, in ms since 1970; `NO_TIME_MS` if the line does not tell.

    A time that cannot be is none. One click of the year 2099 would otherwise be a promise that
    nothing older comes, and make all the others late.
    """
    try:
        return _time_ms(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return NO_TIME_MS


def _click(fields: dict[str, Any]) -> Click:
    _time_ms(fields)
    click = Click(fields["user"], fields["page"], fields["kind"], fields.get("cents", 0))
    if type(click.user) is not str or type(click.page) is not str or type(click.cents) is not int:
        raise TypeError(f"of wrong types: {click}")
    if click.kind not in KINDS:
        raise ValueError(f"the kind is {click.kind!r}")
    if click.cents < 0 or (click.cents > 0) != (click.kind == "purchase"):
        raise ValueError(f"a {click.kind} for {click.cents} cents")
    return click


def _time_ms(fields: dict[str, Any]) -> int:
    time_ms = (datetime.fromisoformat(fields["at"]) - _EPOCH) // _MS
    if not EARLIEST_MS <= time_ms < LATEST_MS:
        raise ValueError(f"the clock says {fields['at']}")
    return time_ms
