"""Files of rows as a source: the partitions, and the reader of one of them."""

import logging
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.row_schema import RowSchema, row_schema_of
from gearpy.columns.workable import note_of
from gearpy.connectors.files.column_times import TimeForm, TimeUnit, check_time_column, time_form
from gearpy.connectors.files.following import NewFiles
from gearpy.connectors.files.found.sampling import FoundColumns, columns_of_files
from gearpy.connectors.files.queue import FileQueue, FilesRead, Unread, part_of
from gearpy.connectors.files.stamps import OrderedReader
from gearpy.connectors.files.tables import (
    BadRows,
    FileFormat,
    FilePiece,
    FileTables,
    Fit,
    OnBad,
    known_on_bad,
    plain_schema,
)
from gearpy.connectors.locations import (
    FoundFile,
    Locations,
    StoreOptions,
    block_hosts,
    content_version,
    file_at,
    is_gone,
    is_touched,
)
from gearpy.core.base.times import Duration, EventTime, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.core.window.watermark import BoundedOutOfOrder
from gearpy.errors import ConfigError, GearpyError
from gearpy.expressions.comparisons import Comparison, comparisons_in
from gearpy.expressions.expr import Expr
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.messages.table import Table, Times
from gearpy.task.api.interfaces import Source
from gearpy.task.api.sides import SetAside
from gearpy.task.sources.share import numbered_partitions, partition_number

_log = logging.getLogger(__name__)

