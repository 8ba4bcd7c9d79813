"""Ends a process of an application when its worker is gone: its standard input ends then.

On Linux the kernel itself then kills the whole process group: it is asked to send a signal when
the pipe is closed (``F_SETSIG``). That reaches also a process that is stopped or whose code keeps
the interpreter, and what it has started. The parent-death signal does not do: it comes when the
*thread* ends that started the process, goes to the process alone, and so lets what the process
has started live on. Elsewhere a thread watches the pipe. What has left the group by then is ended
by the next worker of the machine, see `leftovers`.
"""

import fcntl
import os
import select
import signal
import threading
from typing import Final

_STDIN: Final = 0


def hold_lifeline() -> None:
    """Die with the worker from now on; standard input is empty for everybody else.

    Call when all that the worker has to say was read from it.
    """
    lifeline = os.dup(_STDIN)  # Processes of users do not inherit it.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    have_kernel_watch(lifeline)
    threading.Thread(target=_watch, args=(lifeline,), name="gearpy-lifeline", daemon=True).start()


def have_kernel_watch(lifeline: int) -> None:
    """Have the kernel kill the group when the worker is gone, where it can; needs no thread."""
    if _leads_group():
        end_group_with(lifeline, os.getpgrp())
    poll = select.poll()
    poll.register(lifeline, 0)  # The end is reported unasked.
    has_ended = bool(poll.poll(0))
    if has_ended:  # Before the kernel was asked.
        _die()


def end_group_with(pipe: int, group: int) -> None:
    """Have the kernel kill a group when a pipe ends, of which a process of it has the other end."""
    if (set_signal := getattr(fcntl, "F_SETSIG", None)) is not None:
        fcntl.fcntl(pipe, fcntl.F_SETOWN, -group)
        fcntl.fcntl(pipe, set_signal, signal.SIGKILL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)  # The worker writes nothing more.
    _die()


def _die() -> None:
    if _leads_group():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _leads_group() -> bool:
    return os.getpgrp() == os.getpid()
