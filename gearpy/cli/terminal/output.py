"""Errors, tables and JSON, as people and programs read them.

Text of users is always a `rich.text.Text`, never markup. A pipe gets the same without rich.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from gearpy.distribution import program
from gearpy.errors import (
    AskTimeout,
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    GearpyError,
    GraphError,
    OperatorError,
)
from gearpy.messages.summaries import ErrorCard
from gearpy.views import text

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from rich.console import Console

#: Wider than any line: what reads a file or a pipe wants lines whole.
_ENDLESS: Final = 10_000
_STYLES: Final = {
    "error": "bold red",
    "fix": "green",
    "guarantee": "cyan",
    "hint": "yellow",
    "traceback": "dim",
}


def print_error(error: GearpyError, *, as_json: bool = False, verbose: bool = False) -> None:
    if as_json:
        print(json.dumps(json_of_error(error)), file=sys.stderr)
        return
    _print_lines(sys.stderr, error_lines(error, verbose=verbose))


def print_hints(hints: Iterable[str]) -> None:
    """Print hints on standard error: no mistakes, but perhaps not intended."""
    _print_lines(sys.stderr, (f"hint: {hint}" for hint in hints))


@contextmanager
def hint_if_cut_off(hint: str) -> Iterator[None]:
    """Prints what goes on without a command, when Ctrl-C or the loss of the master ends that."""
    try:
        yield
    except (KeyboardInterrupt, ConnectionLost, AskTimeout):
        print_hints([hint])
        raise


def print_guarantee(lines: Iterable[str]) -> None:
    """Print on standard error the guarantee from end to end, and the steps that limit it."""
    _print_lines(sys.stderr, (f"guarantee: {line}" for line in lines))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output; labels such as ``error:`` have their colours there too."""
    _print_lines(sys.stdout, lines)


def _print_lines(out: TextIO, lines: Iterable[str]) -> None:
    if not out.isatty() and "FORCE_COLOR" not in os.environ:  # Needs nothing of rich.
        out.writelines(f"{text.printable(line).expandtabs()}\n" for line in lines)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, markup=False, highlight=False, emoji=False)
    for line in lines:
        label, colon, rest = line.partition(": ")
        shown = Text(text.printable(line))
        if colon and label in _STYLES and rest:
            shown.stylize(_STYLES[label], 0, len(label) + 1)
        console.print(shown, soft_wrap=True)


def error_lines(error: GearpyError, *, verbose: bool = False) -> Iterator[str]:
    """Return an error as lines for people: the cause, the place, and the remedy."""
    if isinstance(error, OperatorError):
        yield from card_lines(error, verbose=verbose)
    elif isinstance(error, ConfigError) and len(error.mistakes) > 1:
        subject = "the graph has" if isinstance(error, GraphError) else "there are"
        yield f"error: {subject} {len(error.mistakes)} mistakes"
        yield from (f"  - {mistake}" for mistake in error.mistakes)
    else:
        yield f"error: {error}"
    if not isinstance(error, OperatorError):  # Its card has said it.
        for note in getattr(error, "__notes__", ()):
            yield from note.splitlines()
    if isinstance(error, AuthenticationFailed):
        yield (
            "fix: use the cluster's secret file: copy it here, or name it with "
            "--set transport.secret-file=FILE"
        )
    elif isinstance(error, ConnectionLost) and str(error).startswith("no cluster"):
        from gearpy.cluster.client.runs import live_runs

        if runs := ", ".join(map(str, live_runs())):
            yield (
                f"fix: no cluster is needed beside a run ({runs}) for gear top, why, info, report, "
                "state, quarantine, kill, and gear app describe, scale, stop; another program "
                "takes its place when it was stopped, by 'gear run --resume NAME PROGRAM'"
            )
        start = program("local")
        yield f"fix: start a cluster with {start}, or name another with --master host:port"
    elif isinstance(error, ConnectionLost) and str(error).startswith("no master leads"):
        yield (
            "fix: start those that are away over their folders: of all masters more than half must "
            "answer, and find a leader within seconds; what runs goes on"
        )


def card_lines(
    card: OperatorError | ErrorCard, *, verbose: bool = False, again: str = ""
) -> Iterator[str]:
    """Yield an error of user code as lines: the cause, its operator, its place, the record."""
    yield f"error: {card.cause}"
    facts = {"in": card.operator, "at": card.source, "": card.source_line, "record": card.record}
    for label, fact in facts.items():
        if fact:
            yield f"  {label:<6}  {fact}" if label else f"            {fact}"
    if card.event_time_ms is not None:
        yield f"  time    {text.watermark(card.event_time_ms)} ({card.event_time_ms} ms)"
    if again:
        yield f"  again   {again}"
    if verbose and card.traceback:
        yield from (f"  {line}" for line in card.traceback.splitlines())
    elif card.traceback:
        yield "  more    with --verbose"


def json_of_error(error: GearpyError) -> dict[str, Any]:
    """Return an error as plain values: its class, its text, and its fields."""
    fields = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {"error": type(error).__name__, "message": str(error), **fields}


def print_json(value: Any) -> None:
    print(json.dumps(value))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on standard output. Columns named with a leading ``#`` are numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    wide = None if sys.stdout.isatty() else _ENDLESS
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        is_number = name.startswith("#")
        made.add_column(name.lstrip("#"), justify="right" if is_number else "left")
    for row in rows:
        made.add_row(*(Text(text.printable(cell)) for cell in row))
    console = Console(width=wide)
    with console.capture() as capture:
        console.print(made)
    # Cells are padded to the width of their column; at the end of a line nobody wants that.
    sys.stdout.write("\n".join(line.rstrip(" ") for line in capture.get().split("\n")))


def headings(schema: "pa.Schema") -> list[str]:
    """Return the names of columns of Arrow, as `table` takes them."""
    from pyarrow.types import is_floating, is_integer  # type: ignore[import-untyped]

    is_number = [is_integer(each) or is_floating(each) for each in schema.types]
    return [
        f"#{name}" if number else name for name, number in zip(schema.names, is_number, strict=True)
    ]


def errors_console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)
