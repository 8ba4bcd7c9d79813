"""Forks of a fork server: as good as processes of their own, and what happens without it."""

import ctypes
import json
import logging
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cluster.host.leftovers import ProcessMark
from gearpy.cluster.host.logs import LogFile
from gearpy.cluster.processes.child_process import ChildProcess
from gearpy.cluster.processes.fork_server import UNKNOWN_CODE, ForkServer, _code_of_orphan
from gearpy.cluster.worker.processes import CHILD_COMMAND
from tests.bench.process_cluster import children_of
from tests.eventually import DEADLINE_S, eventually
from tests.system.cluster_build import is_gone

_SET_CHILD_SUBREAPER: Final = 36  # Of ``linux/prctl.h``.
_LINUX: Final = tuple(int(part) for part in os.uname().release.split(".")[:2])
#: What a program begins with whose forks go on behind it.
SERVE: Final = """\
import os
from gearpy.cluster.processes.forker import FORK_SERVER, serve
is_ordered = False
if number := os.environ.pop(FORK_SERVER, ""):
    is_ordered = serve(int(number), [])
"""
#: Leaves a fork of itself behind, in a session of its own, which writes nowhere.
LEAVE: Final = """\
import os, signal
if pid := os.fork():
    print(pid, flush=True)
else:
    os.setsid()
    os.closerange(0, 3)
signal.pause()
"""
#: Tells what a process can see of itself.
LOOK: Final = """\
import json, random, resource, signal, sys, tempfile, threading, uuid

def link(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}").partition(":")[0]
    except OSError:
        return ""

def text(name):
    return open(f"/proc/self/{name}").read()

umask = os.umask(0o077)
print(json.dumps({
    "same": {
        "command": text("cmdline"), "argv": sys.argv, "path": sys.path, "folder": os.getcwd(),
        "leads": [os.getpgid(0) - os.getpid(), os.getsid(0) - os.getpid()], "umask": umask,
        "files": [link(n) for n in range(100)], "main": __name__, "flags": list(sys.flags),
        "names": sorted(os.environ), "threads": len(os.listdir("/proc/self/task")),
        "stopped": str(signal.getsignal(signal.SIGTERM)), "limits": text("limits"),
        "interrupted": str(signal.getsignal(signal.SIGINT)), "score": text("oom_score_adj"),
        "masks": [  # SigQ is missing: it counts signals to all processes of this user.
            line for line in text("status").splitlines()
            if line[3:6] in ("Pnd", "Blk", "Ign", "Cgt")
        ],
        "group": text("cgroup"), "nice": os.nice(0), "cores": sorted(os.sched_getaffinity(0)),
        "buffered": [sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.encoding],
        "mark": text("environ").count("_GEARPY_LAUNCH=" + os.environ["_GEARPY_LAUNCH"]),
    },
    "own": [random.random(), str(uuid.uuid4()), tempfile.mktemp(), os.environ["_GEARPY_LAUNCH"]],
}), flush=True)
"""
WAIT: Final = "import signal; print('up', flush=True); signal.sigwait({signal.SIGUSR1})\n"
#: Ends with code 3 when it is told to.
END: Final = """\
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: os._exit(3))
print("up", flush=True)
while True:  # A signal just before `signal.pause` would be waited for, for ever.
    signal.sigtimedwait((), 0.05)
"""
#: Orders two forks itself; one ends with code 5, the other waits.
ORDERS: Final = """\
import os, signal
from pathlib import Path
from gearpy.cluster.host.leftovers import ProcessMark
from gearpy.cluster.processes.fork_server import ForkServer
from gearpy.cluster.processes.forker import OWN_ORDERS
if is_ordered:
    print(len(OWN_ORDERS), flush=True)
    code = os.read(0, 1)
    if code == b"5":
        os._exit(5)
    signal.pause()
forks = ForkServer((), Path(), orders=OWN_ORDERS[0])
ends, waits = (forks.fork(Path.cwd(), ProcessMark.new()) for _ in range(2))
said = [each.stdout.read(1) for each in (ends, waits)]
ends.stdin.write(b"5")
waits.stdin.write(b"0")
print(said, ends.wait(), ends.holds_number(), waits.pid, flush=True)
signal.pause()
"""


