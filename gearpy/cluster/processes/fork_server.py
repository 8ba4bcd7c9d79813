"""ForkServer: starts executors and app masters as forks of a process that is warm already."""

import fcntl
import logging
import os
import resource
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from gearpy.cluster.host.leftovers import MARK, ProcessMark
from gearpy.cluster.processes.forker import (
    FORK_SERVER,
    MESSAGE_BYTES_MAX,
    Answer,
    Buried,
    Bury,
    CanFork,
    Fork,
    Forked,
    Order,
)

_log = logging.getLogger(__name__)

_READY_S: Final = 20.0
#: So long launches wait for a server that is not ready, all together.
_PATIENCE_S: Final = 1.5
_ANSWER_S: Final = 10.0
_WORDS_BYTES: Final = 4096
_GROUPS: Final = Path("/proc/self/cgroup")
_SCORE: Final = Path("/proc/self/oom_score_adj")
_answers: Final = msgspec.msgpack.Decoder(Answer)

#: How a child ended whose fork server was killed before, where the kernel does not tell; no exit
#: code is so large.
UNKNOWN_CODE: Final = 256

#: Of ``linux/pidfd.h``: asks a descriptor of a process for a `_PidInfo`, which begins with what is
#: asked for, or is there, and ends with the status of `os.wait`. Linux 6.15 and newer keep that.
_GET_INFO: Final = 0xC040FF0B
_EXIT_INFO: Final = 1 << 3
_PidInfo: Final = struct.Struct("=Q 52x i")
_REAPED_MS: Final = 100  # A start anew waits so long for the parent of orphans.


class ServerLost(Exception):
    """A fork server has ended, or does not answer."""


