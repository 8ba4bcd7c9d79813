"""`gear master` and `gear worker` as the shell sees them: processes, signals, one line each."""

import json
import os
import queue
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final, TypeAlias

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import INTERRUPTED, NO_CLUSTER, SUCCESS, TERMINATED, WRONG_USE
from gearpy.cluster.boot.master import address_to_listen
from gearpy.config.load import load
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, GearpyError
from gearpy.messages.client import ClusterSummary, GetCluster
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.secret import load_or_create_secret
from tests.bench.process_cluster import free_port
from tests.eventually import DEADLINE_S, eventually

GEAR: Final = (sys.executable, "-P", "-m", "gearpy")


class Daemon:
    def __init__(self, *args: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*GEAR, *args], stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out = _lines_of(self.process.stdout)
        self.err = _lines_of(self.process.stderr)

    def says(self) -> str:
        return self.out.get(timeout=DEADLINE_S)

    def warns(self) -> str:
        return self.err.get(timeout=DEADLINE_S)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)


def _lines_of(stream: IO[str]) -> "queue.SimpleQueue[str]":
    """Read a stream as it comes; its end is an empty line."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        with stream:
            for line in stream:
                lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


Start: TypeAlias = Callable[..., Daemon]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test its own secret and folders, and no configuration from outside."""
    for name in [name for name in os.environ if name.startswith("GEARPY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GEARPY_TRANSPORT_SECRET_FILE", str(tmp_path / "secret"))
    for role in ("MASTER", "WORKER", "LOG", "CHECKPOINT"):
        monkeypatch.setenv(f"GEARPY_{role}_FOLDER", str(tmp_path / role.lower()))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    return tmp_path


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a daemon; what still runs in the end is killed."""
    started: list[Daemon] = []

    def _start(*args: str) -> Daemon:
        started.append(Daemon(*args))
        return started[-1]

    yield _start
    for daemon in started:
        daemon.process.kill()
        daemon.process.wait(DEADLINE_S)


def error_of(*args: str) -> str:
    """Run a daemon, in this process, that must refuse to start; return its only line."""
    ended = CliRunner(env={"COLUMNS": "120"}).invoke(app, args)
    assert ended.exit_code == WRONG_USE, ended.output
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    return line


def a_master(start: Start, *args: str) -> tuple[Daemon, str]:
    master = start("master", "--port", "0", "--json", *args)
    return master, json.loads(master.says())["address"]


# -- the daily round -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_daemons_say_one_line_and_end_when_told(start: Start, folder: Path, number: int) -> None:
    master, address = a_master(start)
    worker = start("worker", "--slots", "5", "--master", address)

    assert worker.says() == f"worker 0 ready: 5 slots, master {address}\n"
    assert worker.end(number) == SUCCESS
    assert master.end(number) == SUCCESS
    for daemon in (master, worker):
        assert (daemon.says(), daemon.warns()) == ("", "")
    port = address.rpartition(":")[2]
    assert "master ready" in (folder / "log" / f"master-{port}.log").read_text()
    assert "worker 0 ready" in (folder / "log" / "worker-0.log").read_text()


def test_a_master_says_where_it_is(start: Start) -> None:
    master = start("master", "--host", "127.0.0.1", "--port", "0")

    assert master.says().startswith("master ready at 127.0.0.1:")


def test_a_worker_waits_for_its_master(start: Start) -> None:
    address = f"127.0.0.1:{free_port()}"
    worker = start("worker", "--master", address)
    assert worker.warns() == f"no master at {address} yet; trying again every second\n"

    start("master", "--port", address.rpartition(":")[2])

    assert worker.says().startswith("worker 0 ready: ")
    assert worker.end() == SUCCESS


def test_a_worker_stays_with_a_master_that_comes_back(start: Start) -> None:
    master, address = a_master(start)
    worker = start("worker", "--master", address)
    worker.says()
    master.process.kill()
    master.process.wait(DEADLINE_S)

    again = start("master", "--port", address.rpartition(":")[2])
    again.says()

    assert wait_for_worker(address) == 0
    assert worker.end() == SUCCESS
    assert (worker.says(), worker.warns()) == ("", "")


def wait_for_worker(address: str) -> int:
    """Ask until a master has a worker; return the worker's id."""
    pause = threading.Event()
    for _ in range(2 * DEADLINE_S):
        command = [*GEAR, "worker", "list", "--json", "--master", address]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        workers = json.loads(said)["workers"]
        if workers:
            return int(workers[0]["worker_id"])
        pause.wait(0.5)
    raise AssertionError("the worker did not come back")


def test_a_worker_that_is_killed_leaves_no_lock(start: Start, folder: Path) -> None:
    _, address = a_master(start)
    first = start("worker", "--master", address)
    first.says()
    first.end(signal.SIGKILL)

    second = start("worker", "--master", address)
    second.says()

    assert [each.name for each in (folder / "log").glob("worker-*")] == ["worker-0.log"]


def test_verbose_shows_the_log_here(start: Start) -> None:
    master = start("master", "--port", "0", "--verbose", "--log-format", "json")

    said = [json.loads(master.warns())["message"] for _ in range(2)]

    assert any("master ready" in each for each in said)


# -- what is refused -----------------------------------------------------------------------------


def test_a_port_that_is_taken_is_one_clear_line(start: Start, folder: Path) -> None:
    _, address = a_master(start)

    line = error_of(
        "master", "--port", address.rpartition(":")[2], "--folder", str(folder / "other")
    )

    assert line.startswith(f"error: cannot listen on {address}: ")


def test_a_folder_has_one_master(start: Start) -> None:
    a_master(start)

    assert "master" in error_of("master", "--port", "0")


@pytest.mark.parametrize("daemon", ["master", "worker"])
@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--set", "worker.slots=none"), "worker.slots is 'none', must be a whole number"),
        (("--set", "no.such=1"), "no.such is not a known key"),
        (("--conf", "/no/such.toml"), "/no/such.toml: cannot be read"),
        (("--set", "log.folder=/dev/null/x"), "log.folder /dev/null/x cannot be made"),
        (("--host", "192.0.2.1"), "refused to listen on 192.0.2.1"),
    ],
)
def test_a_wrong_configuration_is_one_clear_line(
    daemon: str, flags: tuple[str, ...], text: str
) -> None:
    assert text in error_of(daemon, *flags)


