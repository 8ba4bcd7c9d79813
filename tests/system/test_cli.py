"""The command line as the shell sees it: processes, pipes, signals, a real cluster."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from typer.testing import CliRunner, Result

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import FAILED, INTERRUPTED, NO_CLUSTER, SUCCESS, WRONG_USE
from gearpy.cluster.embedded.output import NO_READER
from tests.eventually import DEADLINE_S, eventually

Process: TypeAlias = subprocess.Popen[str]
Start: TypeAlias = Callable[..., Process]

GEAR: Final = (sys.executable, "-m", "gearpy")

ENDLESS: Final = """\
import itertools
import gearpy as gp

app = gp.StreamApp("endless")
app.read(gp.generate(itertools.count, rate=20_000)).map(str).write(gp.console())
"""
FAILING: Final = """\
import gearpy as gp

def divide(n):
    return 10 // n

app = gp.StreamApp("failing")
app.read(gp.collection([0, 1, 2])).map(divide).write(gp.console())
"""
SHORT: Final = """\
import gearpy as gp

app = gp.StreamApp("short")
numbers = app.read(gp.generate(lambda: iter(range(8_000)), rate=20_000))
numbers.filter(lambda n: n % 4_000 == 0).map("[b]{}[/b]".format).write(gp.console())
"""
FOLLOWING: Final = """\
import gearpy as gp

