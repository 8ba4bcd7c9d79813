"""A table of a database as a source: its rows in the order of a key, once, or also later ones.

What is one for all databases is here: where a reader is, how it goes on behind the last row that it
gave, when it asks for more, and how it waits for a database that is away. A subclass asks one.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypedDict

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.row_schema import RowSchema
from gearpy.connectors.database.table_writer import TableColumn, TableDatabase
from gearpy.connectors.files.column_times import TimeForm, check_time_column, times_of
from gearpy.connectors.files.stamps import OrderedReader
from gearpy.connectors.files.tables import (
    BadRows,
    FilePiece,
    OnBad,
    fitting_parts,
)
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Source
from gearpy.task.api.sides import SetAside

_RETRY_MS: Final = 1000
#: Rows that are asked for at a time, at least: a question may take long, whatever it brings.
_ASKED_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """The options of a table that is read."""

    table: str
    by: tuple[str, ...]
    columns: tuple[str, ...] | None
    time: str | None
    form: TimeForm
    follows: bool
    interval_ms: int
    bound_ms: int
    on_bad: OnBad = "fail"
    lag_ms: int = 0  #: Rows are read so long after they were seen, as others may come before them.
    up_to_now: bool = False  #: It ends at the last row when it is opened; others come later.

    @property
    def grows(self) -> bool:
        return self.follows or self.up_to_now

    @property
    def ends(self) -> bool:
        return self.up_to_now or not self.follows

    @property
    def wanted(self) -> list[str] | None:
        """The columns to read, with those that order the rows and tell their time; None: all."""
        if self.columns is None:
            return None
        needed = (*self.columns, *self.by, *([self.time] if self.time else ()))
        return list(dict.fromkeys(needed))


class FetchedRows(NamedTuple):
    """Rows that are not given yet, and the order of each; None: the rows tell it."""

    rows: pa.RecordBatch
    orders: Sequence[list[Any]] | None = None


class BadRow(NamedTuple):
    """A row that cannot be read: its order, its text, and why."""

    at: list[Any]
    text: bytes
    cause: str


class TablePlace(TypedDict):
    """Snapshot of a reader: the order of the last row it gave, and of the last that it will give.

    ``end`` is None as long as that is not known; empty if there is nothing to read.
    """

    at: list[Any]
    end: list[Any] | None
    watermark_ms: int
    count: int


class DatabaseSource(Source[dict[str, Any]]):
    """A table whose rows have an order."""

    replayable = True

    def __init__(self, database: TableDatabase, query: TableQuery) -> None:
        self._told = database
        self._query = query
        self._narrowed = ""
        self.bounded = not query.follows
        self.sets_bad_aside = query.on_bad == "side"
        self.quarantines_bad = query.on_bad == "quarantine"
        self.is_by_arrival = query.follows and query.time is None
        self.time_column = query.time or ""

    @property
    def note(self) -> str:
        times = self._query.form.note(self._query.time, self.schema.arrow)
        return "; ".join(filter(None, [times, self._narrowed]))

    def narrowed(
        self, columns: Collection[str] | None, conditions: Sequence[Any]
    ) -> "DatabaseSource":
        """Read some columns, with those that order the rows and tell their time."""
        if columns is None or self._query.on_bad != "fail":  # Each bad row is told.
            return self
        other = copy(self)
        other._query = query = replace(self._query, columns=tuple(columns))  # noqa: SLF001 - of the same class
        other.columns = [each for each in self.columns if each.name in (query.wanted or ())]
        if len(other.columns) == len(self.columns):
            return self
        names = ", ".join(each.name for each in other.columns)
        other._narrowed = f"reads {names} alone"  # noqa: SLF001 - of the same class
        return other

    @abstractmethod
    def find_columns(self) -> list[TableColumn]:
        """Return the columns that the database tells, or those wanted; none if there is no table.

        Raises:
            OperatorError: one that is wanted is not there.
        """

    @cached_property
    def columns(self) -> list[TableColumn]:
        """The columns, as the database tells them; asked for once."""
        try:
            found = self.find_columns()
        except OperatorError as error:
            raise ConfigError(error.cause) from error
        except GearpyError:
            raise
        except Exception as error:
            raise ConfigError(self._told.failure(error).cause) from error
        names = [each.name for each in found]
        if not names:
            raise ConfigError(
                f"{self.description}: there is no table {self._query.table} in {self._told.shown}"
            )
        if missing := [each for each in self._query.by if each not in names]:
            raise ConfigError(
                f"{self.description}: by={missing[0]!r} is no column: there are {', '.join(names)}"
            )
        if self._query.time is not None:
            fields = pa.schema([each.field for each in found])
            check_time_column(self.description, self._query.time, fields)
        return found

    @property
    def schema(self) -> RowSchema:
        return RowSchema(pa.schema([each.field for each in self.columns]))

    def up_to_now(self) -> "DatabaseSource":
        other = copy(self)
        other._query = replace(self._query, up_to_now=True)  # noqa: SLF001 - of the same class
        other.bounded = True
        return other


class DatabaseReader(OrderedReader[dict[str, Any]]):
    """Reads rows in their order, a portion with each question."""

    def __init__(
        self,
        operator: str,
        database: TableDatabase,
        query: TableQuery,
        *,
        columns: Sequence[TableColumn],
        resume: TablePlace | None,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self._operator = operator
        self._told = database
        self._query = query
        self._columns = columns
        self._now_ms = now_ms
        self._ask_at_ms = 0
        self._fetched = deque[FetchedRows | BadRow]()  # Rows that are not given yet.
        self._seen = deque[tuple[int, list[Any]]]()  # The last row, and when; the oldest first.
        self._settled: list[Any] = []  # The last row that was there long enough ago.
        self._aside = SetAside()
        self._bad = BadRows(operator, query.table, query.on_bad, self._aside)
        place: TablePlace = resume or {"at": [], "end": None, "watermark_ms": MIN_MS, "count": 0}
        self._at, self._count = place["at"], place["count"]
        self._end = None if query.up_to_now else place["end"]
        self._order = BoundedOutOfOrder(0 if query.time is None else query.bound_ms)
        self._order.watermark_ms = place["watermark_ms"]
        self.is_by_arrival = query.follows and query.time is None
        self.out_of_order_ms = None if self.is_by_arrival else query.bound_ms

    def read_batch(self, max_records: int) -> Batch[dict[str, Any]] | None:
        now_ms = self._now_ms()
        if not self._fetched and not self._fetch(max_records, now_ms):
            return None
        batch = None
        if isinstance(fetched := self._fetched.popleft(), BadRow):
            self._at, taken = fetched.at, 1
            pairs = zip(self._query.by, fetched.at, strict=True)
            where = f"row {', '.join(f'{name}={value}' for name, value in pairs)}"
            self._bad.take(where, fetched.cause, fetched.text)
            self.skipped_records = self._bad.skipped
        else:
            rows, orders = fetched
            if rows.num_rows > max_records:
                rest = None if orders is None else orders[max_records:]
                self._fetched.appendleft(FetchedRows(rows.slice(max_records), rest))
                rows = rows.slice(0, max_records)
            taken = rows.num_rows
            self._at = self.order_of(rows) if orders is None else orders[taken - 1]
            if self._query.time is None:
                self._order.on_records([now_ms if self._query.follows else 0])
                times = Times.of([self.watermark_ms] * taken)
            else:
                times = Times(times_of(rows.column(self._query.time), self._query.form))
                self._order.on_records([times.bounds()[1]])
            batch = Batch(Table(rows), times)
        self._count += taken
        self.finished = self._end is not None and self._at == self._end
        return batch

    def snapshot(self) -> TablePlace:
        return {
            "at": list(self._at),
            "end": None if self._query.up_to_now or self._end is None else list(self._end),
            "watermark_ms": self.watermark_ms,
            "count": self._count,
        }

    @property
    def progress(self) -> tuple[int, int]:
        return self._count, 0

    # -- questions ---------------------------------------------------------------------------

    def _fetch(self, max_records: int, now_ms: int) -> bool:
        """Ask for rows, if it is time to; tell whether there are some."""
        if now_ms < self._ask_at_ms:
            return False
        try:
            rows = self._next_rows(max(max_records, _ASKED_ROWS), now_ms)
        except OperatorError:
            raise
        except Exception as error:
            self.close()
            self.waits_for = self._told.trouble(error)
            if not self.waits_for:
                raise self._told.failure(error) from error
            self._ask_at_ms = now_ms + _RETRY_MS
            return False
        self.waits_for = ""
        if not rows:
            self.rest()
            self.finished = self._query.ends and not self._seen
            self._ask_at_ms = now_ms + min(self._query.interval_ms, self._query.lag_ms or 2**62)
            return False
        self._fetched.extend(rows)
        return True

    def _next_rows(self, max_records: int, now_ms: int) -> list[FetchedRows | BadRow]:
        if self._end is None and self._query.ends:
            self._end = self.newest()
        if self._end == []:
            return []
        end = self._end or []
        if self._query.lag_ms:
            last = end or self.newest()
            if last and (not self._seen or self._seen[-1][1] != last) and last != self._settled:
                self._seen.append((now_ms, last))
            while self._seen and self._seen[0][0] + self._query.lag_ms <= now_ms:
                _, self._settled = self._seen.popleft()
            if not self._settled:
                return []
            end = self._settled
        return self.rows_between(self._at, end, max_records)

    def parsed(
        self,
        items: Sequence[Any],
        make: Callable[[Sequence[Any]], FetchedRows],
        bad: Callable[[Any, Exception], BadRow],
    ) -> list[FetchedRows | BadRow]:
        """Return the rows that are made of some items, in their order; bad ones apart."""
        found: list[FetchedRows | BadRow] = []
        for piece in fitting_parts(
            items,
            lambda some: FilePiece(make(some), None),
            lambda at, error: found.append(bad(items[at], error)),
        ):
            found.append(piece.values)  # noqa: PERF401 - bad ones come in between
        return found

    def order_of(self, rows: pa.RecordBatch) -> list[Any]:
        last = rows.slice(rows.num_rows - 1).to_pylist()[0]
        return [last[name] for name in self._query.by]

    # -- the database, in a subclass ---------------------------------------------------------

    def rest(self) -> None:
        """Learn that there is nothing to read for now."""

    @abstractmethod
    def newest(self) -> list[Any]:
        """Return the order of the last row that may be read; empty if there is none."""

    @abstractmethod
    def rows_between(
        self, at: Sequence[Any], end: Sequence[Any], limit: int
    ) -> list[FetchedRows | BadRow]:
        """Return so many rows behind a place, up to another one; empty ones say nothing."""
