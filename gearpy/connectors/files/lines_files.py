"""Lines of text files, and files of text or JSON lines."""

import glob
import logging
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict, Unpack, get_args, overload

from gearpy.clocks import wall_ms
from gearpy.connectors.files.bytes import GrowingFile, OnLost, PackedFile, ReadableFile, RegularFile
from gearpy.connectors.files.following import FollowedFile, FollowedFiles
from gearpy.connectors.files.lines import Decoder, LineBlocks
from gearpy.connectors.files.rotation import FileMark
from gearpy.connectors.files.stamps import (
    Fixed,
    StampedReader,
    StampedSource,
    Stamps,
    each,
    in_zone,
    stamps_of,
    that_pass,
)
from gearpy.connectors.files.writers import FileSink, json_lines, text_lines
from gearpy.connectors.locations import check_paths, no_match, unpacker_of
from gearpy.connectors.waker import call_when, forget
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.type_variables import T
from gearpy.task.api.interfaces import Batch, Sink, Source
from gearpy.task.api.sides import SetAside
from gearpy.task.sources.share import Share

if TYPE_CHECKING:
    from gearpy.connectors.files.tables import BadRows, OnBad


class LineOptions(TypedDict, total=False):
    """Options of `files`, as it explains them."""

    zone: ZoneName | None
    out_of_order: Duration
    follow: bool
    poll: Duration
    on_lost: OnLost
    encoding: str
    errors: str
    on_bad: "OnBad"


_LOG: Final = logging.getLogger(__name__)
_NS_PER_MS: Final = 1_000_000


@overload
def files(
    *patterns: str | Path,
    parse: None = None,
    timestamp: Callable[[str], int | datetime] | None = None,
    **options: Unpack[LineOptions],
) -> Source[str]: ...


@overload
def files(
    *patterns: str | Path,
    parse: Callable[[str], T],
    timestamp: Callable[[T], int | datetime] | None = None,
    **options: Unpack[LineOptions],
) -> Source[T]: ...


def files(
    *patterns: str | Path,
    parse: Callable[[str], Any] | None = None,
    timestamp: Callable[[Any], int | datetime] | None = None,
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    follow: bool = False,
    poll: Duration = "1s",
    on_lost: OnLost = "fail",
    encoding: str = "utf-8",
    errors: str = "strict",
    on_bad: "OnBad" = "fail",
) -> Source[Any]:
    r"""Read the lines of text files; each file is a partition.

    A record is a line without its ending (``\n`` or ``\r\n``). The files are looked up once,
    when the application is built; with ``follow``, again and again, and one that appears later is
    read from its beginning. Relative paths start at the working directory; ``**`` matches folders
    of any depth. Names that end with ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` are unpacked.

    Event time: without ``timestamp`` a line has the time at which its file was last changed,
    and files are read in that order; with ``follow`` it has the time at which it was read.

    Args:
        patterns: paths, or patterns with ``*``, ``?``, ``[...]``.
        parse: makes the record of a line, such as `gearpy.regex` and `gearpy.logfmt` give it.
        timestamp: gives the event time of a record, ms since the epoch or a datetime.
        zone: name of the time zone of datetimes of ``timestamp`` that tell none, such as
            "Europe/Berlin".
        out_of_order: how far back in time a later line of the same file may be.
        follow: wait for lines to be added, and for more files, without end. A last line is kept
            back until its line ending is there. A file that has become shorter or was replaced
            is read from its beginning; this is logged. One that was removed is done with after a
            minute. One that gets another name which fits, too, is read again: let no pattern fit
            the names that a logger gives to old files. Those that were rotated while nothing was
            read are found in their folder, and read to their end first.
        poll: wait between two looks for more files.
        on_lost: "fail" if a followed file that was rotated meanwhile is not found, or "skip" to
            go on with the new one; this is logged.
        encoding: of the files; one that writes ASCII as ASCII.
        errors: what to do with bytes that are no text: "strict", "replace", "ignore".
        on_bad: what becomes of a line that is no text, where ``errors`` is "strict", or on which
            ``parse`` or ``timestamp`` raises: "fail" ends the application and names file and byte;
            "skip" leaves it out, logs and counts it; "quarantine" keeps its text for ``gear
            quarantine``; "side" gives it to `Stream.errors`, and counts it. With "fail",
            ``application.on-error`` decides about what ``parse`` and ``timestamp`` raise.

    Raises:
        ConfigError: a pattern matches no file, and nothing is followed; raised when the
            application is built.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> _ = Path("example.txt").write_text("to be\nor not\n")
        >>> app, results = gp.StreamApp("lines"), []
        >>> app.read(gp.files("example.txt")).map(str.upper).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        ['TO BE', 'OR NOT']
    """
    return FileSource(
        patterns,
        parse=parse,
        timestamp=in_zone("files", timestamp, zone),
        bound_ms=duration_ms(out_of_order),
        follow=follow,
        poll_ms=duration_ms(poll),
        on_lost=on_lost,
        decoder=Decoder(encoding, errors),
        on_bad=on_bad,
    )


