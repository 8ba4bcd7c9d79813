"""A window log: its readable batches, and their rows as tables."""

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.handover.window_log import (
    READERS,
    LogPiece,
    LogSegment,
    LogView,
    Position,
    segments_of,
)
from gearpy.errors import ConfigError, WindowLogDamaged
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.at import folder_at
from gearpy.windowlog.bodies import SegmentInfo, body_of, read_body, read_info

SCHEMA_FILE: Final = "_schema.json"

_FORMAT: Final = 1


class LogSchema(NamedTuple):
    """The columns of a log.

    Attributes:
        arrow: as every table of the log has them, exactly.
        spark: the same as Spark's ``StructType.jsonValue()``.
        log: id of the log, which is another when the folder was made anew.
        identity: columns that tell rows apart; empty if only all of them do.
    """

    arrow: pa.Schema
    spark: dict[str, Any]
    log: str = ""
    created_ms: int = 0
    identity: tuple[str, ...] = ()


def schema_text(schema: LogSchema) -> bytes:
    text = {
        "format": _FORMAT,
        "log": schema.log,
        "arrow": base64.b64encode(schema.arrow.serialize().to_pybytes()).decode("ascii"),
        "spark": schema.spark,
        "created_ms": schema.created_ms,
        "identity": schema.identity,
    }
    return json.dumps(text, indent=1).encode()


def parsed_schema(text: bytes, *, file: str) -> LogSchema:
    try:
        found = json.loads(text)
        number = found["format"]
        if number == _FORMAT:
            arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["arrow"])))
            return LogSchema(
                arrow, found["spark"], found["log"], found["created_ms"], tuple(found["identity"])
            )
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise WindowLogDamaged(file=file, reason=f"it is no schema: {error!r:.200}") from error
    raise WindowLogDamaged(
        file=file, reason=f"its format is {number!r}, this gearpy knows {_FORMAT}: use a later one"
    )


def schema_difference(kept: pa.Schema, other: pa.Schema, *, partly: bool = False) -> str:
    """Return the difference of another schema from that of a log; empty if there is none."""
    for given in other:
        place = kept.get_field_index(given.name)
        if place < 0:
            return f"there is no column {given.name!r}, only {', '.join(kept.names)}"
        if kept.field(place).type != given.type:
            return f"column {given.name!r} is {kept.field(place).type}, not {given.type}"
    if partly:
        return ""
    missing = [name for name in kept.names if name not in other.names]
    if missing:
        return f"there is a column {missing[0]!r}, too"
    if kept.names != other.names:
        return f"the order of columns is {', '.join(kept.names)}"
    return ""


#: So often is a folder listed until it holds still: files come and go while it is.
_LISTINGS_MAX: Final = 10
_TRIES: Final = 5
_READER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderReport:
    """The progress of a reader, as it reports now and then.

    Attributes:
        name: of the reader: letters, digits and ``_.~-``.
        lanes: the last batch of each lane that it has done with.
        at_ms: wall time of the report.
        rows_per_s: how fast it reads; None if nobody knows.
        batch_id: of its last batch, such as that of a Spark query; None if it has none.
    """

    name: str
    lanes: Mapping[str, int]
    at_ms: int
    rows_per_s: float | None = None
    batch_id: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


