"""Lines and tables on standard output. The only module beside the command line that prints."""

import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TextIO

from gearpy.connectors.files.stamps import each
from gearpy.connectors.files.writers import json_lines
from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.task.api.interfaces import Batch, Sink, SinkWriter
from gearpy.task.api.window_result import WindowResult

#: One for the process: several sinks may write to the same terminal.
_LOCK: Final = threading.Lock()


def console(
    *, columns: Sequence[str] | Mapping[str, str] | None = None, file: TextIO | None = None
) -> Sink:
    """Print each record on a line of its own.

    Without ``columns`` a text is printed as it is and anything else as ``str(record)``. With
    them, one header and then a table. A column shows the attribute, key or NamedTuple field of
    its name; of a tuple or list without names, the item at its place. Start and end of a window
    result are shown as times in UTC.

    Args:
        columns: titles; or a mapping from title to the name of the field shown below it.
        file: where to print instead of standard output.

    Example:
        >>> import gearpy as gp
        >>> app = gp.StreamApp("table")
        >>> pairs = app.read(gp.collection([("apple", 3), ("fig", 12)]))
        >>> pairs.write(gp.console(columns=("fruit", "count")))
        >>> _ = gp.run(app)
        fruit  count
        apple      3
        fig       12
    """
    return ConsoleSink(columns, file)


def stdout(*, form: Literal["text", "jsonl"] = "text") -> Sink:
    """Print each record on a line of its own, for another program to read.

    Args:
        form: "text" prints a text as it is and anything else as ``str(record)``, as `console` does;
            "jsonl" prints JSON, as `jsonl_file` writes it.

    Raises:
        ConfigError: there is no such form.

    Example:
        >>> import gearpy as gp
        >>> app = gp.StreamApp("objects")
        >>> app.read(gp.collection([{"n": 1}])).write(gp.stdout(form="jsonl"))
        >>> _ = gp.run(app)
        {"n":1}
    """
    if form not in {"text", "jsonl"}:
        raise ConfigError(f"stdout: form is {form!r}, must be one of text, jsonl")
    return ConsoleSink(None, None, name="stdout", lines_of=_json_lines if form == "jsonl" else None)


class ConsoleSink(Sink):
    """Standard output; see `console`. Gearpump: `LoggerSink`."""

    of_program = True

    def __init__(
        self,
        columns: Sequence[str] | Mapping[str, str] | None,
        file: TextIO | None,
        *,
        name: str = "console",
        lines_of: Callable[[Sequence[Any]], list[str]] | None = None,
    ) -> None:
        self._name = name
        self.columnar = lines_of is not None
        self._lines_of = lines_of or (lambda values: each("console", str, values))
        # All tasks share the table, and so its header and its widths.
        self._table = None if columns is None else TextTable("console", columns)
        self._file = file

    @property
    def description(self) -> str:
        return self._name

    def open(self, task_index: int, parallelism: int) -> "ConsoleWriter":
        return ConsoleWriter(
            self._lines_of if self._table is None else self._table.lines, self._file
        )


class ConsoleWriter(SinkWriter):
    """Prints a batch at a time, so that lines of several tasks stay whole."""

    atomic = True

    def __init__(self, lines_of: Callable[[Sequence[Any]], list[str]], file: TextIO | None) -> None:
        self._lines_of = lines_of
        self._file = file

    def write_batch(self, batch: Batch) -> None:
        with _LOCK:
            lines = self._lines_of(batch.values)
            if lines:
                # With its end in one write: other threads and processes print there too.
                text = "\n".join([*lines, ""])
                file = self._file or sys.stdout
                try:
                    print(text, end="", file=file, flush=True)
                except UnicodeEncodeError:
                    # The application must not end because the terminal lacks a character.
                    encoding = file.encoding or "ascii"
                    shown = text.encode(encoding, "backslashreplace").decode(encoding)
                    print(shown, end="", file=file, flush=True)


