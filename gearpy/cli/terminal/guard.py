"""Ends a command with the right exit code and nothing but the right words."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import typer

from gearpy.cli.terminal.exits import INTERRUPTED, NO_READER, exit_code_of, exit_code_of_signal
from gearpy.cli.terminal.signals import Stopped, stoppable
from gearpy.errors import GearpyError, OperatorError

__all__ = ["guarded"]


@contextmanager
def guarded(*, as_json: bool = False, verbose: bool = False) -> Iterator[None]:
    """Show an error of ours without a traceback, and turn it into an exit code.

    A bug of gearpy's is no error of ours: it goes on, with its traceback.
    """
    try:
        with stoppable():
            yield
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
        raise typer.Exit(NO_READER) from None
    except Stopped as stopped:
        raise typer.Exit(exit_code_of_signal(stopped.number)) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except GearpyError as error:
        if _means_broken_pipe(error):
            _give_up_output()
            raise typer.Exit(NO_READER) from None
        from gearpy.cli.terminal.output import print_error

        print_error(error, as_json=as_json, verbose=verbose)
        raise typer.Exit(exit_code_of(error)) from None


def _means_broken_pipe(error: GearpyError) -> bool:
    """Tell whether an operator printed to a reader that has gone, as in ``gear run ... | head``.

    An operator may also have lost a pipe of its own, and that is a failure.
    """
    is_about_a_pipe = isinstance(error, OperatorError) and error.cause.startswith(
        BrokenPipeError.__name__
    )
    return is_about_a_pipe and (_has_no_reader(sys.stdout) or _has_no_reader(sys.stderr))


def _has_no_reader(stream: TextIO) -> bool:
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)  # Errors and hang-ups are reported unasked.
    except (OSError, ValueError):
        return False
    return bool(poll.poll(0))


def _give_up_output() -> None:
    """Let the interpreter's last flush succeed, which else would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if _has_no_reader(stream):
            with suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
