"""ChildProcess: one child with its process group, its outputs and its end."""

import logging
import os
import re
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Final

from gearpy.cluster.host.held import GRACE_S, held_by
from gearpy.cluster.host.leftovers import MARK, ProcessMark, end_marked
from gearpy.cluster.host.logs import LogFormat, StreamLog, WritesLines
from gearpy.cluster.processes.fork_server import UNKNOWN_CODE, ForkedProcess, ForkServer
from gearpy.cluster.processes.oom import OomKills

_log = logging.getLogger(__name__)

_NOTHING: Final[Mapping[str, str]] = {}
_READ_BYTES: Final = 65_536
_HELD: Final = b"Timeout ("  # `faulthandler` begins so.
_LAST_READS: Final = 64  # More than a pipe holds; who still writes then has left the group.
#: How a process ends that was asked to; one that fails meanwhile tells why.
_AS_ASKED: Final = frozenset(
    {
        *(0, -signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM, 128 + signal.SIGKILL),
        UNKNOWN_CODE,
    }
)
_POLL_S: Final = 0.02  # The system may not tell of an end by itself.


class ChildProcess:
    """A child in a session and process group of its own.

    Its standard input stays open: the child ends when it is closed, which happens when this
    process is gone. Its outputs go into its log; what it has written is read also after its
    death. Whatever it leaves behind is killed with it, also what has left its group as far as it
    can be found; see `leftovers`.

    Runs on: any thread; has one of its own until the child is buried.
    """

    def __init__(
        self,
        command: Sequence[str],
        spec: bytes,
        *,
        folder: Path,
        log: WritesLines,
        log_format: LogFormat,
        stop_timeout_s: float,
        on_end: Callable[[str], None],
        fork_server: ForkServer | None = None,
        environment: Mapping[str, str] = _NOTHING,
        orders: bool = False,
        errors: WritesLines | None = None,
    ) -> None:
        """Start the process; ``on_end`` hears once, on the child's thread, why it ended.

        Standard error goes to ``errors``, if that is not the ``log``, too.
        """
        self._spec = spec
        self._out = StreamLog(log, "stdout", log_format)
        self._err = StreamLog(errors or log, "stderr", log_format)
        self._stop_timeout_s = stop_timeout_s
        self._on_end = on_end
        self.tail, self._code, self._why_killed = b"", 0, ""
        self._is_watched = False  # It seems to be held; a timer looks once more.
        self._held_by = ""
        self._lock = threading.Lock()  # It guards `_asked`, `_buried` and every signal.
        self._asked = False
        self._buried = False
        self._timer: threading.Timer | None = None
        self._oom_kills = OomKills.now()
        self._mark = ProcessMark.new()
        forked = fork_server.fork(folder, self._mark, orders=orders) if fork_server else None
        self._popen = forked or _started(command, folder, self._mark, environment)
        self.pid = self._popen.pid
        self._thread = threading.Thread(
            target=self._watch, name=f"gearpy-child-{self.pid}", daemon=True
        )
        try:
            self._thread.start()
        except BaseException:
            self._bury()
            raise

    def stop(self, *, kill: bool) -> None:
        """Ask the process and its children to end, or kill them; returns at once.

        A process that does not end in time is killed. May be called again; it is asked once, as a
        second SIGTERM would end it at once, and its worker and its app master may both stop it.
        """
        with self._lock:
            if self._buried:
                return
            self._asked = True
            if kill:
                self._signal(signal.SIGKILL)
            elif self._timer is None:
                self._signal(signal.SIGTERM)
                self._timer = threading.Timer(self._stop_timeout_s, self._kill)
                self._timer.daemon = True
                self._timer.start()

    def abort(self) -> None:
        with self._lock:
            self._signal(signal.SIGABRT, os.kill)

    def join(self, timeout_s: float | None = None) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def why_ended(self, tail: bytes) -> str:
        return exit_cause(self._code, tail, why_killed=self._why_killed)

    def _kill(self) -> None:
        with self._lock:
            self._signal(signal.SIGKILL)

    def _signal(self, number: int, send: Callable[[int, int], None] = os.killpg) -> None:
        """Send a signal to the group; until the child is buried its number is nobody else's."""
        held = not isinstance(self._popen, ForkedProcess) or self._popen.holds_number()
        if held and not self._buried:
            with suppress(ProcessLookupError, PermissionError):  # The latter: all dead, on macOS.
                send(self.pid, number)

    # -- on the child's own thread ---------------------------------------------------------

    def _watch(self) -> None:
        assert self._popen.stdin is not None
        rest = memoryview(self._spec)
        with suppress(BrokenPipeError):
            while rest:
                rest = rest[self._popen.stdin.write(rest) :]

        popen, end = self._popen, None
        # A descriptor that can be read at the end, where the system has one.
        with suppress(AttributeError, OSError):
            end = popen.end() if isinstance(popen, ForkedProcess) else os.pidfd_open(popen.pid)
        with selectors.DefaultSelector() as selector:
            for stream, take in self._streams():
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, partial(_read, stream, take))
            if end is not None:
                selector.register(end, selectors.EVENT_READ)
            is_dead = False
            while not is_dead:  # Waits for output or the end.
                for key, _ in selector.select(_POLL_S if end is None else None):
                    if key.data is None:
                        is_dead = True
                    elif key.data() is None:
                        selector.unregister(key.fileobj)
                is_dead = is_dead or (end is None and self._popen.poll() is not None)
        if end is not None:
            os.close(end)

        self._code = self._bury()
        if self._asked and self._code in _AS_ASKED:
            self._on_end("")
            return
        if self._held_by:
            self._on_end(self._held_by)
            return
        self._why_killed = OomKills.now().why_since(self._oom_kills)
        self._on_end(self.why_ended(self.tail))

    def _streams(self) -> list[tuple[IO[bytes], Callable[[bytes], None]]]:
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        return [(self._popen.stdout, self._out.feed), (self._popen.stderr, self._take_error)]

    def _take_error(self, data: bytes) -> None:
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        self._err.feed(data)
        if not self._is_watched and self._held():
            self._is_watched = True
            watch = threading.Timer(GRACE_S, self._end_if_held)
            watch.daemon = True
            watch.start()

    def _held(self) -> str:
        return held_by(self.tail.decode("utf-8", "replace")) if _HELD in self.tail else ""

    def _end_if_held(self) -> None:
        self._is_watched = False
        if held := self._held():
            self._held_by = held
            self._kill()

    def _bury(self) -> int:
        self._kill()
        if number := end_marked(self._mark, [stream for stream, _ in self._streams()]):
            _log.warning(
                "process %d has left %d behind in groups of their own, killed", self.pid, number
            )
        for stream, take in self._streams():
            os.set_blocking(stream.fileno(), False)
            for _ in range(_LAST_READS):
                if not _read(stream, take):
                    break
            stream.close()
        self._out.end()
        self._err.end()
        with self._lock:
            code = self._popen.wait()
            self._buried = True
            if self._timer is not None:
                self._timer.cancel()
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        return code


