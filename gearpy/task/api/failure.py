"""Turns an exception in user code into an `OperatorError` with operator, line and record."""

import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature
from operator import attrgetter
from pathlib import Path
from reprlib import repr as short_repr
from types import FrameType, TracebackType
from typing import Any, Final

from gearpy.errors import (
    CannotTravel,
    GearpyError,
    MessageLost,
    OperatorError,
    StoreAway,
    placed,
)
from gearpy.messages.app import FailureKind
from gearpy.messages.summaries import ErrorCard

#: The exceptions of user code that are failures of the task. `sys.exit` ends a task, no more.
USER_ERRORS: Final = (Exception, SystemExit)


class ProgramFailure(Exception):
    """The program has failed beside a record, which is not to blame.

    A timer that fired before it has raised, or a method gave back what is no output.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def outputs_of(returned: Any, method: str) -> Iterable[Any]:
    """Return the output that a method of a task gave back.

    Raises:
        ProgramFailure: it is nothing to iterate over; it says what to return.
    """
    if returned is None:
        return ()
    if isinstance(returned, Iterable):
        return returned
    text = (
        f"{method} returned {short_repr(returned)}: yield gp.Message(value, timestamp), or return "
        "a list of messages, or None"
    )
    raise ProgramFailure(TypeError(text))


#: The folder of a program that was fetched: its hash, and its name.
_FETCHED: Final = re.compile(r"^.*/[0-9a-f]{64}-[^/]+/")
_GEARPY: Final = str(Path(__file__).resolve().parents[2]) + os.sep
_NO_ARGUMENT: Final = re.compile(
    r"^(?P<called>[\w.]+)\(\) got an unexpected keyword argument '(?P<given>\w+)'"
)
_RECORD_CHARS_MAX: Final = 500
_TRACEBACK_CHARS_MAX: Final = 8000
_CAUSE_CHARS_MAX: Final = 4000  # Cards travel in control messages, whose size has a limit.
_NOTHING: Final = object()


def operator_error(
    operator: str,
    error: BaseException,
    *,
    record: Any = _NOTHING,
    event_time_ms: int | None = None,
) -> OperatorError:
    """Describe an exception of user code. An `OperatorError` is returned as it is."""
    if isinstance(error, OperatorError):
        return error
    error = raised_by_user(error)
    source, line = source_of(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:  # Of a file that was not run yet.
        source, line = f"{error.filename}:{error.lineno}", (error.text or "").strip()
    return OperatorError(
        operator=operator,
        cause=_cause_of(error, source),
        source=source,
        source_line=line,
        record="" if record is _NOTHING else shown(record),
        event_time_ms=event_time_ms,
        traceback=_trace_of(error),
        is_final=is_final(error),
        is_away=isinstance(error, StoreAway),
    )


def is_final(error: BaseException) -> bool:
    """Tell whether something would fail again in the same way, however often it is tried."""
    return isinstance(error, CannotTravel) or getattr(error, "is_final", False)


def kind_of(error: BaseException) -> FailureKind:
    """Return the kind of a failure, by which the app master decides on restarts."""
    if isinstance(error, MessageLost):
        return "lost"
    return "final" if is_final(error) else "raised"


def _cause_of(error: BaseException, source: str) -> str:
    if isinstance(error, CannotTravel | StoreAway):
        return str(error)
    if not str(error):
        return type(error).__name__
    # With no line of the user's it was a step that could not look a key up.
    is_ours = not source or _is_library(source)
    is_key = isinstance(error, TypeError) and "unhashable type" in str(error) and is_ours
    cure = ": choose a key of text, numbers or tuples of them" if is_key else _arguments(error)
    # Newer Pythons have advice of their own, which knows less.
    said = str(error).partition(". Did you mean '")[0] if cure else str(error)
    return f"{type(error).__name__}: {said}{cure}"


def _arguments(error: BaseException) -> str:
    """Advise on an argument that a public function or method of gearpy does not take."""
    if not (isinstance(error, TypeError) and (found := _NO_ARGUMENT.search(str(error)))):
        return ""
    called = _public(found["called"])
    last = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1:]
    theirs = any(found["called"] in {**frame.f_globals, **frame.f_locals} for frame in last)
    if called is None or theirs:  # A function of the program may have the same name.
        return ""
    takes = [f"{name}=" for name in signature(called).parameters if name != "self"]
    nearest = get_close_matches(f"{found['given']}=", takes, n=1)
    return f": did you mean {nearest[0]}?" if nearest else f": it takes {', '.join(takes)}"


def _public(path: str) -> Any:
    """Return a function of gearpy by its path, or a method of streams; None if it is neither."""
    gearpy, (of, _, method) = sys.modules["gearpy"], path.rpartition(".")
    for stream in (gearpy.Stream, gearpy.KeyedStream, gearpy.WindowedStream):
        if of in {theme.__name__ for theme in stream.__mro__}:  # Methods are defined by theme.
            return getattr(stream, method, None)
    try:
        return attrgetter(path)(gearpy)
    except AttributeError:
        return None


def source_of(trace: TracebackType | None) -> tuple[str, str]:
    """Return ``file:line`` and text of the innermost line that is not gearpy's own."""
    return source_in(traceback.walk_tb(trace))


