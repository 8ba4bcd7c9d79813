"""Output that nobody reads any more, as in ``python flow.py | head``."""

import os
import select
import sys
from contextlib import suppress
from typing import Final, TextIO

from gearpy.errors import GearpyError, OperatorError

NO_READER: Final = 141  #: The exit code then: 128 + SIGPIPE.


def is_of_no_reader(error: GearpyError) -> bool:
    is_about_a_pipe = isinstance(error, OperatorError) and error.cause.startswith(
        BrokenPipeError.__name__
    )
    return is_about_a_pipe and (_has_no_reader(sys.stdout) or _has_no_reader(sys.stderr))


def give_up_output() -> None:
    """Let the interpreter's last flush succeed, which else would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if _has_no_reader(stream):
            with suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _has_no_reader(stream: TextIO) -> bool:
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)  # Errors and hang-ups are reported unasked.
    except (OSError, ValueError):
        return False
    return bool(poll.poll(0))
