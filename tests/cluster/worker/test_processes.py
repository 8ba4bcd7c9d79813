"""Child processes: how they are told what to be, how they end, and that none is left."""

import os
import queue
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import pytest

from gearpy.cluster.host.logs import LogSettings
from gearpy.cluster.processes.child_process import TAIL_BYTES, ChildProcess, exit_cause
from gearpy.cluster.processes.fork_server import UNKNOWN_CODE
from gearpy.cluster.processes.oom import OomKills
from gearpy.cluster.processes.spec import LaunchSpec, encoded_spec, read_spec
from gearpy.cluster.worker.processes import ProcessLauncher, ProcessSettings
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import ActorPath, AppId, ExecutorId
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import LaunchExecutor
from gearpy.wire.connection.keys import KeyRing, LaunchToken, application_key
from tests.bench.process_cluster import children_of
from tests.eventually import DEADLINE_S, eventually

SECRET: Final = b"s" * 32

#: What every program of a child begins with: one that is to be a fork server is one.
SERVE: Final = """\
import os
from gearpy.cluster.processes.forker import FORK_SERVER, serve
if number := os.environ.pop(FORK_SERVER, ""):
    serve(int(number), [])
"""
#: Reads its spec, as every child does first; what a test wants follows.
READ: Final = """\
import os, signal, subprocess, sys
from functools import partial
from gearpy.cluster.processes.fork_server import UNKNOWN_CODE
from gearpy.cluster.processes.spec import read_spec
from gearpy.cluster.processes.lifeline import hold_lifeline
from gearpy.cluster.processes.spec import LaunchSpec
spec = read_spec(partial(os.read, 0), LaunchSpec)
"""
SLEEP: Final = "signal.sigwait({signal.SIGUSR1})\n"


class Scene:
    def __init__(self, folder: Path, configured: Callable[..., Config], *, is_forked: bool) -> None:
        self.folder = folder
        self.is_forked = is_forked
        self.configured = configured
        self.ends: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()
        self.launcher: ProcessLauncher | None = None
        self.launches = 0

    def start(self, code: str, *, read: str = READ, **overrides: object) -> ChildProcess:
        config = self.configured(log__folder=self.folder / "logs", **overrides)
        self.launcher = ProcessLauncher(self.settings(config, read + code))
        self.launches += 1
        return self.launcher.launch(a_launch(self.launches), self.on_exit)

    def settings(self, config: Config, code: str) -> ProcessSettings:
        return ProcessSettings(
            config=config,
            keys=KeyRing.of_cluster(SECRET),
            folder=self.folder / "work",
            artifacts=self.folder / "artifacts",
            logs=LogSettings.of(config),
            command=(sys.executable, "-P", "-c", SERVE + code),
            is_forked=self.is_forked,
        )

    def on_exit(self, cause: str) -> None:
        """Note why a child ended, and when that was known."""
        self.ends.put((cause, time.monotonic()))

    def cause(self) -> str:
        return self.ends.get(timeout=DEADLINE_S)[0]

    @property
    def log(self) -> str:
        path = self.folder / "logs" / "app-7" / f"executor-0-launch-{self.launches}.log"
        return path.read_text() if path.exists() else ""

    def words(self, count: int) -> list[str]:
        eventually(lambda: self.log.endswith("\n") and len(self.log.split()) >= count)
        return self.log.split()

    @property
    def folders(self) -> list[Path]:
        return list((self.folder / "work").iterdir())


@pytest.fixture(params=[True, False], ids=["forked", "started"])
def scene(
    tmp_path: Path, configured: Callable[..., Config], request: pytest.FixtureRequest
) -> Iterator[Scene]:
    """Return a scene whose children are forks, or processes of their own; none survives."""
    made = Scene(tmp_path, configured, is_forked=request.param)
    yield made
    if made.launcher is not None:
        made.launcher.close(DEADLINE_S)


def a_launch(launch: int = 1, config: dict[str, str] | None = None) -> LaunchExecutor:
    return LaunchExecutor(
        app_id=AppId(7),
        executor_id=ExecutorId(0),
        launch=launch,
        app_master=launch,
        slots=1,
        name="a",
        artifact=Artifact(kind="memory", location="1"),
        executors=1,
        config=config or {},
        reply_to=ActorPath("", "boss"),
    )


def is_gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


# -- how a child begins ----------------------------------------------------------------------------