def _json_lines(values: Sequence[Any]) -> list[str]:
    return json_lines("stdout", values).decode().split("\n")[:-1]


_GAP: Final = "  "
_ENDS: Final = {MIN_MS: "-inf", MAX_MS: "inf"}
_WINDOW_TIMES: Final = ("start", "end")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MISSING: Final = object()
_SCALARS: Final = (str, bytes, int, float, Decimal, datetime, type(None))


class TextTable:
    """Lines of text for records, below one header.

    A column becomes wider when a longer text comes; numbers stand to the right.
    """

    def __init__(self, operator: str, columns: Sequence[str] | Mapping[str, str]) -> None:
        if isinstance(columns, str) or not columns:
            raise ConfigError(f"columns are {columns!r}, need a sequence such as ('key', 'value')")
        self._operator = operator
        self._titles = list(columns)
        self._fields = list(columns.values()) if isinstance(columns, Mapping) else self._titles
        self._widths = [len(title) for title in self._titles]
        self._has_header = False

    def lines(self, values: Sequence[Any]) -> list[str]:
        rows = each(self._operator, self._row, values)
        texts = [[_one_line(cell) for cell in row] for row in rows]
        for row in texts:
            self._widths = list(map(max, self._widths, map(len, row)))
        lines = [] if self._has_header or not rows else [self._line(rows[0], self._titles)]
        self._has_header = self._has_header or bool(rows)
        return lines + [self._line(row, text) for row, text in zip(rows, texts, strict=True)]

    def _line(self, row: Sequence[Any], texts: Sequence[str]) -> str:
        cells = zip(row, texts, self._widths, strict=True)
        aligned = [
            text.rjust(w)
            if (isinstance(cell, int | float | Decimal) and not isinstance(cell, bool | _Time))
            else text.ljust(w)
            for cell, text, w in cells
        ]
        return _GAP.join(aligned).rstrip()

    def _row(self, record: Any) -> list[Any]:
        if isinstance(record, tuple | list) and not _names(record):
            if len(record) < len(self._fields):
                raise ConfigError(
                    f"{len(self._fields)} columns, but {len(record)} items in the record"
                )
            return list(record[: len(self._fields)])
        if len(self._fields) == 1 and isinstance(record, _SCALARS):
            return [record]
        return [_cell(record, field) for field in self._fields]


class _Time(int):
    """Milliseconds since the epoch, to be shown as a time."""

    __slots__ = ()

    def __str__(self) -> str:
        if self in _ENDS:
            return _ENDS[self]
        try:
            time = _EPOCH + timedelta(milliseconds=self)
        except OverflowError:
            return repr(int(self))
        spec = "milliseconds" if self % 1000 else "seconds"
        return time.isoformat(timespec=spec).replace("+00:00", "Z")


def _names(record: Any) -> Iterable[Any]:
    """Return the names of a record's fields; a plain tuple has none."""
    if isinstance(record, Mapping):
        return record
    if isinstance(record, tuple | list):
        return getattr(record, "_fields", ())
    names: Iterable[Any] = getattr(record, "__dict__", ()) or getattr(record, "__slots__", ())
    return names


def _cell(record: Any, field: str) -> Any:
    if isinstance(record, Mapping):
        found = record.get(field, _MISSING)
    elif isinstance(record, tuple) and field not in _names(record):
        found = _MISSING  # A tuple has methods, too: count and index.
    else:
        found = getattr(record, field, _MISSING)
    if found is _MISSING:
        names = ", ".join(map(str, _names(record)))
        raise ConfigError(f"no field {field!r} in the record, only: {names or 'none'}")
    is_time = isinstance(record, WindowResult) and field in _WINDOW_TIMES
    return _Time(found) if is_time else found


def _one_line(cell: Any) -> str:
    text = cell.isoformat() if isinstance(cell, datetime) else str(cell)
    return text.replace("\r", "\\r").replace("\n", "\\n")
