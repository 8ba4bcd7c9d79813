"""What the command says while it compares two versions of a step."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gearpy.cli.apps.shadow import ProgressNotice
from gearpy.cli.main import app
from gearpy.cli.terminal.exits import INTERRUPTED
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.rerun.shadow import Shadow, ShadowReport
from gearpy.config.load import load
from tests.cluster.rerun.build import SETTINGS, program, wait_for_epochs


def test_who_waits_hears_now_and_then_how_far_it_is() -> None:
    notice = ProgressNotice(8, 1000)

    assert notice.lines(0, 9000) == []
    (line,) = notice.lines(3, 12_000)
    assert line.startswith("3 of 8 epochs are compared; ")
    assert notice.lines(3, 13_000) == []


def test_ctrl_c_prints_what_was_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Shadow.run

    def run_and_interrupt(
        shadow: Shadow,
        epochs: int,
        *,
        on_round: Callable[[int], None],
        is_called_off: Callable[[], bool],
    ) -> ShadowReport:
        def interrupt(compared: int) -> None:
            on_round(compared)
            if compared and not is_called_off():
                os.kill(os.getpid(), signal.SIGINT)

        return run(shadow, epochs, on_round=interrupt, is_called_off=is_called_off)

    monkeypatch.setattr(Shadow, "run", run_and_interrupt)
    keys = {"transport.secret-file": str(tmp_path / "secret"), "cluster.masters": "127.0.0.1:0"}
    new = program(tmp_path, "new", counted="-1")
    config = load(env={}, overrides=keys)
    with LocalCluster(config, workers=1, slots=8, listen=True) as cluster:
        running = cluster.client.submit("numbers", program(tmp_path, "old"), config=SETTINGS)
        wait_for_epochs(running)
        keys["cluster.masters"] = cluster.address
        settings = [part for each in keys.items() for part in ("--set", "=".join(each))]
        step = ["numbers", "count", new.location]
        command = ["app", "shadow", "--epochs", "100000", *settings, *step]
        # Who starts tests in the background has them ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            done = CliRunner().invoke(app, command)
        finally:
            signal.signal(signal.SIGINT, before)

    assert done.exit_code == INTERRUPTED, done.output
    assert "different: " in done.stdout
    assert "of 100000 epochs are compared" in done.stderr


def test_a_second_signal_ends_work_that_notes_the_first_one() -> None:
    program = (
        "import os, signal, sys; from gearpy.cli.terminal.guard import noting_signals\n"
        "with noting_signals() as noted:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print(noted.number, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('never')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, f"{signal.SIGINT:d}\n", "")