app = gp.StreamApp("follow")
rows = gp.jsonl("*.jsonl", schema={"n": int}, follow=True, settle="0s", poll="100ms")
app.read(rows).write(gp.stdout(form="jsonl"))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test its own programs, its own secret and no configuration from outside."""
    for name in [name for name in os.environ if name.startswith("GEARPY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GEARPY_TRANSPORT_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("GEARPY_CHECKPOINT_FOLDER", str(tmp_path / "checkpoints"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    for name, text in (("endless", ENDLESS), ("failing", FAILING), ("short", SHORT)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def gear(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GEAR, *args], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a command; what still runs in the end is killed."""
    started: list[Process] = []

    def _start(*args: str) -> Process:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen([*GEAR, *args], stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield _start
    for process in started:
        process.kill()
        with process:
            pass


def first_line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def end(process: Process, number: int) -> tuple[int, str]:
    """Send a signal and wait; return the exit code and what was said on standard error."""
    process.send_signal(number)
    _, said = process.communicate(timeout=DEADLINE_S)
    return process.returncode, said


class Cluster:
    """A local cluster in a process of its own, on a port that was free."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.address = json.loads(first_line(process))["address"]

    def gear(self, *args: str) -> subprocess.CompletedProcess[str]:
        return gear(*args, "--master", self.address)

    def told(self, *args: str) -> Result:
        """Run a command without a process for it, which would take longer than the command."""
        return CliRunner().invoke(app, [*args, "--master", self.address])

    def application(self, app_id: int) -> dict[str, Any]:
        applications = json.loads(self.told("info", "--json").stdout)["applications"]
        found: dict[str, Any] = next(each for each in applications if each["app_id"] == app_id)
        return found


@pytest.fixture
def cluster(start: Start) -> Cluster:
    return Cluster(start("local", "--json", "--no-ui", "--set", "cluster.masters=127.0.0.1:0"))


def test_a_cluster_runs_what_is_submitted(cluster: Cluster, folder: Path) -> None:
    """Submit, look, stop: the daily round, with what is refused and what fails on the way."""
    first = cluster.gear("app", "submit", "short.py")
    second = cluster.told("app", "submit", "endless.py", "--name", "mine", "--json")
    taken = cluster.told("app", "submit", "endless.py", "--name", "mine")
    cluster.told("app", "submit", "failing.py")
    eventually(lambda: cluster.application(1)["status"] == "succeeded")
    eventually(lambda: cluster.application(2)["progress"]["records_in"] > 0)
    eventually(lambda: cluster.application(3)["status"] == "failed")
    table = cluster.gear("info").stdout
    killed = cluster.gear("kill", "2")

    assert first.stdout == "application 1 (short) submitted\n"
    assert json.loads(second.stdout) == {"app_id": 2, "name": "mine"}
    assert taken.exit_code == WRONG_USE
    assert "error: application 'mine' is already " in taken.stderr
    assert all(word in table for word in ("short", "succeeded", "mine", "active", "1000"))
    assert "ZeroDivisionError" in table
    assert killed.stdout == "application 2 (mine) terminated\n"
    assert cluster.application(2)["status"] == "terminated"
    assert_that_strangers_are_told(cluster, folder)


def assert_that_strangers_are_told(cluster: Cluster, folder: Path) -> None:
    """Who has another secret is told that and where it is set; who wants the same port, its owner.

    The usual cause of the second is a cluster that runs already.
    """
    stranger = cluster.told("info", "--set", f"transport.secret-file={folder / 'other'}")
    second = gear("local", "--set", f"cluster.masters={cluster.address}")

    assert stranger.exit_code == NO_CLUSTER
    assert "secret" in stranger.stderr
    assert "Traceback" not in stranger.stderr
    assert second.returncode == WRONG_USE
    assert cluster.address in second.stderr
    assert len(second.stderr.splitlines()) == 1


def test_a_cluster_stops_when_it_is_told_to(cluster: Cluster) -> None:
    cluster.told("app", "submit", "endless.py")

    assert end(cluster.process, signal.SIGINT) == (SUCCESS, "")


@pytest.mark.smoke
def test_a_failing_application_shows_a_card() -> None:
    result = gear("run", "failing.py")

    assert result.returncode == FAILED
    assert "Traceback" not in result.stderr
    for part in ("ZeroDivisionError", "failing.py:4", "return 10 // n", "record  0"):
        assert part in result.stderr


def test_run_tells_what_a_source_leaves_out(folder: Path, start: Start) -> None:
    """Nothing else would: rows that are added to a file that was read are not read."""
    (folder / "follow.py").write_text(FOLLOWING, encoding="utf-8")
    rows = folder / "rows.jsonl"
    rows.write_text('{"n": 1}\n', encoding="utf-8")

    process = start("run", "follow.py")
    assert process.stderr is not None
    assert first_line(process) == '{"n":1}\n'
    with rows.open("a", encoding="utf-8") as lines:
        lines.write('{"n": 2}\n')
    told = next(line for line in process.stderr if line.startswith("warning: "))
    process.terminate()

    assert told.startswith(f"warning: {rows} has grown by 9 bytes since it was found")
    assert process.wait(DEADLINE_S) == SUCCESS


def test_a_reader_that_leaves_ends_the_run_in_silence(start: Start) -> None:
    process = start("run", "endless.py")
    first_line(process)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()

    said = process.stderr.read()

    assert process.wait(DEADLINE_S) == NO_READER
    assert "rror" not in said


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, SUCCESS)]
)
def test_a_signal_drains_a_run_and_sums_up(start: Start, number: int, expected: int) -> None:
    process = start("run", "endless.py")
    first_line(process)

    code, said = end(process, number)

    before, stopping, *_, summary = said.splitlines()  # Between them, how a slow one is.
    assert code == expected
    assert before.startswith("endless cannot be resumed when it has ended: ")
    assert stopping.startswith("stopping: nothing more is read")
    assert summary.startswith("endless drained: ")


def test_a_terminal_shows_a_bar_and_a_pipe_stays_clean() -> None:
    terminal, ours = pty.openpty()
    with subprocess.Popen(
        [*GEAR, "run", "short.py"], stdout=subprocess.PIPE, stderr=ours, text=True
    ) as process:
        os.close(ours)
        shown = read_all(terminal)
        assert process.stdout is not None
        printed = process.stdout.read()

    assert printed == "[b]0[/b]\n[b]4000[/b]\n"
    assert "\x1b[" in shown
    assert "records" in shown
    assert "short succeeded: 8,000 records in" in shown


def read_all(terminal: int) -> str:
    """Read from our end of a terminal until the other side has closed its own."""
    found = b""
    with open(terminal, "rb", buffering=0) as reader, suppress(OSError):  # EIO is the end.
        while data := reader.read(65_536):
            found += data
    return found.decode()