def test_a_child_has_options_and_variables_of_its_own(scene: Scene) -> None:
    """In a new interpreter: a fork would have those of the fork server."""
    code = (
        "print(sys.flags.optimize, sys._xoptions.get('shop'), sys.flags.utf8_mode,"
        " os.environ['SHOP'], os.environ['PYTHONUTF8'], __debug__)\n" + SLEEP
    )
    scene.start(
        code,
        executor__python_options="-O,-X shop=1",
        executor__environment='["SHOP=a,b=c", "PYTHONUTF8=1"]',
    )

    assert scene.words(6)[-6:] == ["1", "1", "1", "a,b=c", "1", "False"]


# -- what a child is told ------------------------------------------------------------------------


def test_a_child_gets_its_spec_and_nobody_sees_the_key(scene: Scene) -> None:
    token = "print(spec.token, flush=True); "
    child = scene.start(f"{token}{SLEEP}")
    line = scene.words(5)
    given = LaunchToken.of_line(" ".join(line))
    key = application_key(SECRET, AppId(7))

    shown = Path(f"/proc/{child.pid}/cmdline").read_bytes()
    shown += Path(f"/proc/{child.pid}/environ").read_bytes()

    assert given.key == key
    assert (given.app_id, given.executor_id, given.launch) == (7, 0, 1)
    assert key.hex().encode() not in shown
    assert SECRET not in shown


def test_a_child_works_in_a_folder_of_its_own(scene: Scene) -> None:
    scene.start(
        "open('x', 'w'); print(os.getcwd(), os.getpgrp() == os.getpid());" + SLEEP,
        read="import os, signal, sys; sys.stdout.reconfigure(line_buffering=True); ",
    )
    folder, is_leader = scene.words(2)

    assert Path(folder).parent == scene.folder / "work"
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert (Path(folder) / "x").stat().st_mode & 0o777 == 0o600
    assert is_leader == "True"


def test_an_application_cannot_lift_the_limits_of_a_worker(
    scene: Scene, configured: Callable[..., Config]
) -> None:
    config = configured(
        log__folder=scene.folder / "logs", executor__memory_max_bytes=1 << 30, worker__slots=5
    )
    code = READ + "print(spec.config, flush=True); sys.exit(1)"
    scene.launcher = ProcessLauncher(scene.settings(config, code))
    scene.launches = 1
    wanted = {
        "executor.memory-max-bytes": "0",
        "transport.secret-file": "/etc/passwd",
        "streaming.batch-max-records": "3",
    }

    scene.launcher.launch(a_launch(config=wanted), scene.on_exit)
    scene.cause()

    assert "'executor.memory-max-bytes': '1073741824'" in scene.log
    assert "'streaming.batch-max-records': '3'" in scene.log
    assert "/etc/passwd" not in scene.log


def test_a_wrong_configuration_starts_nothing(
    scene: Scene, configured: Callable[..., Config]
) -> None:
    config = configured(log__folder=scene.folder / "logs")
    scene.launcher = ProcessLauncher(scene.settings(config, ""))

    with pytest.raises(ConfigError, match="no-such"):
        scene.launcher.launch(a_launch(config={"no-such": "key"}), scene.on_exit)

    assert scene.folders == []


def test_a_command_that_does_not_exist_leaves_nothing(
    scene: Scene, configured: Callable[..., Config]
) -> None:
    config = configured(log__folder=scene.folder / "logs")
    settings = scene.settings(config, "")
    scene.launcher = ProcessLauncher(
        ProcessSettings(
            config=config,
            keys=settings.keys,
            folder=settings.folder,
            artifacts=settings.artifacts,
            logs=settings.logs,
            command=("/no/such/program",),
        )
    )

    with pytest.raises(FileNotFoundError):
        scene.launcher.launch(a_launch(), scene.on_exit)

    assert scene.folders == []


def test_a_spec_is_read_in_pieces_or_not_at_all() -> None:
    """A pipe gives what it has; the end of it means that the worker is gone."""
    spec = LaunchSpec(
        launch=a_launch(), config={"a": "b"}, own={}, token="t", worker_node="", artifacts=""
    )
    encoded = encoded_spec(spec)

    pieces = iter([bytes([each]) for each in encoded])
    assert read_spec(lambda _: next(pieces), LaunchSpec) == spec
    half = iter([encoded[:4], encoded[4:9], b""])
    with pytest.raises(EOFError):
        read_spec(lambda _: next(half), LaunchSpec)
    for wrong in (b"\x00\x00\x00\x01\xc0", b"\xff\xff\xff\xff"):
        rest = [wrong]

        def read(count: int, rest: list[bytes] = rest) -> bytes:
            data, rest[0] = rest[0][:count], rest[0][count:]
            return data

        with pytest.raises(ProtocolError):
            read_spec(read, LaunchSpec)


