"""`gear shell`: statements, what they show, and a prompt that completes names."""

import os
import pty
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import FAILED, WRONG_USE
from gearpy.ids import ExecutorId, ProcessorId, SessionId, TaskId
from gearpy.messages.metrics import TaskSample
from tests.cli.build import Gear

_SECONDS = 60.0


def test_expressions_are_shown_as_at_a_prompt(gear: Gear) -> None:
    """Gearpy's objects one in each line, as words; other values as Python has them."""
    shown = gear(
        "shell",
        "-c",
        "client.applications(); cluster.ask(ListWorkers()).workers\nx = 1\nx, 'a'\nNone",
    )

    assert "<'shop' active: 120,000 records in, " in shown
    assert "\n<worker 0 at " in shown
    assert shown.endswith("\n(1, 'a')\n")


def test_what_an_application_consists_of_is_shown(gear: Gear) -> None:
    shown = gear("shell", "-c", "client.running('shop'); client.ask(DescribeApplication(app_id=2))")

    assert shown.splitlines() == [
        "<application 2 'shop'>",
        "<application 2: epoch 181, 1 restarts",
        "  processor 0 'files': 1 tasks, 60,000 records in, 60,000 out, 0 late",
        "  processor 1 'map(price)': 2 tasks, 60,000 records in, 4,512 out, 3 late",
        "  executor 0 on worker 0: running, process 4711, 2 slots, tasks 0.0, 1.0",
        "  executor 1 on worker 1: launching, process 0, 1 slots, tasks none",
        "  failure: ValueError: could not convert string to float: 'n/a'",
        "  failure: executor 1 lost: killed by signal 9>",
    ]


def test_a_task_shows_itself() -> None:
    task = TaskSample(
        task_id=TaskId(ProcessorId(1), 0),
        session=SessionId(1),
        executor_id=ExecutorId(2),
        records_in=1000,
        state_bytes=2048,
    )
    assert repr(task) == (
        "<task 1.0 on executor 2: 1,000 records in, 0 out, 0 wait, 2,048 bytes of state>"
    )


def test_statements_come_from_standard_input(gear: Gear) -> None:
    where = ("--master", gear.address, "--set", f"transport.secret-file={gear.secret_file}")

    def said(text: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["shell", *where], input=text)
        return result.exit_code, result.stdout, result.stderr

    assert said("for i in range(2):\n    print(i)\n") == (0, "0\n1\n", "")
    code, out, err = said("1\n1/0\n2\n")
    assert (code, out) == (FAILED, "1\n")
    assert err.splitlines()[1:] == [
        '  File "<shell>", line 2, in <module>',
        "ZeroDivisionError: division by zero",
    ]
    code, out, err = said("1\nx = (\n")
    assert (code, out) == (FAILED, "")
    assert err.splitlines()[-1].startswith("SyntaxError")
    code, out, err = said("client.metrics(2)\n2\n")
    assert (code, out) == (WRONG_USE, "")
    assert err == "error: nothing is measured here\n"


@pytest.mark.long
def test_a_prompt_completes_names_and_goes_on_after_errors(gear: Gear) -> None:
    args = ["shell", "--master", gear.address, "--set", f"transport.secret-file={gear.secret_file}"]
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-m", "gearpy", *args])  # noqa: S606 - the shell
    seen = read_until(terminal, ">>> ")
    assert "client asks the cluster" in seen
    for typed, answer in (
        ("client.appli\t)[0].name\n", "'"),
        ("client.metrics(2)\n", "nothing is measured here"),
        ("1/0\n", "ZeroDivisionError"),
        ("40 + 2\n", "42"),
    ):
        os.write(terminal, typed.encode())
        assert answer in read_until(terminal, ">>> ")
    os.write(terminal, b"\x04")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def read_until(terminal: int, end: str) -> str:
    seen, until_s = "", time.monotonic() + _SECONDS
    while not seen.endswith(end) and time.monotonic() < until_s:
        seen += os.read(terminal, 65536).decode()
    return seen


def test_objects_of_other_kinds_stay_in_one_line(gear: Gear, tmp_path: Path) -> None:
    assert gear("shell", "-c", "[1, 2]; [gp, 1]").startswith("[1, 2]\n[<module 'gearpy'")