class ForkServer:
    """A process with all that children need in memory; it forks them for its worker.

    A fork is ready some hundred modules earlier than a process of its own. Where there can be
    none, or not soon, `fork` returns None, the log says why, and the child must be started in the
    usual way.

    Runs on: any thread.

    Args:
        orders: the socket to the server of another process, in place of one of its own.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, *, orders: socket.socket | None = None
    ) -> None:
        self._command = command
        self._folder = folder
        self._lock = threading.Lock()  # It guards the rest.
        self._is_own = orders is None
        self._server = None if orders is None else _Server(command, folder, orders=orders)
        self._why_not = why_impossible()
        self._told = ""

    def begin(self) -> None:
        with self._lock:
            self._begin()

    def fork(
        self, folder: Path, mark: ProcessMark, *, orders: bool = False
    ) -> "ForkedProcess | None":
        with self._lock:
            self._begin()
            why_not = self._why_not
            if self._server is not None:
                try:
                    if self._server.is_ready():
                        return self._server.fork(folder, mark, orders=orders)
                    why_not = "it is not ready yet"
                except ServerLost as lost:
                    why_not = self._lost(lost)
            if why_not != self._told:
                _log.warning(
                    "a process is not forked from the fork server but started: %s", why_not
                )
            self._told = why_not
            return None

    def close(self) -> None:
        self._why_not = self._told = "it is closed"
        if (server := self._server) is not None:
            server.kill()  # Before the lock: who has it may wait for an answer.
        with self._lock:
            if self._server is not None:
                self._server.kill()
                self._server = None

    def _begin(self) -> None:
        if not self._is_own:
            return
        if self._server is not None and self._server.surroundings != _surroundings():
            self._server.retire()
            self._server = None
        if self._server is not None or self._why_not:
            return
        try:
            self._server = _Server(self._command, self._folder)
        except OSError as error:
            self._why_not = f"it cannot be started: {error}"

    def _lost(self, lost: ServerLost) -> str:
        """Begin another server, unless this one was never ready: the next would not be, either."""
        assert self._server is not None
        self._server.kill()
        if self._server.was_ready and self._is_own:
            self._server = None
            self._begin()
            return f"{lost}; there is a new one from now on"
        self._server = None
        self._why_not = str(lost)
        return self._why_not


def _surroundings() -> Sequence[object]:
    """Return the state that a process inherits from its parent; some may change it later."""
    limits = (getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
    return (
        dict(os.environ),
        [each.read_text() for each in (_GROUPS, _SCORE) if each.exists()],
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getaffinity(0),
        [resource.getrlimit(each) for each in limits],
    )


def why_impossible() -> str:
    if sys.platform != "linux":
        return f"{sys.platform} has none"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return f"the system has no descriptors of processes: {error}"
    return ""


class _Server:
    """One process that forks, and the socket to it. It may be that of another process."""

    def __init__(
        self, command: Sequence[str], folder: Path, *, orders: socket.socket | None = None
    ) -> None:
        self.was_ready = orders is not None
        self._begun_s = time.monotonic()
        self._patient_until_s: float | None = None
        self._children = 0
        self._is_retired = False
        self._words = ""
        self._lock = threading.Lock()  # An answer belongs to the last order.
        self._popen: subprocess.Popen[bytes] | None = None
        if orders is not None:
            self._socket = orders
            return
        self.surroundings = _surroundings()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        marks = {MARK: str(ProcessMark.new()), FORK_SERVER: str(theirs.fileno())}
        with theirs, ExitStack() as undone:
            undone.callback(self._socket.close)
            self._popen = subprocess.Popen(  # noqa: S603 - a list of arguments, none of users
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                cwd=folder,
                env={**os.environ, **marks},
                umask=0o077,
                start_new_session=True,
            )
            undone.pop_all()

    def is_ready(self) -> bool:
        with self._lock:
            if not self.was_ready and self._has_news():
                answer, _ = self._answer(_ANSWER_S)
                assert isinstance(answer, CanFork)
                if answer.why_not:
                    raise ServerLost(answer.why_not)
                self.was_ready = True
            return self.was_ready

    def _has_news(self) -> bool:
        """Wait until it says something, or has ended; return False when patience has."""
        now_s = time.monotonic()
        if self._patient_until_s is None:
            self._patient_until_s = now_s + _PATIENCE_S
        if self._socket.fileno() < 0:
            raise ServerLost(self._end())
        left_ms = max(0.0, self._patient_until_s - now_s) * 1000
        if _has(self._socket.fileno(), select.POLLIN, left_ms):
            return True
        if time.monotonic() - self._begun_s >= _READY_S:
            self._end()
            raise ServerLost(f"it was not ready within {_READY_S:.0f} s")
        return False

    def fork(self, folder: Path, mark: ProcessMark, *, orders: bool) -> "ForkedProcess":
        with self._lock:
            with ExitStack() as undone:
                pipes = []
                for _ in range(3):
                    pipes.append(os.pipe())
                    undone.callback(_close, pipes[-1])
                undone.pop_all()
            (to_read, inward), (out, to_write), (err, to_write_errors) = pipes
            ours, theirs = [inward, out, err], [to_read, to_write, to_write_errors]
            try:
                answer, child = self._ask(Fork(str(folder), str(mark), orders), theirs)
            except BaseException:
                _close(ours)
                raise
            finally:
                _close(theirs)
            assert isinstance(answer, Forked)
            if answer.error:
                _close(ours)
                raise OSError(answer.error, os.strerror(answer.error))
            self._children += 1
        return ForkedProcess(self, answer.pid, child, ours)

    def buried(self, pid: int) -> int:
        try:
            with self._lock:
                answer, _ = self._ask(Bury(pid), [])
                self._children -= 1
                if self._is_retired:
                    self._end_unless_needed()
        except ServerLost:
            return UNKNOWN_CODE
        assert isinstance(answer, Buried)
        return answer.code

    def is_alive(self) -> bool:
        if self._popen is None:
            number = self._socket.fileno()
            return number >= 0 and not _has(number, 0, 0)  # The end is reported unasked.
        return self._popen.poll() is None

    def retire(self) -> None:
        with self._lock:
            self._is_retired = True
            self._end_unless_needed()

    def _end_unless_needed(self) -> None:
        if not self._children:
            self._end()

    def kill(self) -> None:
        """End it, if it has not ended; who waits for its answer gets none."""
        if self._popen is not None:
            self._popen.kill()
        with self._lock:
            self._end()

    def _ask(self, order: Order, streams: list[int]) -> tuple[Answer, int]:
        try:
            socket.send_fds(self._socket, [msgspec.msgpack.encode(order)], streams)
        except OSError as error:
            raise ServerLost(self._end()) from error
        return self._answer(_ANSWER_S)

    def _answer(self, timeout_s: float) -> tuple[Answer, int]:
        self._socket.settimeout(timeout_s)
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self._socket, MESSAGE_BYTES_MAX, 1, socket.MSG_CMSG_CLOEXEC
            )
        except TimeoutError:
            self._end()  # Its next answer would be taken for that to another order.
            raise ServerLost(f"it did not answer within {timeout_s:.0f} s") from None
        except OSError as error:
            raise ServerLost(self._end()) from error
        if not data:
            raise ServerLost(self._end())
        return _answers.decode(data), descriptors[0] if descriptors else -1

    def _end(self) -> str:
        if self._popen is None:
            self._socket.close()
            return "that of the worker is gone"
        self._popen.kill()
        code = self._popen.wait()
        self._socket.close()
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.stdin.close()
        if not self._popen.stdout.closed:
            os.set_blocking(self._popen.stdout.fileno(), False)
            words = self._popen.stdout.read() or b""
            self._words = words[-_WORDS_BYTES:].decode("utf-8", "replace").strip()
            self._popen.stdout.close()
        how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        return f"it {how}: {self._words}" if self._words else f"it {how}"


class ForkedProcess:
    """A child that a fork server has forked: what `subprocess.Popen` is for others."""

    def __init__(self, server: _Server, pid: int, child: int, streams: Sequence[int]) -> None:
        self.pid = pid
        self._server = server
        self._child = child
        self._code: int | None = None
        stdin, stdout, stderr = streams
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb", buffering=0)
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb", buffering=0)
        self.stderr: IO[bytes] = os.fdopen(stderr, "rb", buffering=0)

    def end(self) -> int:
        return os.dup(self._child)

    def holds_number(self) -> bool:
        return not self._is_dead(0) or self._server.is_alive()

    def poll(self) -> int | None:
        return self.wait() if self._code is not None or self._is_dead(0) else None

    def wait(self) -> int:
        if self._code is None:
            self._is_dead(None)
            code = self._server.buried(self.pid)
            self._code = _code_of_orphan(self._child) if code == UNKNOWN_CODE else code
            os.close(self._child)
        return self._code

    def _is_dead(self, timeout_ms: int | None) -> bool:
        return _has(self._child, select.POLLIN, timeout_ms)


def _has(descriptor: int, event: int, timeout_ms: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(timeout_ms))


def _code_of_orphan(child: int) -> int:
    """Return the exit code of a dead process whose parent has died before; or `UNKNOWN_CODE`."""
    with suppress(ChildProcessError):
        ended = os.waitid(os.P_PIDFD, child, os.WEXITED)
        assert ended is not None, "it is dead"
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    with suppress(OSError):
        if (code := _told_by_kernel(child)) is None:
            _has(child, select.POLLHUP, _REAPED_MS)
            code = _told_by_kernel(child)
        return UNKNOWN_CODE if code is None else code
    return UNKNOWN_CODE


def _told_by_kernel(child: int) -> int | None:
    """Return the exit code of a process that somebody has waited for; None if nobody has."""
    has, status = _PidInfo.unpack(fcntl.ioctl(child, _GET_INFO, _PidInfo.pack(_EXIT_INFO, 0)))
    return os.waitstatus_to_exitcode(status) if has & _EXIT_INFO else None


def _close(descriptors: Sequence[int]) -> None:
    for each in descriptors:
        with suppress(OSError):
            os.close(each)
