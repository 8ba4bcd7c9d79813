"""The same answers by plain Python: all clicks in lists, and loops over them.

Knows neither gearpy nor Spark, so whatever they do wrong shows. It only shares with them what is
asked: 10 s, half an hour, ten pages, and 30 s until a click is late.
"""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

__all__ = ["Answers", "Rows", "answers"]

T = TypeVar("T")

WINDOW: Final = timedelta(seconds=10)
HOUR: Final = timedelta(hours=1)
PAUSE: Final = timedelta(minutes=30)
LATE_AFTER: Final = timedelta(seconds=30)
TOP: Final = 10
YEARS: Final = range(2025, 2030)
NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)

#: Rows of a table, each with how often it is there.
Rows: TypeAlias = Counter[tuple[Any, ...]]
#: Categories of pages, and their titles.
Pages: TypeAlias = dict[str, dict[str, str]]


class Visit(NamedTuple):
    """A click with its time, and whether it came too late for the windows."""

    at: datetime
    user: str
    page: str
    cents: int
    is_late: bool


class Answers(NamedTuple):
    """What the tables must have, and how many lines went elsewhere."""

    tables: dict[str, Rows]
    late: int
    bad: int


def answers(folder: Path) -> Answers:
    """Return what the pipeline must say about the events in a folder."""
    visits: list[Visit] = []
    bad = 0
    for file in sorted((folder / "events").glob("*.jsonl")):
        found, broken = read(file)
        visits += found
        bad += broken
    in_time = [visit for visit in visits if not visit.is_late]
    with (folder / "pages.csv").open(encoding="utf-8", newline="") as rows:
        pages = {row["page"]: row for row in csv.DictReader(rows)}
    tables = {
        "page_windows": Counter(page_windows(in_time, pages)),
        "daily_sales": Counter(daily_sales(visits, pages)),
        "daily_sessions": Counter(daily_sessions(in_time)),
        "top_pages": Counter(top_pages(in_time, pages)),
    }
    return Answers(tables, len(visits) - len(in_time), bad)


def read(file: Path) -> tuple[list[Visit], int]:
    """Return the clicks of a file, and how many of its lines are none.

    A click is late if a line before it in the same file tells of a time more than 30 s later, be
    that line otherwise good or bad.
    """
    visits = []
    bad = 0
    newest = NEVER + LATE_AFTER
    for line in file.read_text(encoding="utf-8").splitlines():
        fields = _fields(line)
        at = _time(fields)
        is_late = at is not None and at < newest - LATE_AFTER
        newest = max(newest, at or NEVER)
        if at is None or not _is_good(fields):
            bad += 1
        else:
            cents = fields.get("cents", 0)
            visits.append(Visit(at, fields["user"], fields["page"], cents, is_late))
    return visits, bad


def page_windows(visits: list[Visit], pages: Pages) -> Iterator[tuple[Any, ...]]:
    """Yield window, page, category, sums, users and day."""
    windows = _gathered(visits, lambda visit: (_start(visit.at, WINDOW), visit.page))
    for (start, page), found in windows.items():
        users = len({visit.user for visit in found})
        category = pages[page]["category"]
        yield start, start + WINDOW, page, category, *_sums(found), users, start.date()


def daily_sales(visits: list[Visit], pages: Pages) -> Iterator[tuple[Any, ...]]:
    """Yield category, sums with what was late, number of late clicks, and day."""
    days = _gathered(visits, lambda visit: (visit.at.date(), pages[visit.page]["category"]))
    for (day, category), found in days.items():
        yield category, *_sums(found), sum(visit.is_late for visit in found), day


def daily_sessions(visits: list[Visit]) -> Iterator[tuple[Any, ...]]:
    """Yield day on which they began, sessions, those of buyers, those of one click, and length."""
    for day, found in _gathered(_sessions(visits), lambda session: session[0].at.date()).items():
        buyers = sum(any(visit.cents for visit in session) for session in found)
        bounced = sum(len(session) == 1 for session in found)
        lasted = sum((session[-1].at - session[0].at for session in found), timedelta())
        yield day, len(found), buyers, bounced, lasted // timedelta(milliseconds=1)


def top_pages(visits: list[Visit], pages: Pages) -> Iterator[tuple[Any, ...]]:
    """Yield hour, rank, page, title and clicks; of equal ones the last by name comes first."""
    for hour, found in _gathered(visits, lambda visit: _start(visit.at, HOUR)).items():
        clicks = Counter(visit.page for visit in found)
        best = sorted(clicks.items(), key=lambda page: (page[1], page[0]), reverse=True)
        for rank, (page, count) in enumerate(best[:TOP], start=1):
            yield hour, rank, page, pages[page]["title"], count


def _sessions(visits: list[Visit]) -> Iterator[list[Visit]]:
    """Yield the clicks of each user between pauses, the oldest first."""
    for found in _gathered(sorted(visits), lambda visit: visit.user).values():
        session = found[:1]
        for before, visit in pairwise(found):
            if visit.at - before.at >= PAUSE:
                yield session
                session = []
            session.append(visit)
        yield session


def _gathered(things: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    lists: defaultdict[Any, list[T]] = defaultdict(list)
    for thing in things:
        lists[key(thing)].append(thing)
    return lists


def _sums(visits: list[Visit]) -> tuple[int, int, int]:
    """Return clicks, purchases and cents."""
    return len(visits), sum(visit.cents > 0 for visit in visits), sum(v.cents for v in visits)


def _start(time: datetime, size: timedelta) -> datetime:
    return time - (time - NEVER) % size


def _fields(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return {}


def _time(fields: Any) -> datetime | None:
    at = datetime.fromisoformat(fields["at"]) if "at" in fields else None
    return at if at and at.year in YEARS else None


def _is_good(fields: Any) -> bool:
    kind, cents = fields.get("kind"), fields.get("cents", 0)
    is_priced = cents > 0 if kind == "purchase" else kind == "view" and cents == 0
    return bool(is_priced) and {"user", "page"} <= fields.keys()
