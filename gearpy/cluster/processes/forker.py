"""The process that executors and app masters are forked from; `fork_server` is its worker's end.

It has loaded what they need, so that a fork of it is a warm one of them. It has no threads, forks
one child at a time, and keeps the number of a dead child until the worker buries it. It ends with
its worker, as they do; signals that ask processes to end are not for it.

A child may order forks itself, for programs that it wants tried: it gets a socket for that.
"""

import ctypes
import gc
import os
import select
import signal
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from gearpy.cluster.host.leftovers import MARK
from gearpy.cluster.processes.lifeline import have_kernel_watch

#: The environment variable that makes a process one; it has the number of its socket.
FORK_SERVER: Final = "_GEARPY_FORK_SERVER"
MESSAGE_BYTES_MAX: Final = 65_536
_STDIN: Final = 0
_STREAMS: Final = 3
#: What most processes of applications come to load, by name: some is of layers above this one.
_LOADED: Final = (
    *(f"gearpy.cluster.worker.{role}_role" for role in ("executor", "app_master", "actor_app")),
    "gearpy.cluster.worker.executor_page",
    "gearpy.dsl.application",
    *(f"gearpy.connectors.{kind}" for kind in ("memory", "streams.generator", "console")),
    *("gearpy.connectors.files.lines_files", "gearpy.connectors.folders.json"),
    *("uvloop", "encodings.idna", "runpy"),
)
_TASKS: Final = Path("/proc/self/task")
#: In a child that may order forks: where it does. In all others it stays empty.
OWN_ORDERS: Final[list[socket.socket]] = []


class Fork(msgspec.Struct, tag=True):
    """The order for a child with this working folder and mark; its three streams come along.

    One that ``orders`` may have forks made itself.
    """

    folder: str
    mark: str
    orders: bool = False


class Bury(msgspec.Struct, tag=True):
    """The order to free the number of a dead child."""

    pid: int


class CanFork(msgspec.Struct, tag=True):
    """The news that children can be forked, or else why they cannot."""

    why_not: str = ""


class Forked(msgspec.Struct, tag=True):
    """The number of a child, or the system's for the error; the child's descriptor comes along."""

    pid: int = 0
    error: int = 0


class Buried(msgspec.Struct, tag=True):
    """The exit code of a child, or the negative number of the signal that killed it."""

    code: int


Order: TypeAlias = Fork | Bury
Answer: TypeAlias = CanFork | Forked | Buried
_orders: Final = msgspec.msgpack.Decoder(Order)


def serve(number: int, load: Sequence[str] = _LOADED) -> bool:
    """Load modules, and fork children as the worker, or a child of it, says in a socket.

    Returns in each child: whether another child has ordered it, and not the worker.
    """
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    have_kernel_watch(_STDIN)
    for name in load:
        import_module(name)
    gc.freeze()  # Or each child would copy what the collector writes to.
    worker = socket.socket(fileno=number)
    threads = len(list(_TASKS.iterdir()))
    if threads > 1:  # Their locks would stay locked in a child, and nobody do their work.
        _say(worker, CanFork(f"it has {threads} threads when it starts"))
        os._exit(0)
    _say(worker, CanFork())

    askers = {worker.fileno(): worker}
    asker_of: dict[int, int] = {}  # Its keys are the forks that are not buried.
    while True:
        poll = select.poll()
        for fileno in askers:
            poll.register(fileno, select.POLLIN)
        asker = askers[poll.poll()[0][0]]
        data, streams = b"", list[int]()
        with suppress(ConnectionResetError):  # The asker is gone.
            data, streams, _, _ = socket.recv_fds(
                asker, MESSAGE_BYTES_MAX, _STREAMS, socket.MSG_CMSG_CLOEXEC
            )
        if not data:
            if asker is worker:
                os._exit(0)
            number = asker.fileno()
            for child in [child for child, each in asker_of.items() if each == number]:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del asker_of[child]
            del askers[number]
            asker.close()
            continue
        order = _orders.decode(data)
        if isinstance(order, Bury):
            _say(asker, Buried(os.waitstatus_to_exitcode(os.waitpid(order.pid, 0)[1])))
            asker_of.pop(order.pid, None)
        elif pid := _forked(order, streams, asker, askers):
            asker_of[pid] = asker.fileno()
        elif pid == 0:
            return asker is not worker


def _forked(
    order: Fork, streams: list[int], asker: socket.socket, askers: dict[int, socket.socket]
) -> int:
    """Fork a child; return its number, 0 in it, or -1. Who asks is told when it has begun."""
    begun, failed = os.pipe()
    kind = socket.AF_UNIX, socket.SOCK_SEQPACKET
    pair = socket.socketpair(*kind) if order.orders else ()
    try:
        pid = os.fork()
    except OSError as error:
        pid, answer = -1, Forked(error=error.errno or -1)
    if pid == 0:
        _become(order, streams, [*pair[:1], *askers.values()], failed)
        os.close(begun)
        os.close(failed)
        OWN_ORDERS.extend(pair[1:])
        return 0
    for each in (failed, *streams):
        os.close(each)
    if pid > 0:
        failure = os.read(begun, MESSAGE_BYTES_MAX)
        if not failure:
            answer = Forked(pid=pid)
        else:
            os.waitpid(pid, 0)
            answer = Forked(error=int(failure))
    os.close(begun)
    for own in pair[1:] if not answer.error else pair:
        own.close()
    if answer.error:
        _say(asker, answer)
        return -1
    askers.update((own.fileno(), own) for own in pair[:1])
    child = os.pidfd_open(answer.pid)
    with suppress(BrokenPipeError, ConnectionResetError):
        socket.send_fds(asker, [msgspec.msgpack.encode(answer)], [child])
    os.close(child)
    return pid


def _become(order: Fork, streams: list[int], others: Iterable[socket.socket], failed: int) -> None:
    """Be as a process that the worker has started itself."""
    try:
        os.setsid()
        os.chdir(order.folder)
        for each in others:
            each.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
    except OSError as error:
        os.write(failed, str(error.errno).encode())
        os._exit(1)
    mark = order.mark
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    place, value = libc.getenv(MARK.encode()), mark.encode()
    if place and len(ctypes.string_at(place)) == len(value):
        ctypes.memmove(place, value, len(value))
    os.environ[MARK] = mark
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _say(worker: socket.socket, answer: Answer) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # The next look finds the end.
        worker.send(msgspec.msgpack.encode(answer))