class Scene:
    def __init__(self, folder: Path, code: str = LOOK) -> None:
        self.folder = folder
        self.command = (sys.executable, "-P", "-c", SERVE + code)
        self.forks = ForkServer(self.command, folder)
        self.children: list[ChildProcess] = []
        self.ends: queue.SimpleQueue[str] = queue.SimpleQueue()

    def start(self, *, is_forked: bool = True, orders: bool = False) -> ChildProcess:
        number = len(self.children)
        self.children.append(
            ChildProcess(
                self.command,
                b"",
                folder=self.folder,
                log=LogFile(self.folder / f"log{number}", bytes_max=100_000, files=1),
                log_format="text",
                stop_timeout_s=DEADLINE_S,
                on_end=self.ends.put,
                fork_server=self.forks if is_forked else None,
                orders=orders,
            )
        )
        return self.children[-1]

    def said(self, number: int = -1) -> str:
        number = number % len(self.children)
        path = self.folder / f"log{number}"
        eventually(lambda: path.exists() and path.read_text().endswith("\n"))
        return path.read_text()

    def server(self) -> int:
        (pid,) = _servers()
        return pid

    def cause(self) -> str:
        return self.ends.get(timeout=DEADLINE_S)

    def close(self) -> None:
        for each in self.children:
            each.stop(kill=True)
            each.join(DEADLINE_S)
        self.forks.close()


def _servers() -> list[int]:
    return [pid for pid in children_of(os.getpid()) if children_of(pid)]


@pytest.fixture(autouse=True)
def _busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gearpy.cluster.processes.fork_server._PATIENCE_S", DEADLINE_S)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Return a scene of children that wait; none of it survives."""
    made = Scene(tmp_path, WAIT)
    yield made
    made.close()


def test_a_fork_is_as_a_process_of_its_own(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    told: list[dict[str, Any]] = []
    try:
        for number in range(3):
            scene.start(is_forked=number > 0)
            told.append(json.loads(scene.said()))
            scene.cause()
    finally:
        scene.close()

    started, first, second = told
    assert started["same"]["files"][:3] == ["pipe"] * 3
    assert started["same"]["mark"] == 1
    assert first["same"] == started["same"]
    assert second["same"] == started["same"]
    assert len({value for each in told for value in each["own"]}) == 3 * len(started["own"])


def test_a_fork_may_order_forks_which_end_with_it(tmp_path: Path) -> None:
    """They are as other forks, but order none; the server waits for those that it left."""
    scene = Scene(tmp_path, ORDERS)
    try:
        child = scene.start(orders=True)
        *told, waits = scene.said().rsplit(maxsplit=1)
        assert told == ["[b'0', b'0'] 5 True"]
        server = scene.server()
        assert sorted(children_of(server)) == sorted([child.pid, int(waits)])

        os.kill(child.pid, signal.SIGKILL)

        assert scene.cause() == "killed by signal 9 (SIGKILL)"
        eventually(lambda: children_of(server) == [])
    finally:
        scene.close()


def test_what_a_fork_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, LEAVE)
    try:
        scene.start()
        scene.start()
        first, second = int(scene.said(0)), int(scene.said(1))
        eventually(lambda: os.getsid(first) == first)

        scene.children[0].stop(kill=True)
        scene.children[0].join(DEADLINE_S)

        eventually(lambda: is_gone(first))  # The kernel may take a moment to end it.
        assert not is_gone(second)
    finally:
        scene.close()