def source_in(frames: Iterable[tuple[FrameType, int]]) -> tuple[str, str]:
    """Return the same of frames and the lines they are at, the outermost first.

    Standard-library lines are passed over for the user's line that called them, if there is one.
    """
    found = ("", "")
    for frame, number in frames:
        name = frame.f_code.co_filename
        if name.startswith((_GEARPY, "<")):
            continue
        if found[0] and _is_library(name):
            break
        found = placed_line(name, number)
    return found


def placed_line(path: str, number: int) -> tuple[str, str]:
    """Return a place in a file as people know that, and the text of the line."""
    return f"{_FETCHED.sub('', path)}:{number}", linecache.getline(path, number).strip()


def note_place(error: GearpyError) -> None:
    """Note on an error that gearpy raised which line of the user's has led to it.

    One that the user's code raises itself has its own text.
    """
    source, line = source_of(error.__traceback__)
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if source and files[-1].startswith(_GEARPY) and not isinstance(error, OperatorError):
        error.add_note(placed(source, line))


def complete(error: OperatorError) -> None:
    """Add the place in the code, which a core that blamed user code cannot find out."""
    if error.__cause__ is not None and not error.traceback:
        error.source, error.source_line = source_of(error.__cause__.__traceback__)
        error.traceback = _trace_of(error.__cause__)


def raised_by_user(error: BaseException) -> BaseException:
    """Return the error of user code; a generator of ours turns `StopIteration` into another."""
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        return error.__cause__
    return error


def card_of(
    error: BaseException, *, operator: str = "", task: str = "", epoch: int = 0
) -> ErrorCard:
    """Make the card of any exception that ended a task or an actor."""
    if not isinstance(error, OperatorError):
        error = operator_error(operator, error)
    return ErrorCard(
        cause=_cut(error.cause),
        operator=error.operator,
        task=task,
        source=error.source,
        source_line=_cut(error.source_line, _RECORD_CHARS_MAX),
        record=_cut(error.record, _RECORD_CHARS_MAX),
        # A plain number: the promises of a late record are not for cards.
        event_time_ms=None if error.event_time_ms is None else int(error.event_time_ms),
        traceback=error.traceback[-_TRACEBACK_CHARS_MAX:],
        epoch=epoch,
        is_away=error.is_away,
    )


def _trace_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-_TRACEBACK_CHARS_MAX:]


def _is_library(filename: str) -> bool:
    return "site-packages" in filename or "/lib/python" in filename


def shown(record: Any) -> str:
    """Return a record as text of limited length, also if its `__repr__` fails."""
    try:
        text = repr(record)
    except Exception as error:  # noqa: BLE001 - user code in __repr__
        text = f"<{type(record).__name__} whose repr raised {type(error).__name__}>"
    return _cut(text, _RECORD_CHARS_MAX)


def _cut(text: str, chars_max: int = _CAUSE_CHARS_MAX) -> str:
    return text if len(text) <= chars_max else text[:chars_max] + "..."