def text_file(path: str | Path, *, append: bool = False) -> Sink:
    r"""Write ``str(value)`` and ``\n`` for each record into a UTF-8 file.

    The file is emptied at the start, unless ``append``. With ``n`` > 1 tasks there are ``n``
    files, ``name-00000-of-00002.txt`` and so on. Lines are on disk when an epoch is complete, and
    when the application has ended. After a failure the file is cut back to the newest complete
    epoch, so that it has each line once; a program that follows it must follow its name.

    Args:
        path: where to write; the folder must exist.
        append: go on at the end of what is there. A failure before the first complete epoch then
            writes records twice.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> app = gp.StreamApp("numbers")
        >>> app.read(gp.collection([1, 2])).write(gp.text_file("numbers.txt"))
        >>> _ = gp.run(app)
        >>> Path("numbers.txt").read_text()
        '1\n2\n'
    """
    return FileSink("text_file", path, text_lines, append=append)


def jsonl_file(path: str | Path) -> Sink:
    r"""Write each record as JSON on a line of its own.

    Dataclasses and NamedTuples become objects, dates and times ISO 8601 texts. Bytes, NaN and
    whatever else JSON has no form for is refused, with the record. Files are made as by
    `text_file`.

    Args:
        path: where to write; the folder must exist.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> app = gp.StreamApp("objects")
        >>> app.read(gp.collection([{"n": 1}])).write(gp.jsonl_file("objects.jsonl"))
        >>> _ = gp.run(app)
        >>> Path("objects.jsonl").read_text()
        '{"n":1}\n'
    """
    return FileSink("jsonl_file", path, json_lines, append=False)


class FilePlace(TypedDict):
    """Snapshot of a reader: the next line's byte offset, the watermark so far, and the file."""

    offset: int
    watermark_ms: int
    file: NotRequired[FileMark]  #: If it is followed.
    whole: NotRequired[bool]  #: It is packed, and all of it was read.