def test_a_worker_has_a_fork_server_of_its_children(tmp_path: Path) -> None:
    """It has loaded what it should; a child of it ends when its worker says nothing."""
    forks = ForkServer(CHILD_COMMAND, tmp_path)
    before = set(children_of(os.getpid()))
    forks.begin()
    (server,) = set(children_of(os.getpid())) - before

    child = forks.fork(tmp_path, ProcessMark.new())
    assert child is not None
    assert os.getsid(server) == server
    assert children_of(server) == [child.pid]
    child.stdin.close()
    assert (child.wait(), child.stderr.read()) == (1, b"")

    for each in (child.stdout, child.stderr):
        each.close()
    forks.close()
    assert is_gone(server)


def test_a_fork_server_does_not_end_with_those_that_are_asked_to(scene: Scene) -> None:
    scene.start()
    scene.said()
    os.kill(scene.server(), signal.SIGTERM)
    os.kill(scene.server(), signal.SIGINT)

    scene.start()
    scene.said()
    os.kill(scene.children[0].pid, signal.SIGSEGV)

    assert scene.cause().startswith("killed by signal 11 (SIGSEGV)")
    assert scene.children[1].pid in children_of(scene.server())


def test_children_of_a_killed_fork_server_go_on(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        scene.start()
        scene.said()
        first = scene.server()
        os.kill(first, signal.SIGKILL)
        eventually(lambda: is_gone(first))
        scene.start()
        scene.said()
        scene.start()
        scene.said()

    assert not is_gone(scene.children[0].pid)
    assert scene.children[1].pid in children_of(os.getpid())
    assert scene.children[2].pid in children_of(scene.server())
    (line,) = caplog.messages
    assert line == (
        "a process is not forked from the fork server but started: it was killed by signal 9; "
        "there is a new one from now on"
    )
    os.kill(scene.children[0].pid, signal.SIGSEGV)
    assert scene.cause().startswith(("ended, nobody knows how: the fork", "killed by signal 11"))
    assert is_gone(scene.children[0].pid)


@pytest.fixture
def parent_of_orphans() -> Iterator[None]:
    """Have orphans below this process as its children, as the first one of a container has."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    assert libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


@pytest.mark.usefixtures("parent_of_orphans")
def test_how_children_of_a_killed_fork_server_end_is_known_to_whom_they_belong_then(
    scene: Scene,
) -> None:
    """In a container without an init nobody else would wait for them, either."""
    scene.command = (sys.executable, "-P", "-c", SERVE + END)
    scene.forks = ForkServer(scene.command, scene.folder)
    for _ in range(3):
        scene.start()
        scene.said()
    crashed, ended, _ = scene.children
    os.kill(scene.server(), signal.SIGKILL)

    os.kill(crashed.pid, signal.SIGSEGV)
    assert scene.cause().startswith("killed by signal 11 (SIGSEGV)")
    os.kill(ended.pid, signal.SIGUSR1)

    assert scene.cause() == "exited with code 3"
    assert not {crashed.pid, ended.pid} & set(children_of(os.getpid()))


@pytest.mark.parametrize(("signalled", "code"), [(signal.SIGSEGV, -11), (signal.SIGUSR1, 3)])
def test_how_a_process_ended_for_which_another_one_has_waited_is_told_by_the_kernel(
    signalled: signal.Signals, code: int
) -> None:
    """Linux does from 6.15 on; before that nobody knows."""
    process = subprocess.Popen([sys.executable, "-c", END], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    descriptor = os.pidfd_open(process.pid)
    process.send_signal(signalled)
    process.wait()

    told = _code_of_orphan(descriptor)

    os.close(descriptor)
    process.stdout.close()
    assert told == (code if _LINUX >= (6, 15) else UNKNOWN_CODE)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_launch_does_not_wait_long_for_a_fork_server_that_is_not_ready(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_late: bool,
) -> None:
    monkeypatch.setattr("gearpy.cluster.processes.fork_server._PATIENCE_S", 0.1)
    monkeypatch.setattr("gearpy.cluster.processes.fork_server._READY_S", 0.0 if is_late else 600.0)
    gate = scene.folder / "gate"
    os.mkfifo(gate)
    wait = f"import os\nif '_GEARPY_FORK_SERVER' in os.environ: open({str(gate)!r}).read()\n"
    scene.command = (sys.executable, "-P", "-c", wait + SERVE + WAIT)
    scene.forks = ForkServer(scene.command, scene.folder)
    with caplog.at_level(logging.WARNING):
        first, second = scene.start(), scene.start()
    assert {first.pid, second.pid} <= set(children_of(os.getpid()))
    (line,) = caplog.messages
    assert line.endswith("it was not ready within 0 s" if is_late else "it is not ready yet")
    if not is_late:
        gate.write_text("go on")

        def is_forked() -> bool:
            return scene.start().pid not in children_of(os.getpid())

        eventually(is_forked, every_s=0.1)


def test_a_fork_can_be_stopped_when_its_server_is_gone(scene: Scene) -> None:
    for _ in range(2):
        scene.start()
        scene.said()
    os.kill(scene.server(), signal.SIGKILL)

    scene.children[0].stop(kill=False)
    scene.children[1].stop(kill=True)

    assert [scene.cause(), scene.cause()] == ["", ""]
    assert all(is_gone(each.pid) for each in scene.children)


def test_a_fork_server_that_is_frozen_is_replaced(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gearpy.cluster.processes.fork_server._ANSWER_S", 0.3)
    scene.start()
    scene.said()
    frozen = scene.server()
    os.kill(frozen, signal.SIGSTOP)

    scene.start()
    scene.said()

    assert is_gone(frozen)
    assert scene.children[1].pid in children_of(os.getpid())


def test_a_fork_server_that_is_frozen_holds_up_no_end(scene: Scene) -> None:
    scene.start()
    scene.said()
    os.kill(scene.server(), signal.SIGSTOP)
    with ThreadPoolExecutor() as threads:
        child = threads.submit(scene.start)
        eventually(child.running)
        scene.forks.close()

        assert child.result(DEADLINE_S).pid in children_of(os.getpid())
    assert _servers() == []


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (
            "import signal, threading; threading.Thread(target=signal.pause, daemon=True).start()",
            "it has 2 threads when it starts",
        ),
        ("raise ImportError('no such module')", "it exited with code 1: "),
    ],
)
def test_where_there_can_be_no_fork_server_processes_are_started(
    scene: Scene, caplog: pytest.LogCaptureFixture, before: str, why: str
) -> None:
    only_server = f"import os\nif '_GEARPY_FORK_SERVER' in os.environ: {before}\n"
    command = (sys.executable, "-P", "-c", only_server + SERVE + WAIT)
    scene.forks = ForkServer(command, scene.folder)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            scene.start()
            scene.said()

    assert {each.pid for each in scene.children} <= set(children_of(os.getpid()))
    (line,) = caplog.messages
    assert f"is not forked from the fork server but started: {why}" in line


def test_what_has_changed_about_a_worker_asks_for_another_fork_server(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries look at the environment when they are loaded; the one before ends when it can."""
    scene.start()
    scene.said()
    first = scene.server()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    second = scene.start()
    scene.said()
    third = scene.start()
    scene.said()

    (server,) = set(_servers()) - {first}
    assert children_of(server) == [second.pid, third.pid]
    assert b"OMP_NUM_THREADS=1" in Path(f"/proc/{second.pid}/environ").read_bytes()
    os.kill(scene.children[0].pid, signal.SIGSEGV)
    assert scene.cause().startswith("killed by signal 11 (SIGSEGV)")
    assert is_gone(first)


def test_a_child_that_cannot_begin_is_an_error_of_its_launch(scene: Scene) -> None:
    with pytest.raises(FileNotFoundError):
        scene.forks.fork(scene.folder / "gone", ProcessMark.new())

    child = scene.start()
    scene.said()
    assert children_of(scene.server()) == [child.pid]