@pytest.mark.parametrize("daemon", ["master", "worker"])
def test_a_folder_that_cannot_be_used_is_one_clear_line(daemon: str, folder: Path) -> None:
    (folder / daemon).mkdir()
    (folder / daemon / "artifacts").write_text("")

    line = error_of(daemon, *(("--port", "0") if daemon == "master" else ()))

    assert f"{daemon}.folder cannot be used: " in line


@pytest.mark.parametrize("daemon", ["master", "worker"])
def test_a_secret_that_others_can_read_is_refused(daemon: str, folder: Path) -> None:
    (folder / "secret").write_text("0" * 64)
    (folder / "secret").chmod(0o644)

    assert error_of(daemon).endswith("is open to others (mode 0644): chmod 600 it")


def another_secret(folder: Path) -> str:
    """Make a secret that the cluster does not have; return the setting that names it."""
    another = folder / "another"
    another.write_text("0" * 64)
    another.chmod(0o600)
    return f"transport.secret-file={another}"


def test_a_worker_with_another_secret_ends_and_says_so(start: Start, folder: Path) -> None:
    """It would look for a master for ever, as one that has refused it is none."""
    _, address = a_master(start)
    other = another_secret(folder)

    ended = CliRunner(env={"COLUMNS": "120"}).invoke(
        app, ["worker", "--set", f"cluster.masters={address}", "--set", other]
    )

    assert ended.exit_code == NO_CLUSTER
    *_, error, fix = ended.stderr.splitlines()
    assert error == f"error: {address}: the peer refused our proof: it has another cluster secret"
    assert fix.startswith("fix: use the cluster's secret file")


def test_one_of_several_masters_with_another_secret_ends_and_says_so(
    start: Start, folder: Path
) -> None:
    first, second, third = (f"127.0.0.1:{free_port()}" for _ in range(3))

    def begin(address: str, *more: str) -> Daemon:
        port = address.rpartition(":")[2]
        masters = ("--masters", f"{first},{second},{third}", "--folder", str(folder / port))
        return start("master", "--port", port, *masters, *more)

    refuses = "the peer refused our proof: it has another cluster secret"
    stranger = begin(third, "--set", another_secret(folder))
    assert stranger.says() == f"master ready at {third}\n"
    begin(first)
    assert stranger.warns() == f"one of the masters has another secret: {first}: {refuses}\n"
    begin(second)
    assert stranger.warns() == f"error: {second}: {refuses}\n"
    assert stranger.warns().startswith("fix: use the cluster's secret file")
    assert stranger.process.wait(DEADLINE_S) == NO_CLUSTER