class FileSource(StampedSource[Any]):
    """Files as partitions; see `files`."""

    replayable = True

    def __init__(
        self,
        patterns: Sequence[str | Path],
        *,
        timestamp: Callable[[Any], int | datetime] | None,
        bound_ms: int,
        follow: bool,
        decoder: Decoder,
        poll_ms: int = 1000,
        on_lost: OnLost = "fail",
        now_ms: Callable[[], int] = wall_ms,
        on_bad: "OnBad" = "fail",
        parse: Callable[[str], Any] | None = None,
    ) -> None:
        if parse is not None and not callable(parse):
            raise ConfigError(f"files: parse is {parse!r:.100}, must be a function of a line")
        self._parse = parse
        check_paths("files", patterns)
        if on_bad != "fail":
            from gearpy.connectors.files.tables import known_on_bad  # noqa: PLC0415 - loads pyarrow

            on_bad = known_on_bad("files", on_bad)
        self._on_bad: OnBad = on_bad
        self.sets_bad_aside = on_bad == "side"
        self.quarantines_bad = on_bad == "quarantine"
        if on_lost not in get_args(OnLost):
            raise ConfigError(f'files: on_lost is {on_lost!r:.100}, must be "fail" or "skip"')
        self._on_lost: OnLost = on_lost
        self.bounded = not follow
        self.discovers = self._follow = follow
        self._has_dates = timestamp is None and not follow  # Lines have the time of their file.
        self._up_to_now = False
        self._poll_ms = poll_ms
        self._patterns = [os.path.expanduser(pattern) for pattern in patterns]  # noqa: PTH111
        self._timestamp = timestamp
        self._bound_ms = bound_ms
        self.is_by_arrival = timestamp is None
        self._decoder = decoder
        self._now_ms = now_ms
        self._found: list[str] = []

    @property
    def description(self) -> str:
        return f"files({', '.join(self._patterns)})"

    def up_to_now(self) -> "FileSource":
        """Follow the files, as they may have grown by the next run, up to the last whole line."""
        other = copy(self)
        other._follow = other._up_to_now = True  # noqa: SLF001 - of the same class
        other.bounded = other.discovers = True
        return other

    def partitions(self) -> Sequence[str]:
        """Return the absolute paths. All tasks must see the same files, so it looks only once."""
        if self.discovers:
            folders = [pattern for pattern in self._patterns if Path(pattern).is_dir()]
            if folders:
                raise ConfigError(*map(_nothing_found, folders))
            return ()
        if not self._found:
            mistakes = [
                _nothing_found(pattern) for pattern in self._patterns if not _matches(pattern)
            ]
            if mistakes:
                raise ConfigError(*mistakes)
            self._found = _found(self._patterns)
        return self._found

    def discover(self, task_index: int, parallelism: int, resume: Sequence[Any]) -> FollowedFiles:
        return FollowedFiles(
            ", ".join(self._patterns),
            lambda: _found(self._patterns),
            self.open,
            Share(task_index, parallelism),
            poll_ms=self._poll_ms,
            up_to_now=self._up_to_now,
            now_ms=self._now_ms,
        )

    def open(self, partition: str, resume: FilePlace | None) -> "FileReader":
        """Return a reader; the file itself is opened when it is read."""
        place: FilePlace = resume or {"offset": 0, "watermark_ms": 0}
        unpack = unpacker_of(partition)
        if not self._follow or (unpack is not None and self._up_to_now):
            offset = place["offset"] if unpack is None else 0
            try:
                info = os.stat(partition)  # noqa: PTH116 - there are many, and Path is slow
            except FileNotFoundError:
                raise ConfigError(
                    f"file {partition} is not there: each machine that reads must have the files "
                    "at the same paths"
                ) from None
            if offset > info.st_size:
                raise GearpyError(
                    f"{partition} has {info.st_size} bytes, cannot resume at {offset}: it was "
                    "changed since it was read"
                )
            file: ReadableFile = (
                RegularFile(partition, info) if unpack is None else PackedFile(partition, unpack)
            )
            size, changed_ms = info.st_size, info.st_mtime_ns // _NS_PER_MS
        elif unpack is not None:
            raise ConfigError(
                f"files: {partition} is packed, so nothing will be added to it: let no pattern fit "
                "it, or read it without follow=True"
            )
        else:  # It may have gone since it was found.
            mark = place.get("file")
            file = GrowingFile(partition, mark=mark, on_lost=self._on_lost)
            size, changed_ms = 0, 0
            if self._has_dates:
                with suppress(FileNotFoundError):
                    changed_ms = os.stat(partition).st_mtime_ns // _NS_PER_MS  # noqa: PTH116 - as above
        stamps: Stamps
        if self._has_dates:
            begins_ms = resume["watermark_ms"] if resume else changed_ms
            stamps = Fixed(max(begins_ms, changed_ms) if self._up_to_now else begins_ms)
        else:
            stamps = stamps_of(
                "files(timestamp)",
                self._timestamp,
                bound_ms=self._bound_ms,
                now_ms=self._now_ms,
                watermark_ms=resume["watermark_ms"] if resume else MIN_MS,
            )
        return FileReader(
            partition,
            file,
            stamps,
            self._decoder,
            offset=place["offset"],
            size=size,
            on_bad=self._on_bad,
            parse=self._parse,
            up_to_now=self._up_to_now,
            is_read=place.get("whole", False),
        )


