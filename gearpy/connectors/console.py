"""Lines and tables on standard output. The only module beside the command line that prints."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TextIO

from gearpy.connectors.files.stamps import each
from gearpy.connectors.files.writers import json_lines
from gearpy.connectors.folders.text_columns import TextTable
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import Batch, Sink, SinkWriter

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
        self.columnar = self.takes_results = lines_of is not None
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
