"""``gear spark``: a cluster inside Spark, from its start to its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from gearpy.cli.main import app as commands
from gearpy.spark.guest.cluster import CONF_FILE

_GEAR: Final = (sys.executable, "-m", "gearpy", "spark")
_WAIT_S: Final = 300


def _gear(*args: str) -> Result:
    return CliRunner().invoke(commands, ["spark", *args])


@pytest.mark.parametrize("command", ["status", "stop"])
def test_a_folder_without_a_cluster_is_told(command: str, tmp_path: Path) -> None:
    """With the command that starts one."""
    result = _gear(command, "--folder", str(tmp_path))

    assert result.exit_code == 2
    assert f"no cluster inside Spark runs over {tmp_path}: `gear spark start" in result.stderr


@pytest.mark.long
def test_a_cluster_is_started_looked_at_and_stopped(tmp_path: Path) -> None:
    """By commands alone."""
    folder = ("--folder", str(tmp_path))
    with subprocess.Popen(
        [*_GEAR, "start", *folder, "--spark", "local[2]", "--workers", "1"],
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            assert started.stdout is not None
            assert "1 worker in Spark application local-" in started.stdout.readline()
            assert str(tmp_path / CONF_FILE) in started.stdout.readline()
            told = _said([*_GEAR, "status", *folder])
            assert f"process {started.pid} on" in told[0]
            assert told[1].endswith("0 of 1000 slots in use")
            assert _said([*_GEAR, "stop", *folder])[0].endswith("has ended")
            assert started.wait(_WAIT_S) == 0
        finally:
            if started.poll() is None:
                os.kill(started.pid, signal.SIGKILL)


def _said(command: Sequence[str]) -> list[str]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_WAIT_S, check=True)
    return done.stdout.splitlines()