def test_a_spec_of_another_gearpy_is_read() -> None:
    """The files of gearpy may have been replaced below a worker: what is new has its default."""
    spec = LaunchSpec(
        launch=a_launch(), config={"a": "b"}, own={}, token="t", worker_node="", artifacts=""
    )
    fields = msgspec.msgpack.decode(encoded_spec(spec)[4:])
    fields["new"] = fields["launch"]["new"] = 1
    del fields["launch"]["term"]
    body = msgspec.msgpack.encode(fields)
    pieces = iter([len(body).to_bytes(4, "big"), body])

    assert spec.launch.term == 0
    assert read_spec(lambda _: next(pieces), LaunchSpec) == spec


# -- how a child ends ----------------------------------------------------------------------------


def test_the_end_of_standard_error_tells_why(scene: Scene) -> None:
    scene.start("print('x' * 9000 + '\\nthe reason', file=sys.stderr); sys.exit(3)")

    first, _, rest = scene.cause().partition("\n")

    assert first == "exited with code 3: the reason"
    assert 4000 < len(rest) < 4200
    assert rest.endswith("x\nthe reason")


def test_what_was_written_before_the_end_is_in_the_log(scene: Scene) -> None:
    scene.start("print('a\\nb', flush=True); os.write(2, b'c'); os.write(1, b'd')")
    scene.cause()

    assert sorted(scene.log.splitlines()) == ["a", "b", "c", "d"]


def test_much_output_is_taken(scene: Scene) -> None:
    """A full pipe would stop the child."""
    scene.start(
        "print('y' * 99 + '\\n', end='', flush=True);" * 2 + "print(('z' * 99 + '\\n') * 10_000)"
    )
    scene.cause()

    assert len(scene.log) == 2 * 100 + 10_000 * 100 + 1


def test_files_of_a_child_that_ended_well_are_kept_and_told(scene: Scene) -> None:
    on_term = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); "
    child = scene.start(on_term + "open('out.txt', 'w'); print('up', flush=True); signal.pause()")
    scene.words(1)

    child.stop(kill=False)

    assert scene.cause() == ""
    eventually(lambda: "name files by absolute paths" in scene.log)
    (folder,) = scene.folders
    assert f"left in the working folder {folder}" in scene.log
    assert (folder / "out.txt").exists()


def test_a_child_that_does_not_listen_is_killed(scene: Scene) -> None:
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True);"
    child = scene.start(ignore + SLEEP, executor__stop_timeout_seconds=1)
    scene.words(1)

    child.stop(kill=False)
    child.stop(kill=False)

    assert scene.cause() == ""
    assert is_gone(child.pid)


def test_a_frozen_child_is_killed_at_once(scene: Scene) -> None:
    child = scene.start("print('up', flush=True);" + SLEEP)
    scene.words(1)
    os.kill(child.pid, signal.SIGSTOP)

    child.stop(kill=True)
    assert scene.cause() == ""

    child.stop(kill=True)  # Whoever has its number by now is not meant.


def test_a_child_that_does_not_read_can_be_stopped(scene: Scene) -> None:
    config = {"log.folder": "x" * 300_000}
    read = "import os, signal, sys; print('up', flush=True);"
    scene.start(read + SLEEP, read="")
    scene.words(1)
    assert scene.launcher is not None

    child = scene.launcher.launch(
        LaunchExecutor(
            **{
                **{name: getattr(a_launch(), name) for name in LaunchExecutor.__struct_fields__},
                "launch": 2,
                "config": config,
            }
        ),
        scene.on_exit,
    )
    child.stop(kill=True)

    assert scene.cause() == ""


@pytest.mark.parametrize("is_frozen", [True, False])
@pytest.mark.parametrize("is_forked", [True, False])
def test_no_process_survives_its_worker(
    tmp_path: Path, *, is_frozen: bool, is_forked: bool
) -> None:
    start = "hold_lifeline(); grand = subprocess.Popen(['sleep', '600']);"
    code = f"{SERVE}{READ}{start} print(os.getpid(), grand.pid, flush=True); {SLEEP}"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", WORKER, str(tmp_path), code, "forked" * is_forked],
        stdin=subprocess.PIPE,
    ) as worker:
        log = tmp_path / "logs" / "app-7" / "executor-0-launch-1.log"
        eventually(lambda: log.exists() and len(log.read_text().split()) == 2)
        child, grandchild = map(int, log.read_text().split())
        ours = {child, *children_of(worker.pid)}
        assert len(ours) == 1 + is_forked
        for pid in ours if is_frozen else ():
            os.kill(pid, signal.SIGSTOP)

        worker.kill()

    try:
        eventually(lambda: all(map(is_gone, [*ours, grandchild])))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


