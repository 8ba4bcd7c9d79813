"""Executors as forks of the process that runs a program: they have the program as it is there.

An embedded run on several processes needs no file of the program, so it may be a script, a cell of
a notebook, or functions within functions. A fork of the process, made before the run has threads,
is the fork server of its executors; a lost executor is forked from it again.
"""

import gc
import os
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NoReturn, Self

import msgspec

from gearpy.cluster.processes.fork_server import ForkServer, why_impossible
from gearpy.cluster.processes.forker import MESSAGE_BYTES_MAX, CanFork, serve
from gearpy.cluster.worker.actor import Launched
from gearpy.cluster.worker.child import main
from gearpy.cluster.worker.processes import ChildPlace, ProcessLauncher
from gearpy.cluster.worker.threads import ThreadLauncher
from gearpy.core.app.hosts import PROGRAM_PROCESS
from gearpy.errors import ConfigError
from gearpy.ids import MASTER_EXECUTOR
from gearpy.messages.client import LogText, ReadLog, Refused
from gearpy.messages.cluster import LaunchExecutor

_READY_S: Final = 30.0
_OUTPUTS: Final = {"stdout": 1, "stderr": 2}


class ProgramForks:
    """A fork server that is a fork of this process; a context manager.

    Programs that its children run are embedded before it is made. It should be made before the
    process has other threads: what they do is not done in a fork, and a lock that one has just then
    stays locked there.
    """

    def __init__(self) -> None:
        if why_not := why_impossible():
            raise ConfigError(
                f"a run on several processes needs Linux: {why_not}; elsewhere start a cluster "
                "(gear local --executors process) and submit the program there"
            )
        orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        inward, self._lifeline = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()  # Or what waits there would come once more from each fork.
        try:
            with warnings.catch_warnings():
                # Python warns of a fork where there are threads, as in a notebook.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except OSError as error:
            raise ConfigError(f"there is no process for the executors: {error}") from error
        if self._pid == 0:
            orders.close()
            os.close(self._lifeline)
            _serve_as_fork(inward, theirs)
        theirs.close()
        os.close(inward)
        self._orders = orders
        self.server = ForkServer((), Path(), orders=orders)

    def __enter__(self) -> Self:
        poll = select.poll()
        poll.register(self._orders, select.POLLIN)
        with ExitStack() as undone:
            undone.push(self)
            news = poll.poll(_READY_S * 1000) and self._orders.recv(MESSAGE_BYTES_MAX)
            why_not = msgspec.msgpack.decode(news, type=CanFork).why_not if news else "it has ended"
            if why_not:
                raise ConfigError(f"executors cannot be forked from this process: {why_not}")
            undone.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()
        os.close(self._lifeline)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # The program has waited for it.
            os.waitpid(self._pid, 0)


def _serve_as_fork(lifeline: int, orders: socket.socket) -> NoReturn:
    """Be a fork server, and in its children an executor; nothing of the program goes on here."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            # Ends of children are waited for, whatever the program does about its own.
            if number == signal.SIGCHLD or callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        os.dup2(lifeline, 0)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        for each in {lifeline, nothing} - {0, 1}:  # The program may have closed these.
            os.close(each)
        serve(orders.detach())
        for name, output in _OUTPUTS.items():  # Those of a notebook are no files.
            own = os.fdopen(
                output, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
            )
            setattr(sys, name, own)
        gc.enable()
        main(is_program_here=True)
    except BaseException:  # noqa: BLE001 - above are the frames of the program
        traceback.print_exc()
    finally:
        os._exit(1)


class PassedOutput:
    """An output of an executor, passed on to that of this process, line by line.

    Runs on: any thread.
    """

    _lock: Final = threading.Lock()

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, lines: bytes) -> None:
        stream = getattr(sys, self._name)
        text = lines.decode("utf-8", "backslashreplace")
        with self._lock, suppress(OSError, ValueError):  # It is closed, as by `head`.
            try:
                stream.write(text)
            except UnicodeEncodeError:
                encoding = stream.encoding or "ascii"
                stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()


class ProgramPlaces:
    """The places of executors that are forks of this process: its folder, and its outputs."""

    def of(self, _: LaunchExecutor) -> ChildPlace:
        out, errors = PassedOutput("stdout"), PassedOutput("stderr")
        return ChildPlace(folder=Path.cwd(), out=out, errors=errors, form="text")

    def release(self, place: ChildPlace, *, failed: bool) -> None:
        """Leave everything as it is."""

    def read_log(self, _: ReadLog) -> LogText | Refused:
        return Refused(reason="this run prints what its executors print")

    def close(self) -> None:
        """Leave everything as it is."""


class ProgramLauncher:
    """Starts executors as forks; those of the program's own memory, and app masters, as threads.

    Runs on: any thread.
    """

    def __init__(self, threads: ThreadLauncher, forks: ProcessLauncher) -> None:
        self._threads = threads
        self._forks = forks

    def launch(self, message: LaunchExecutor, on_exit: Callable[[str], None]) -> Launched:
        stays = message.executor_id == MASTER_EXECUTOR or PROGRAM_PROCESS in message.hosts
        return (self._threads if stays else self._forks).launch(message, on_exit)

    def close(self) -> None:
        self._forks.close()
        self._threads.close()