def _started(
    command: Sequence[str], folder: Path, mark: ProcessMark, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    if not command:
        raise ChildProcessError("the process that executors are forked from is gone")
    pipe = subprocess.PIPE
    return subprocess.Popen(  # noqa: S603 - a list of arguments, none of users
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        bufsize=0,
        cwd=folder,
        env={**os.environ, **environment, MARK: str(mark)},
        umask=0o077,
        start_new_session=True,
    )


def _read(stream: IO[bytes], take: Callable[[bytes], None]) -> bool | None:
    """Pass on the bytes that are there; return whether there were any, None at the end."""
    try:
        data = os.read(stream.fileno(), _READ_BYTES)
    except BlockingIOError:
        return False
    except OSError:
        return None
    take(data)
    return True if data else None


#: Of standard error, kept to tell why a process ended. A traceback in our own log, which is left
#: out of what is told, may take half of it.
TAIL_BYTES: Final = 32 * 1024
_LAST_LINE_CHARS: Final = 300
_TEXT_CHARS: Final = 4096  # Causes travel in control messages, whose size has a limit.
#: A line of gearpy's own log, as `logs.formatter` writes it; users' logs are worth telling.
_OWN_LOG: Final = re.compile(
    r'\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ gearpy\.|\{"time": "[^"]*", "level": "\w+", '
    r'"logger": "gearpy\.'
)


def exit_cause(code: int, tail: bytes, *, why_killed: str = "") -> str:
    """Return why a process ended that nobody had asked to.

    Args:
        tail: the end of its standard error, `TAIL_BYTES` at most; what fits a line follows in
            the first line, all of it below. Log lines of gearpy itself say nothing new.
    """
    lines = tail.decode("utf-8", "replace").splitlines()
    if len(tail) >= TAIL_BYTES and len(lines) > 1:
        del lines[0]  # Its beginning is lost.
    text = "\n".join(line for line in lines if not _OWN_LOG.match(line)).strip()
    if len(text) > _TEXT_CHARS:
        end = text[-_TEXT_CHARS:]
        whole = end.partition("\n")[2]
        text = whole if len(whole) > _TEXT_CHARS // 2 else end  # One line may be very long.

    last = text.rpartition("\n")[2].strip()[:_LAST_LINE_CHARS]
    if code < 0:
        cause = f"killed by signal {-code}"
        if -code == signal.SIGKILL and why_killed:
            cause += f": {why_killed}"
        else:
            with suppress(ValueError):  # A real-time signal has no name.
                cause += f" ({signal.Signals(-code).name})"
    elif code == UNKNOWN_CODE:
        cause = "ended, nobody knows how: the fork server it came from had been killed"
    elif code == 0:
        cause = "exited with code 0 before it was asked to"
    else:
        cause = f"exited with code {code}"
    first = f"{cause}: {last}" if code > 0 and last else cause
    return f"{first}\n{text}" if text and text != last else first