#: A worker's half of the processes: starts one child, then waits to be killed.
WORKER: Final = """\
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As under nohup: the kernel sends it to the frozen.
from pathlib import Path
from gearpy.cluster.host.logs import LogSettings
from gearpy.cluster.worker.processes import ProcessLauncher, ProcessSettings
from gearpy.config.load import load
from gearpy.ids import ActorPath, AppId, ExecutorId
from gearpy.messages.client import Artifact
from gearpy.messages.cluster import LaunchExecutor
from gearpy.wire.connection.keys import KeyRing
folder = Path(sys.argv[1])
config = load(env={}, overrides={"log.folder": str(folder / "logs")})
settings = ProcessSettings(
    config=config, keys=KeyRing.of_cluster(b"s" * 32), folder=folder / "work",
    artifacts=folder / "artifacts", logs=LogSettings.of(config),
    command=(sys.executable, "-P", "-c", sys.argv[2]), is_forked=bool(sys.argv[3]),
)
launch = LaunchExecutor(
    app_id=AppId(7), executor_id=ExecutorId(0), launch=1, app_master=1,
    slots=1, name="a", artifact=Artifact(kind="memory", location="1"), executors=1, config={},
    reply_to=ActorPath("", "boss"),
)
launcher = ProcessLauncher(settings)
launcher.launch(launch, print)
sys.stdin.read()
"""


# -- limits and folders --------------------------------------------------------------------------


def test_limits_are_those_of_the_configuration(scene: Scene) -> None:
    code = """
import resource as r
from gearpy.cluster.worker.child import limit_resources
from gearpy.config.load import from_overrides
limit_resources(from_overrides(spec.config).executor)
kinds = (r.RLIMIT_NOFILE, r.RLIMIT_DATA, r.RLIMIT_CORE)
print(*(r.getrlimit(kind)[0] for kind in kinds))
"""
    scene.start(code, executor__memory_max_bytes=1 << 30)
    scene.cause()

    files = min(65_536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    assert [int(word) for word in scene.log.split()] == [files, 1 << 30, 0]


def test_some_folders_of_failed_processes_are_kept(
    scene: Scene, configured: Callable[..., Config]
) -> None:
    """The last ones, so that a restart loop does not fill the disk; also those of before."""
    config = configured(log__folder=scene.folder / "logs")
    for number in range(15):
        (scene.folder / "work" / f"old-{number}").mkdir(parents=True)
    scene.launcher = ProcessLauncher(scene.settings(config, "raise SystemExit(1)"))
    assert len(scene.folders) == 10

    scene.launcher.launch(a_launch(), scene.on_exit)
    scene.cause()

    eventually(lambda: len(scene.folders) == 10)
    assert any("executor-0-launch-1" in each.name for each in scene.folders)


@pytest.mark.parametrize(
    ("code", "tail", "cause"),
    [
        (0, b"", "exited with code 0 before it was asked to"),
        (3, b"", "exited with code 3"),
        (3, b"why\n", "exited with code 3: why"),
        (3, b"one\ntwo\n", "exited with code 3: two\none\ntwo"),
        (3, b"\xff\n", "exited with code 3: \ufffd"),
        (-9, b"", "killed by signal 9 (SIGKILL)"),
        (-11, b"Fatal\n  frame", "killed by signal 11 (SIGSEGV)\nFatal\n  frame"),
        (-40, b"", "killed by signal 40"),
        (UNKNOWN_CODE, b"why", "ended, nobody knows how: the fork server"),
        (
            3,
            b"2026-11-21T09:37:14.486Z INFO gearpy.cluster.worker.child: runs\n",
            "exited with code 3",
        ),
        (3, b"2026-11-21T09:37:14.486Z ERROR shop: no disk\n", "exited with code 3: 2026-11-21T"),
        (
            3,
            b'{"time": "x", "level": "info", "logger": "gearpy.a", "message": ""}\nwhy',
            "exited with code 3: why",
        ),
        (3, b"lost " * 2000 + b"\n" + b"x" * TAIL_BYTES + b"\nwhy", "exited with code 3: why\nx"),
    ],
)
def test_causes_are_in_words(code: int, tail: bytes, cause: str) -> None:
    assert exit_cause(code, tail).startswith(cause)


def test_a_kill_while_memory_is_short_may_be_for_that() -> None:
    why = OomKills(0, 1).why_since(OomKills(0, 0))
    assert exit_cause(-9, b"", why_killed=why) == "killed by signal 9: maybe out of memory"
    assert exit_cause(-15, b"", why_killed=why) == "killed by signal 15 (SIGTERM)"
    assert OomKills(3, 1).why_since(OomKills(3, 1)) == ""
