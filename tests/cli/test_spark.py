"""``gear spark``: a cluster inside Spark, from its start to its end."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from gearpy.cli.main import app as commands
from gearpy.cluster.boot.remote import connect
from gearpy.config.load import load
from gearpy.spark import java_home
from gearpy.spark.guest.cluster import CONF_FILE
from gearpy.windowlog.log import WindowLog
from tests.eventually import take_time

_GEAR: Final = (sys.executable, "-m", "gearpy", "spark")
_ROOT: Final = Path(__file__).parents[2]
_WAIT_S: Final = 300
_WORDS: Final = """
import gearpy as gp

app = gp.StreamApp("words", parallelism=2)
words = app.read(gp.collection("to be or not to be".split()))
counts = words.key_by(lambda word: word).window(gp.global_window()).count()
counts.map(lambda count: [count.key, count.value]).write(gp.jsonl_folder({result!r}))
"""


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
    take_time(2 * _WAIT_S)
    folder, conf = ("--folder", str(tmp_path)), ("--conf", str(tmp_path / CONF_FILE))
    program, result = tmp_path / "words.py", tmp_path / "result"
    program.write_text(_WORDS.format(result=str(result)))
    with _ended(
        [*_GEAR, "start", *folder, "--spark", "local-cluster[2,1,1024]", "--workers", "2"]
    ) as started:
        assert started.stdout is not None
        assert "2 workers in Spark application app-" in started.stdout.readline()
        assert str(tmp_path / CONF_FILE) in started.stdout.readline()
        told = _said([*_GEAR, "status", *folder])
        assert f"process {started.pid} on" in told[0]
        assert [line.partition(": ")[2] for line in told[1:]] == ["0 of 1000 slots in use"] * 2
        _said([*_GEAR[:-1], "app", "submit", str(program), *conf])
        with connect(config=load([tmp_path / CONF_FILE])) as client:
            assert client.running("words").wait(_WAIT_S).status == "succeeded"
        assert _counts(result) == {"to": 2, "be": 2, "or": 1, "not": 1}
        assert _said([*_GEAR, "stop", *folder])[0].endswith("has ended")
        assert started.wait(_WAIT_S) == 0


@pytest.mark.long
def test_the_program_of_the_page_runs_from_the_wheel(tmp_path: Path) -> None:
    take_time(2 * _WAIT_S)
    built, here = tmp_path / "dist", tmp_path / "here"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(build, cwd=_ROOT, check=True, capture_output=True, timeout=_WAIT_S)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "lib")
    here.mkdir()
    page = (_ROOT / "docs" / "spark" / "cluster.md").read_text(encoding="utf-8")
    program = page.split("```py\n", 1)[1].split("```", 1)[0]
    asked = ', master="local-cluster[2,2,1024]"'
    assert asked in program
    program = program.replace(asked, "").replace("/shared", str(tmp_path))
    # Spark waits for 10 s, and no longer, until the Python of a stream has begun.
    kept = [line for line in program.splitlines() if not re.search(r"readStream|query", line)]
    (here / "shop.py").write_text("\n".join(kept))
    done = subprocess.run(
        ["spark-submit", "--master", "local[4]", "shop.py"],
        cwd=here,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(tmp_path / "lib"),
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_HOME": str(java_home()),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=_WAIT_S,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["succeeded"]
    assert WindowLog(tmp_path / "counts").segments()


@contextmanager
def _ended(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """Run a command while the block runs, and kill it if it still lives then."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)


def _counts(folder: Path) -> dict[str, int]:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return dict(map(json.loads, lines))


def _said(command: Sequence[str]) -> list[str]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_WAIT_S, check=True)
    return done.stdout.splitlines()