class WindowLog:
    """A log at a path or URL, to read it.

    Runs on: one thread at a time; any number may be at the same folder.

    Args:
        path: the folder, or its URL; or a store that was opened before.

    Raises:
        ConfigError: there is no file system for such URLs.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Folder,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.store: Folder = (
            folder_at(path, storage_options, key="window log")
            if isinstance(path, str | os.PathLike)
            else path
        )
        self._schema: LogSchema | None = None
        self._names: frozenset[str] | None = None  # The last listing has given these.

    @property
    def place(self) -> str:
        return self.store.place

    @property
    def exists(self) -> bool:
        return self._read_schema() is not None

    @property
    def schema(self) -> LogSchema:
        """The columns that every table of it has.

        Raises:
            ConfigError: nobody has begun to write it.
        """
        schema = self._read_schema()
        if schema is None:
            raise ConfigError(
                f"{self.place} is no window log: no writer has begun it, or its {SCHEMA_FILE} was "
                "removed"
            )
        return schema

    # -- what there is ---------------------------------------------------------------------

    def view(self) -> LogView:
        """Look up which batches there are now.

        A listing may miss a file that has come, or been replaced, meanwhile. So it counts only if
        nothing is missing that was there the time before.
        """
        before = self._names
        for _ in range(_LISTINGS_MAX):
            names = frozenset(self.store.names())
            self._names = names
            if before is not None and before <= names:
                view = LogView(segments_of(names))
                if not view.holes or before == names:
                    return view
            before = names
        return LogView(segments_of(names))

    def segments(self) -> list[LogSegment]:
        return segments_of(self.store.names())

    def path_of(self, segment: LogSegment) -> str:
        return self.store.location(segment.name)

    # -- reading ---------------------------------------------------------------------------

    def read(self, piece: LogPiece) -> pa.Table:
        """Return the rows of some batches of a file, with exactly the columns of the schema."""
        table = self._read_piece(piece)
        if table is not None:
            return table
        # A compaction has put another file in its place.
        return self.read_range(piece.segment.lane, piece.first, piece.last)

    def read_range(self, lane: str, first: int, last: int) -> pa.Table:
        """Return the rows of these batches of a lane, wherever they are."""
        return self.read_between({lane: first - 1}, {lane: last})

    def read_between(self, start: Position, end: Position) -> pa.Table:
        """Return the rows of all batches behind ``start`` and up to ``end``."""
        for _ in range(_TRIES):
            pieces = self.view().between(start, end)
            tables = [self._read_piece(piece) for piece in pieces]
            found = [table for table in tables if table is not None]
            if len(found) == len(tables):
                return pa.concat_tables([self.schema.arrow.empty_table(), *found])
        raise WindowLogDamaged(
            file=self.place, reason=f"files were removed {_TRIES} times while they were read"
        )

    def info(self, segment: LogSegment) -> SegmentInfo:
        try:
            with self.store.open(segment.name) as file:
                return read_info(file, body=body_of(segment.name), name=segment.name)
        except FileNotFoundError:
            raise WindowLogDamaged(file=segment.name, reason="it is not there any more") from None

    def read_file(self, segment: LogSegment) -> tuple[pa.Table, SegmentInfo] | None:
        """Return all rows of a file, and its notes; None if it is gone."""
        try:
            with self.store.open(segment.name) as file:
                table, info = read_body(file, body=body_of(segment.name), name=segment.name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise WindowLogDamaged(file=segment.name, reason=str(error)) from error
        if not table.schema.equals(self.schema.arrow):
            raise WindowLogDamaged(
                file=segment.name, reason=f"its columns are not those of {SCHEMA_FILE}"
            )
        noted = [batch.seq for batch in info.batches]
        if noted != list(range(segment.first, segment.last + 1)):
            raise WindowLogDamaged(
                file=segment.name, reason=f"it notes batches {noted[:1]} to {noted[-1:]}"
            )
        rows = sum(batch.rows for batch in info.batches)
        if not rows == segment.rows == table.num_rows:
            raise WindowLogDamaged(
                file=segment.name, reason=f"it has {table.num_rows} rows, {rows} were written"
            )
        return table, info

    # -- readers ---------------------------------------------------------------------------

    def readers(self) -> list[ReaderReport]:
        names = sorted(name for name in self.store.names(READERS) if name.endswith(".json"))
        reports = (_report_of(self.store.read(READERS + name)) for name in names)
        return [each for each in reports if each is not None]

    def report(self, report: ReaderReport) -> None:
        if not _READER.fullmatch(report.name):
            raise ConfigError(
                f"a reader of a window log is called {report.name!r:.120}: take letters, digits "
                "and _.~-, a letter or digit first, 100 at most"
            )
        known = asdict(report)
        text = json.dumps({**known.pop("more"), **known})
        self.store.put(f"{READERS}{report.name}.json", text.encode())

    # -- removing --------------------------------------------------------------------------

    def purge(self, position: Position) -> list[LogSegment]:
        """Remove files that a reader at this position needs no more, oldest first; return them.

        That with the highest number of a lane stays.
        """
        return self._removed(self.view().removable(position))

    def expire(self, taken: Position, *, before_ms: int) -> list[LogSegment]:
        """Remove files that were shown before a time, oldest first; return them.

        The last file of a lane stays, and so does one whose age is unknown.
        """
        view = self.view()
        expired: dict[str, int] = {}
        for lane in view.lanes:
            for piece in view.pieces(lane)[:-1]:
                found = self.store.look(piece.segment.name)
                is_taken = piece.last <= taken.get(lane, 0)
                if not is_taken or found is None or not 0 < found.changed_ms < before_ms:
                    break
                expired[lane] = piece.last
        return self._removed(view.removable(expired))

    # -- one file --------------------------------------------------------------------------

    def _removed(self, segments: list[LogSegment]) -> list[LogSegment]:
        for segment in segments:
            self.store.remove(segment.name)
        return segments

    def _read_schema(self) -> LogSchema | None:
        if self._schema is None:
            text = self.store.read(SCHEMA_FILE)
            if text is not None:
                self._schema = parsed_schema(text, file=self.store.location(SCHEMA_FILE))
        return self._schema

    def _read_piece(self, piece: LogPiece) -> pa.Table | None:
        found = self.read_file(piece.segment)
        if found is None:
            return None
        table, info = found
        if not piece.is_whole:
            begin = sum(each.rows for each in info.batches if each.seq < piece.first)
            end = sum(each.rows for each in info.batches if each.seq <= piece.last)
            table = table.slice(begin, end - begin)
        return table


def _report_of(text: bytes | None) -> ReaderReport | None:
    try:
        found = json.loads(text or b"")
        known = {
            name: found.pop(name)
            for name in ("name", "lanes", "at_ms", "rows_per_s", "batch_id")
            if name in found
        }
        report: Any = ReaderReport(**known, more=found)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    # Anybody may write into the folder, whatever the types say.
    lanes, speed, batch_id = report.lanes, report.rows_per_s, report.batch_id
    is_sound = (
        isinstance(report.name, str)
        and isinstance(lanes, dict)
        and all(type(seq) is int for seq in lanes.values())
        and type(report.at_ms) is int
        and (speed is None or type(speed) in {int, float})
        and (batch_id is None or type(batch_id) is int)
    )
    return report if is_sound else None


def positions_of(reports: Iterable[ReaderReport]) -> dict[str, int]:
    listed = list(reports)
    lanes = {lane for each in listed for lane in each.lanes}
    return {lane: min(each.lanes.get(lane, 0) for each in listed) for lane in lanes}