class FileReader(FollowedFile, StampedReader):
    """Reads the lines of one file."""

    def __init__(
        self,
        path: str,
        file: ReadableFile,
        stamps: Stamps,
        decoder: Decoder,
        *,
        offset: int,
        size: int,
        on_bad: "OnBad" = "fail",
        parse: Callable[[str], Any] | None = None,
        up_to_now: bool = False,
        is_read: bool = False,
    ) -> None:
        StampedReader.__init__(self, stamps)
        self._parse = parse
        self._unparsed: Sequence[tuple[str, OperatorError]] = ()
        self._aside = SetAside()
        self._bad: BadRows | None = None
        if on_bad != "fail":
            from gearpy.connectors.files import tables  # noqa: PLC0415 - loads pyarrow

            self._bad = tables.BadRows("files", path, on_bad, self._aside)
        self.restarts = 0  #: How often the file was begun anew because it changed.
        self._path = path
        self._file = file
        self._size = size
        self._may_end = not file.grows
        self._up_to_now = up_to_now and file.grows
        self._until: int | None = None  # What stands behind that came later.
        self._is_packed = isinstance(file, PackedFile)
        self.finished = is_read
        self._blocks = LineBlocks(
            file.read_at, decoder, name=path, offset=offset, keep_tail=file.grows, bad=self._bad
        )

    def read_batch(self, max_records: int) -> Batch | None:
        lines = self._blocks.take(max_records)
        self.finished = self._may_end and self._blocks.exhausted
        self.idle = not lines and not self.finished
        records: list[Any] = lines
        if self._parse is not None and lines:
            parse = partial(each, "files(parse)", self._parse)
            _, records, self._unparsed = that_pass(parse, lines)
        batch = Batch(*self._stamps.stamped(records)) if lines else None
        if self._bad is not None:
            for line, error in self.take_refused():
                self._bad.take(error.operator, error.cause, line, what="line")
            self.skipped_records = self._bad.skipped
        if batch is not None:
            if self._up_to_now:
                self._until = self._until or self._file.size
                self.idle = self.finished = self._has_passed(self._until)
            return batch
        if self.idle and self._file.has_changed(self._blocks.read_to):
            self.restarts += 1
            _LOG.warning(
                "%s was cut or replaced, reading it from the start; %d bytes without a newline "
                "dropped",
                self._path,
                self._blocks.read_to - self._blocks.offset,
            )
            self._size, self._until = 0, None
            self._blocks.restart()
        elif self.idle and self._up_to_now:
            self.finished, self.is_gone = True, self._file.size is None
        return None

    def call_when_ready(self, wake: Callable[[], object]) -> bool:
        look = self._file.look_for_change(self._blocks.read_to)
        return look is not None and call_when(self, look, wake)

    def take_refused(self) -> Sequence[tuple[Any, OperatorError]]:
        unparsed, self._unparsed = self._unparsed, ()
        return [*unparsed, *super().take_refused()] if unparsed else super().take_refused()

    def _has_passed(self, until: int | None) -> bool:
        blocks = self._blocks
        if until is None or blocks.read_to <= until or blocks.position < until:
            return False
        return blocks.offset >= until

    def snapshot(self) -> FilePlace:
        offset = self._blocks.offset
        place: FilePlace = {"offset": offset, "watermark_ms": self.watermark_ms}
        mark = self._file.mark(offset)
        if self.finished and self._is_packed:
            place["whole"] = True
        return place if mark is None else {**place, "file": mark}

    @property
    def progress(self) -> tuple[int, int]:
        return self._blocks.position, max(self._size, self._blocks.read_to)

    def close(self) -> None:
        forget(self)
        self._file.close()

    def let_end(self) -> None:
        if not self._may_end:
            _LOG.info(
                "%s was removed; %d bytes without a newline dropped",
                self._path,
                self._blocks.read_to - self._blocks.offset,
            )
        self._may_end = True


def _found(patterns: Sequence[str]) -> list[str]:
    return sorted({os.path.abspath(path) for each in patterns for path in _matches(each)})  # noqa: PTH100


def _matches(pattern: str) -> list[str]:
    # A name with brackets may be meant as it is.
    paths = [pattern] if os.path.lexists(pattern) else glob.glob(pattern, recursive=True)  # noqa: PTH207
    found = []
    for path in paths:
        with suppress(OSError):
            if stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - there are many
                found.append(path)
    return found


def _nothing_found(pattern: str) -> str:
    if Path(pattern).is_dir():
        return f"files: {pattern!r} is a folder: write {str(Path(pattern) / '*')!r}"
    if os.path.lexists(pattern):
        return f"files: {pattern!r} is not a regular file that can be read"
    return f"files: {no_match(pattern)}"