def test_a_master_that_is_not_listed_is_refused() -> None:
    """Nobody would look for it there."""
    masters = ("--masters", "127.0.0.1:1")

    assert "127.0.0.1:3 is not among cluster.masters" in error_of(
        "master", "--host", "127.0.0.1", "--port", "3", *masters
    )


def test_a_master_without_files_left_turns_strangers_away_and_goes_on(start: Start) -> None:
    """It may open a few more than it has; what says nothing is closed in time, and makes room."""
    master, address = a_master(start)
    pid, config = master.process.pid, load()
    few = len([*Path(f"/proc/{pid}/fd").iterdir()]) + 10
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, few))
    host, _, port = address.partition(":")

    with ExitStack() as stack:
        for _ in range(200):
            stranger = stack.enter_context(socket.socket())
            stranger.settimeout(DEADLINE_S)
            with suppress(OSError):
                stranger.connect((host, int(port)))
        secret = load_or_create_secret(config.transport.secret_file)

        def answers() -> bool:
            with suppress(GearpyError), ControlClient(address, secret) as client:
                return isinstance(client.ask(GetCluster(), DEADLINE_S), ClusterSummary)
            return False

        eventually(answers)
    assert master.end() == SUCCESS


# -- which address -------------------------------------------------------------------------------


def a_config(masters: str = "") -> Config:
    return load(env={}, overrides={"cluster.masters": masters} if masters else {})


@pytest.mark.parametrize(
    ("masters", "host", "port", "address"),
    [
        ("", None, None, ("127.0.0.1", 3000)),
        ("", None, 5, ("127.0.0.1", 5)),
        ("", "::1", None, ("::1", 3000)),
        ("", "::1", 0, ("::1", 0)),
        ("a:1", None, None, ("a", 1)),
        ("a:1,b:1", "b", None, ("b", 1)),
        ("a:1,a:2", None, 2, ("a", 2)),
        ("a:1,a:2", "a", 2, ("a", 2)),
    ],
)
def test_a_master_listens_at_its_address_in_the_list(
    masters: str, host: str | None, port: int | None, address: tuple[str, int]
) -> None:
    assert address_to_listen(a_config(masters), host=host, port=port) == address


def test_a_master_knows_its_address_by_the_name_of_its_host() -> None:
    here = {"cluster.masters": "a:1,b:1,c:1", "hostname": "b"}
    assert address_to_listen(load(env={}, overrides=here), host=None, port=None) == ("b", 1)
    assert address_to_listen(load(env={}, overrides=here), host="c", port=None) == ("c", 1)


@pytest.mark.parametrize(
    ("masters", "host", "port"),
    [
        ("a:1", "b", None),
        ("a:1", None, 2),
        ("a:1", None, 0),
        ("a:1,b:1", None, 1),
        ("a:1,b:2", None, None),
    ],
)
def test_what_is_not_listed_or_not_clear_is_refused(
    masters: str, host: str | None, port: int | None
) -> None:
    with pytest.raises(ConfigError, match=r"cluster\.masters"):
        address_to_listen(a_config(masters), host=host, port=port)


def test_a_second_signal_ends_a_daemon_at_once(start: Start, tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    _, address = a_master(start)
    worker = start("worker", "--master", address)
    worker.says()
    submit = [*GEAR, "app", "submit", str(tmp_path / "stuck.py"), "--master", address]
    subprocess.run(submit, check=True, capture_output=True)
    log = tmp_path / "log" / "app-1" / "executor-0-launch-1.log"
    eventually(lambda: log.exists() and "stuck in" in log.read_text())
    pid = int(log.read_text().partition("stuck in ")[2].split()[0])

    worker.process.send_signal(signal.SIGTERM)
    eventually(lambda: "drains" in (tmp_path / "log" / "worker-0.log").read_text())

    assert worker.end() == TERMINATED
    eventually(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)]
)
def test_a_signal_between_two_moments_has_its_exit_code(number: int, code: int) -> None:
    """While modules are loaded, or when all is done but the end: never a traceback."""
    program = (
        "import os, signal; from gearpy.cli.terminal.guard import end_at_signals, stoppable;"
        "end_at_signals()\nwith stoppable(): pass\n"
        f"os.kill(os.getpid(), {number})\nsignal.sigwait({{signal.SIGUSR1}})"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (code, b"")


STUCK: Final = """\
import os, signal, time
import gearpy as gp

def stick(n):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    print("stuck in", os.getpid(), flush=True)
    while True:
        time.sleep(1)

app = gp.StreamApp("stuck")
app.read(gp.collection([2, 1, 0])).map(stick).write(gp.console())
"""