_FOLLOWED_PARTS: Final = 4
_TOUCHED: Final = "it was changed or replaced while it was read, and its rows may be of both"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of reading files; see `gearpy.connectors.files.datasets`."""

    schema: Any = None
    rows: bool = False
    columns: Sequence[str] | None = None
    time: str | Callable[[Any], EventTime] | None = None
    time_unit: TimeUnit = "ms"
    zone: ZoneName | None = None
    out_of_order: Duration = "0s"
    on_bad: OnBad = "fail"
    partitions: int | None = None
    follow: bool = False
    poll: Duration = "1s"
    settle: Duration = "1s"
    storage_options: StoreOptions | None = None


class FilesPlace(TypedDict):
    """Snapshot of a reader: the files that are done, the one that is read, and where in it."""

    seen: bytes
    file: str
    size: int
    version: str
    place: Any
    watermark_ms: int


class RowFiles(Source):
    """Files of one format; see `gearpy.connectors.files.datasets`."""

    replayable = True

    def __init__(
        self,
        form: FileFormat,
        patterns: Sequence[str | Path],
        options: ReadOptions,
        *,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self._form = form
        self._locations = Locations(form.name, patterns, options.storage_options)
        self._options = options = _checked(form.name, options)
        self._now_ms = now_ms
        self._bound_ms = duration_ms(options.out_of_order)
        self.is_by_arrival = options.time is None
        self.time_column = None if callable(options.time) else options.time or ""
        self._poll_ms, self._settle_ms = duration_ms(options.poll), duration_ms(options.settle)
        self.bounded = not options.follow
        self.sets_bad_aside = options.on_bad == "side"
        self.quarantines_bad = options.on_bad == "quarantine"
        self._found: list[FoundFile] = []
        self._up_to_now = False
        self._schemas: tuple[RowSchema, pa.Schema] | None = None  # Given, and read.
        self._columns = FoundColumns(pa.schema([]), frozenset(), is_sure=True)
        self._note = ""
        self._taken: list[str] | None = None  # Names of columns that steps take; None: all.
        self._bounds: tuple[Comparison, ...] = ()

    @property
    def description(self) -> str:
        return f"{self._form.name}({self._locations})"

    @property
    def schema(self) -> RowSchema | None:
        return None if self._options.rows else self._both_schemas()[0]

    @property
    def note(self) -> str:
        read, time = None, self._options.time
        if not self._options.rows:
            _, read = self._both_schemas()
        times = self._time_form.note(time if isinstance(time, str) else None, read)
        taken = f"reads {', '.join(self._taken or ())} alone" if self._taken else ""
        bounds = " and ".join(map(str, self._bounds))
        left_out = bounds and f"leaves out groups of rows without {bounds}"
        return "; ".join(filter(None, [self._form.note, self._note, times, taken, left_out]))

    def narrowed(self, columns: Collection[str] | None, conditions: Sequence[Any]) -> "RowFiles":
        """Read some columns, and leave out groups of rows by their statistics; of Parquet, Arrow.

        Rows that have event times are read all the same, as these say how far time has gone on.
        """
        time, (given, read) = self._options.time, self._both_schemas()
        if not self._form.narrows or self._options.on_bad != "fail":  # Each bad row is told.
            return self
        other = copy(self)
        if columns is not None and len(columns) < len(given.arrow.names) and not callable(time):
            names = list(columns)
            times = {time, (time or "").partition(".")[0]}
            kept = [each for each in read if each.name in columns or each.name in times]
            schema = RowSchema(pa.schema([given.arrow.field(name) for name in names]))
            other._taken, other._schemas = names, (schema, pa.schema(kept))  # noqa: SLF001
        if time is None:
            bounds = (
                each for each in comparisons_in(conditions) if each.column in given.arrow.names
            )
            other._bounds = tuple(bounds)  # noqa: SLF001 - of the same class
        return other

    def renewed(self) -> "RowFiles":
        other = copy(self)
        other._found = []  # noqa: SLF001 - of the same class
        return other

    def up_to_now(self) -> "RowFiles":
        other = copy(self)
        other._up_to_now = other.bounded = True  # noqa: SLF001 - of the same class
        if self._parts is None:
            other.discovers = True
        else:
            other._options = replace(self._options, follow=True)  # noqa: SLF001 - the same
        return other

    def version(self) -> str:
        return "\n".join(
            f"{file.name} {file.size} {file.changed_ms} {file.version}" for file in self._files()
        )

    def hosts(self) -> Sequence[str]:
        return [] if self._options.follow else block_hosts(self._form.name, self._files())

    def partitions(self) -> Sequence[str]:
        if self.discovers:
            return ()
        if self._parts is None:
            return [file.name for file in self._files()]
        if not self._options.follow:
            self._files()  # Says what is not there, before anything runs.
        return numbered_partitions(self._parts)

    def open(self, partition: str, resume: FilesPlace | None) -> "FilesReader":
        """Return a reader; files are opened when they are read."""
        parts = self._parts
        locate = self._locations.look_again if self._options.follow else self._locations.look_up

        def look() -> Sequence[FoundFile]:
            if parts is None:
                return [self._file_at(partition)]
            number = int(partition)
            return [file for file in locate() if part_of(file.plain_name, parts) == number]

        queue = FileQueue(
            look,
            seen=resume["seen"] if resume else b"",
            follows=self._options.follow,
            poll_ms=self._poll_ms,
            settle_ms=self._settle_ms,
            up_to_now=self._up_to_now,
            now_ms=self._now_ms,
        )
        begins_ms = MIN_MS
        if self._parts is None and self._options.time is None:  # Older files are read first.
            begins_ms = self._file_at(partition).changed_ms
        return self._reader(queue, self._file_at, resume, begins_ms=begins_ms)

    def discover(self, task_index: int, parallelism: int, resume: Sequence[Any]) -> NewFiles:
        def look() -> Sequence[FoundFile]:
            found = self._locations.look_again()
            if not found:
                _log.warning("%s: no file fits %s", self._form.name, self._locations)
            mine = ((partition_number(file.plain_name), file) for file in found)
            return [file for number, file in mine if number % parallelism == task_index]

        read = FilesRead(
            b"".join(each["read"] for each in resume),
            whole=self._form.whole if self._form.grows else None,
            settle_ms=self._settle_ms,
        )
        return NewFiles(
            read,
            look,
            self._place_of,
            partial(self._open_new, read),
            settle_ms=self._settle_ms,
            now_ms=self._now_ms,
        )

    def _place_of(self, unread: Unread) -> FilesPlace:
        file, begin = unread.file, unread.begin
        if begin and not _goes_on_at(file, begin):
            raise GearpyError(
                f"{self._form.name}: {file.name} is another file than the one of which {begin:,} "
                "bytes were read before: give it another name, so that all of it is read"
            )
        return {
            "seen": b"",
            "file": file.name,
            "size": file.size,
            "version": content_version(self._form.name, file),
            "place": {"offset": begin, "row": 0, "line": unread.line} if begin else None,
            "watermark_ms": MIN_MS if self._options.time is not None else file.changed_ms,
        }

    def _open_new(
        self,
        read: FilesRead,
        name: str,
        place: FilesPlace,
        done: Callable[[FoundFile, int], object],
    ) -> "FilesReader":
        """Open a new file, or one that was open when the run before was killed.

        That one may have grown since, also if all that there was had been read.
        """
        files: list[FoundFile] = []
        if place["file"]:
            file, known = self._file_at(name), place["size"]
            if self._form.grows and file.is_local and not file.is_packed and file.size > known:
                grown, file = replace(file, size=self._form.whole(file)), replace(file, size=known)
                if content_version(self._form.name, file) == place["version"]:
                    version = content_version(self._form.name, grown)
                    file, place = grown, {**place, "size": grown.size, "version": version}
            files = [file]
        elif Path(name).is_file() and (rest := read.rest_of(self._file_at(name))) is not None:
            files, place = [rest.file], self._place_of(rest)
        queue = FileQueue(lambda: files, now_ms=self._now_ms)
        return self._reader(queue, lambda _: files[0], place, on_done=done)

    def _reader(
        self,
        queue: FileQueue,
        find: Callable[[str], FoundFile],
        resume: FilesPlace | None,
        *,
        begins_ms: int = MIN_MS,
        on_done: Callable[[FoundFile, int], object] = lambda *_: None,
    ) -> "FilesReader":
        return FilesReader(
            self._form,
            queue,
            self._fit(),
            find=find,
            on_bad=self._options.on_bad,
            bound_ms=None if self._options.time is None else self._bound_ms,
            follows=self._options.follow,
            begins_ms=begins_ms,
            resume=resume,
            on_done=on_done,
        )

    @property
    def _parts(self) -> int | None:
        return self._options.partitions or (_FOLLOWED_PARTS if self._options.follow else None)

    def _files(self) -> list[FoundFile]:
        """Return the files. All tasks must see the same ones, so it looks only once."""
        if not self._found:
            self._found = self._locations.look_up()
        return self._found

    def _file_at(self, name: str) -> FoundFile:
        return file_at(self._form.name, name, self._options.storage_options)

    def _fit(self) -> Fit:
        options = self._options
        if options.rows:
            return Fit(None, options.columns, options.time, self._time_form)
        given, read = self._both_schemas()
        names = None if given.arrow.names == read.names else given.arrow.names
        is_found = options.schema is None
        is_sure = not is_found or (self._columns.is_sure and not options.follow)
        return Fit(
            read,
            names,
            options.time,
            self._time_form,
            is_found=is_found,
            is_whole=is_found and options.columns is None,
            is_sure=is_sure,
            empty=frozenset() if is_sure else self._columns.empty,
            unread=() if self._taken is None else self._columns.schema.names,
            bounds=self._bounds,
        )

    @property
    def _time_form(self) -> TimeForm:
        return time_form(self._form.name, self._options.time_unit, self._options.zone)

    def _both_schemas(self) -> tuple[RowSchema, pa.Schema]:
        if self._schemas is None:
            self._schemas = self._found_schemas()
        return self._schemas

    def _found_schemas(self) -> tuple[RowSchema, pa.Schema]:
        options, operator = self._options, self._form.name
        if options.schema is None:
            try:
                files = [file for file in self._files() if file.size]
            except ConfigError as error:
                if not options.follow:
                    raise
                raise ConfigError(f"{error}, to tell the columns: give schema=") from error
            if not files:
                raise ConfigError(
                    f"{operator}: all files of {self._locations} are empty, so that none tells "
                    "what the columns are: give schema="
                )
            self._columns = columns_of_files(self._form, files, options.on_bad)
        is_arrow = isinstance(options.schema, pa.Schema)
        found = options.schema if is_arrow else self._columns.schema
        self._note = note_of(found)
        whole = RowSchema(plain_schema(found))
        if options.schema is not None:
            whole = row_schema_of(options.schema)
        self._form.check(whole.arrow)
        if isinstance(options.time, str | Expr):
            check_time_column(operator, options.time, whole.arrow)
        if options.columns is None:
            return whole, whole.arrow
        fields = [_field(operator, whole.arrow, name) for name in options.columns]
        given = RowSchema(pa.schema(fields))
        if callable(options.time):  # It may look at any column.
            return given, whole.arrow
        if options.time is not None:
            has_column = options.time in whole.arrow.names
            column = options.time if has_column else options.time.partition(".")[0]
            if column not in options.columns:
                fields.append(whole.arrow.field(column))
        return given, pa.schema(fields)


class FilesReader(OrderedReader[Any]):
    """Reads the files of one partition, one after the other.

    Args:
        find: looks for a file that was read before.
        bound_ms: how far event times are out of order; None: rows have the time of their file.
        begins_ms: no row is older.
        on_done: is told of each file that was read to its end, and of the line behind it.
    """

    def __init__(
        self,
        form: FileFormat,
        queue: FileQueue,
        fit: Fit,
        *,
        find: Callable[[str], FoundFile],
        on_bad: OnBad,
        bound_ms: int | None,
        follows: bool = False,
        begins_ms: int = MIN_MS,
        resume: FilesPlace | None = None,
        on_done: Callable[[FoundFile, int], object] = lambda *_: None,
    ) -> None:
        self._on_done = on_done
        self._form = form
        self._queue = queue
        self._fit = fit
        self._find = find
        self._on_bad: OnBad = on_bad
        self._follows = follows
        self.out_of_order_ms = bound_ms
        self.is_by_arrival = bound_ms is None
        self._order = BoundedOutOfOrder(bound_ms or 0)
        self._resume = resume if resume and resume["file"] else None
        self._order.watermark_ms = resume["watermark_ms"] if resume else begins_ms
        self._file: FoundFile | None = None
        self._version = ""  # Of the content of the file.
        self._tables: FileTables | None = None
        self._bad: BadRows | None = None
        self._skipped_before = 0
        self._aside = SetAside()

    def read_batch(self, max_records: int) -> Batch | None:
        while (tables := self._opened()) is not None:
            piece = tables.take(max_records)
            self._count_skipped()
            if piece is None:
                assert self._file is not None
                assert self._bad is not None
                file = self._file
                if is_touched(file) and content_version(self._form.name, file) != self._version:
                    self._bad.take("as a whole", _TOUCHED, file.name, what="file")
                    self._count_skipped()
                self._end_file()
            elif len(piece):
                self.idle = False
                times = self._times(piece)
                if isinstance(piece.values, list):
                    return Batch(piece.values, list(times))
                return Batch(Table(piece.values), times)
        self.finished = self._queue.ended
        self.idle = self._follows or not self.finished
        return None

    def snapshot(self) -> FilesPlace:
        if self._resume is not None:  # Nothing was read since.
            return self._resume
        open_file = self._file is not None and self._tables is not None
        return {
            "seen": self._queue.snapshot(),
            "file": self._file.name if open_file and self._file else "",
            "size": self._file.size if open_file and self._file else 0,
            "version": self._version if open_file else "",
            "place": self._tables.place if self._tables is not None else None,
            "watermark_ms": self.watermark_ms,
        }

    @property
    def progress(self) -> tuple[int, int]:
        done = self._queue.bytes_done
        if self._file is not None and self._tables is not None:
            done += int(self._tables.part_read * self._file.size)
        return done, max(done, self._queue.bytes_known)

    def read_little(self) -> None:
        self._fit.reads_little = True

    def step_over(self, *, all_of_file: bool) -> str:
        if not all_of_file and (tables := self._opened()) is not None:
            return tables.step_over() or self._left_out_file()
        resume, self._resume = self._resume, None
        self._file = self._file or (self._queue.next() if resume is None else self._known(resume))
        return self._left_out_file()

    def close(self) -> None:
        if self._tables is not None:
            self._tables.close()
            self._tables = None

    def _opened(self) -> FileTables | None:
        """Return the file that is open, that of the snapshot, or the next that can be opened."""
        if self._tables is not None:
            return self._tables
        resume, self._resume = self._resume, None
        file = self._queue.next() if resume is None else self._known(resume)
        place = None if resume is None else resume["place"]
        while file is not None and self._tables is None:
            self._file = file
            self._bad = BadRows(self._form.name, file.name, self._on_bad, self._aside)
            try:
                self._version = content_version(self._form.name, file)
                self._tables = self._form.begin(file, self._fit, self._bad, place)
            except ConfigError as error:
                if self._follows and is_gone(file):
                    self._queue.gone(file)
                    file, place = self._queue.next(), None
                    continue
                if self._on_bad == "fail":
                    raise
                self._bad.take("as a whole", error, file.name)
                self._count_skipped()
                self._end_file()
                file, place = self._queue.next(), None
        if file is not None and self.out_of_order_ms is None:
            self._order.on_records([file.changed_ms])
        return self._tables

    def _known(self, resume: FilesPlace) -> FoundFile:
        file = self._find(resume["file"])
        if file.size != resume["size"]:
            raise GearpyError(
                f"{file.name} has {file.size} bytes now, and had {resume['size']} when it was "
                "read: it was changed, so nobody knows where to go on"
            )
        if content_version(self._form.name, file) != resume["version"]:
            raise GearpyError(
                f"{file.name} is another file of {file.size} bytes than the one that was read "
                "before: nobody knows where to go on"
            )
        return file

    def _end_file(self) -> None:
        assert self._file is not None
        self._skipped_before = self.skipped_records
        self._queue.done(self._file)
        place = None if self._tables is None else self._tables.place
        self._on_done(self._file, place.get("line", 0) if isinstance(place, dict) else 0)
        self.close()
        self._file = self._bad = None

    def _left_out_file(self) -> str:
        if self._file is None:
            raise ConfigError("no file is left: take what ends the process out of the input")
        name = self._file.name
        self._end_file()
        return f"the rest of {name}"

    def _count_skipped(self) -> None:
        if self._bad is not None:
            self.skipped_records = self._skipped_before + self._bad.skipped

    def _times(self, piece: FilePiece) -> Times:
        if piece.times is None:
            return Times(pa.repeat(pa.scalar(self.watermark_ms, pa.int64()), len(piece)))
        times = Times(piece.times)
        self._order.on_records([times.bounds()[1]])
        return times


def _goes_on_at(file: FoundFile, begin: int) -> bool:
    with Path(file.name).open("rb") as opened:
        opened.seek(begin - 1)
        before, after = opened.read(1), opened.read(1)
    return before == b"\n" or after in {b"\r", b"\n"}


def _field(operator: str, schema: pa.Schema, name: str) -> pa.Field:
    if name not in schema.names:
        raise ConfigError(
            f"{operator}: columns has {name!r}, which there is not: there are "
            f"{', '.join(schema.names) or 'none'}"
        )
    if (count := schema.names.count(name)) > 1:
        raise ConfigError(
            f"{operator}: columns has {name!r}, and there are {count} columns of that name: give "
            "them names of their own where the file is written"
        )
    return schema.field(name)


def _checked(operator: str, options: ReadOptions) -> ReadOptions:
    time_form(operator, options.time_unit, options.zone)
    options = replace(options, on_bad=known_on_bad(operator, options.on_bad))
    mistakes = []
    if options.rows and options.schema is not None:
        mistakes.append(f"{operator}: rows=True takes rows of any kind: leave out schema=")
    if options.partitions is not None and options.partitions < 1:
        mistakes.append(f"{operator}: partitions is {options.partitions}, must be 1 or more")
    if isinstance(options.columns, str) or (options.columns is not None and not options.columns):
        mistakes.append(
            f"{operator}: columns is {options.columns!r}, need a list of names such as ['user']"
        )
    elif options.columns is not None and isinstance(options.schema, type):
        mistakes.append(
            f"{operator}: columns are those of {options.schema.__name__}: leave out columns=, or "
            "give a class that has these fields only"
        )
    time: Any = options.time
    if not (time is None or isinstance(time, str) or callable(time)):
        mistakes.append(
            f"{operator}: time is {time!r:.100}, need the name of a column or a function of the row"
        )
    if mistakes:
        raise ConfigError(*mistakes)
    return options
