"""Positions of readers in a log, and the files between two of them. Knows no Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gearpy.core.handover.window_log import LogPiece, LogView, Position
from gearpy.errors import ConfigError, GearpyError

#: A task of Spark costs about as much as reading so many rows.
_SHARE_ROWS: Final = 250_000
_SHARES_MAX: Final = 16

_WINDOW_COLUMNS: Final = frozenset({"window_start", "window_end"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_MS_PER_S: Final = 1000
_REPORT_MS: Final = 1000
_SIGN_OF_LIFE_MS: Final = 10_000


def position_of(offset: Any) -> dict[str, int]:
    """Return the position that an offset of Spark stands for.

    Equal positions are equal texts as JSON: Spark compares those. So lanes are in order, and a
    lane without a file that was read is left out.
    """
    if not isinstance(offset, Mapping) or not all(
        isinstance(each, int) and not isinstance(each, bool) and each >= 0
        for each in offset.values()
    ):
        raise ConfigError(
            f"{offset!r:.200} is no position: it is lanes and the number of the last batch read, "
            'as {"windows-00000": 12}'
        )
    return {str(lane): offset[lane] for lane in sorted(offset) if offset[lane] > 0}


def first_position(
    view: LogView, starting: Position | None, *, from_end: bool = False
) -> dict[str, int]:
    """Return where a new reader begins."""
    if starting is not None:
        return position_of(starting)
    return position_of(view.ends() if from_end else view.start())


def next_position(
    view: LogView,
    start: Position,
    *,
    max_rows: int | None = None,
    max_batches: int | None = None,
    until: Position | None = None,
) -> dict[str, int]:
    found = view.advance(start, max_rows=max_rows, max_batches=max_batches, until=until)
    # A lane that has lost a file, or all of them, must not take a reader back.
    forward = {lane: max(last, start.get(lane, 0)) for lane, last in found.items()}
    return position_of({**start, **forward})


def check_known(view: LogView, position: Position, *, place: str) -> None:
    """Refuse a position behind the end of the log."""
    ends = view.ends()
    for lane, last in position.items():
        if last > ends.get(lane, 0):
            raise GearpyError(
                f"{place}: lane {lane} was read up to batch {last}, and has {ends.get(lane, 0)} "
                "now: it is another log than the one that was read before; begin with another "
                "checkpoint, or set failOnDataLoss=false to read on when it has come that far"
            )


def shares(pieces: Sequence[LogPiece], tasks: int | None = None) -> list[list[LogPiece]]:
    """Split files into the shares of tasks: neighbours, of about as many rows."""
    rows = sum(piece.rows for piece in pieces)
    count = tasks or min(_SHARES_MAX, -(-rows // _SHARE_ROWS))
    goal = max(1, -(-rows // max(1, count)))
    found: list[list[LogPiece]] = []
    taken = goal
    for piece in pieces:
        if taken >= goal and (tasks is None or len(found) < tasks):
            found.append([])
            taken = 0
        found[-1].append(piece)
        taken += piece.rows
    return found


@dataclass(frozen=True, slots=True)
class Span:
    """The windows that are asked for: a file is of use if one of its windows can be among them."""

    ends_after_ms: int | None = None
    starts_before_ms: int | None = None

    @property
    def is_all(self) -> bool:
        return self.ends_after_ms is None and self.starts_before_ms is None

    def and_also(self, other: "Span") -> "Span":
        afters = [at for at in (self.ends_after_ms, other.ends_after_ms) if at is not None]
        befores = [at for at in (self.starts_before_ms, other.starts_before_ms) if at is not None]
        return Span(max(afters, default=None), min(befores, default=None))

    def meets(self, starts_ms: int | None, ends_ms: int | None) -> bool:
        """Tell whether a file can have such a window.

        Args:
            starts_ms: when its first window starts; None: not known.
            ends_ms: when its last window ends; None: not known.
        """
        after, before = self.ends_after_ms, self.starts_before_ms
        is_late = after is None or ends_ms is None or ends_ms > after
        return is_late and (before is None or starts_ms is None or starts_ms < before)


def span_of(column: str, condition: str, time: datetime) -> Span:
    """Return which windows a condition leaves; all of them where it says nothing about windows.

    A window ends later than it starts, so what is said of its start tells of its end, too.
    """
    if column not in _WINDOW_COLUMNS:
        return Span()
    # Ends are whole milliseconds. One of exactly the time must not be passed over.
    before_ms = (time - _EPOCH) // _MILLISECOND - 1
    after_ms = before_ms + 3
    match condition:
        case "GreaterThan" | "GreaterThanOrEqual":
            return Span(ends_after_ms=before_ms)
        case "LessThan" | "LessThanOrEqual":
            return Span(starts_before_ms=after_ms)
        case "EqualTo" | "EqualNullSafe":
            return Span(before_ms, after_ms)
        case _:
            return Span()


class ReadingPace:
    """The times at which a reader reports, with its place and its speed since the last report.

    Each time that costs a file, so not for every batch: when it has read everything, every second
    while it reads, and now and then while there is nothing, as a sign of life.
    """

    def __init__(self) -> None:
        self._position: dict[str, int] | None = None
        self._at_ms = 0

    def is_due(self, position: Position, *, has_more: bool, now_ms: int) -> bool:
        if self._position is None:
            return True
        silent_ms = now_ms - self._at_ms
        if self._position == position:
            return silent_ms >= _SIGN_OF_LIFE_MS
        return not has_more or silent_ms >= _REPORT_MS

    def on_report(self, view: LogView, position: Position, *, now_ms: int) -> float | None:
        """Return rows per second since the last report; None where nothing can be told yet."""
        before, since_ms = self._position, self._at_ms
        self._position, self._at_ms = dict(position), now_ms
        if before is None or now_ms <= since_ms:
            return None
        return view.rows_between(before, position) * _MS_PER_S / (now_ms - since_ms)


def common_position(position: Position, others: Iterable[Position]) -> dict[str, int]:
    everybody = [position, *others]
    return {lane: min(each.get(lane, 0) for each in everybody) for lane in sorted(position)}
