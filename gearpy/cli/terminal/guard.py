"""Ends a command with the right exit code and nothing but the right words.

The first Ctrl-C or SIGTERM stops it cleanly, the second ends it at once. While an application runs
in this process, `gearpy.cluster.embedded.signals` takes both.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import typer

from gearpy.cli.terminal.exits import INTERRUPTED, exit_code_of, exit_code_of_signal
from gearpy.cluster.embedded.output import NO_READER, give_up_output, is_of_no_reader
from gearpy.errors import GearpyError


@contextmanager
def guarded(*, as_json: bool = False, verbose: bool = False) -> Iterator[None]:
    """Show an error of ours without a traceback, and turn it into an exit code.

    A bug of gearpy's is no error of ours: it goes on, with its traceback.
    """
    try:
        with stoppable():
            try:
                yield
            except typer.Exit:
                sys.stdout.flush()
                raise
            sys.stdout.flush()
    except BrokenPipeError:
        give_up_output()
        raise typer.Exit(NO_READER) from None
    except StoppedBySignal as stopped:
        raise typer.Exit(exit_code_of_signal(stopped.number)) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except GearpyError as error:
        if is_of_no_reader(error):
            give_up_output()
            raise typer.Exit(NO_READER) from None
        from gearpy.cli.terminal.output import print_error

        print_error(error, as_json=as_json, verbose=verbose)
        raise typer.Exit(exit_code_of(error)) from None


# -- signals ---------------------------------------------------------------------------------

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def end_at_signals() -> None:
    """End this process at Ctrl-C and SIGTERM from now on, as one that was interrupted.

    For the time before and after `stoppable`, while modules are loaded, or threads are waited for.
    """
    for number in filter(_is_ours, _SIGNALS):
        signal.signal(number, lambda number, _frame: os._exit(exit_code_of_signal(number)))


@contextmanager
def ended_at_once() -> Iterator[None]:
    """End this process as soon as the command in it has ended, and all output is written.

    Python would first take apart all that was loaded and made, which of libraries of data and of a
    million rows takes a twentieth of a second. Not for commands that run programs of users, who
    may have something done at the end.
    """
    try:
        yield
    except SystemExit as ended:
        if isinstance(ended.code, int):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ended.code)
        raise


class StoppedBySignal(KeyboardInterrupt):
    """A signal has come, with this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `StoppedBySignal` in the main thread at the first signal; end at the second.

    A signal that the parent process chose to ignore stays ignored.
    """
    with _handled_by(_Handler()):
        yield


@contextmanager
def _handled_by(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS if _is_ours(number)}
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class SignalNote:
    """Holds the number of a signal that has come, or None."""

    def __init__(self) -> None:
        self.number: int | None = None

    def take(self, number: int, _frame: FrameType | None) -> None:
        if self.number is not None:
            os._exit(exit_code_of_signal(number))
        self.number = number


@contextmanager
def noting_signals() -> Iterator[SignalNote]:
    """Note the first signal, for work that ends itself between two steps; end at the second."""
    note = SignalNote()
    with _handled_by(note.take):
        yield note


class _Handler:
    def __init__(self) -> None:
        self._came = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self._came:
            os._exit(exit_code_of_signal(number))
        self._came = True
        raise StoppedBySignal(number)


def _is_ours(number: int) -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(number) is not signal.SIG_IGN
