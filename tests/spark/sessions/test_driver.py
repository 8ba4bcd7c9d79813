"""How a JVM starts, and what happens when it does not come up. Scripts stand for Spark."""

from pathlib import Path

import pytest

from gearpy.errors import ConfigError, ConnectionLost
from gearpy.spark.sessions import driver
from gearpy.spark.sessions.driver import Driver

_SETTINGS = {"spark.master": "local", "spark.driver.memory": "1g"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark without anything but a launcher, and a process that has no JVM."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    return tmp_path


def a_launcher(home: Path, script: str) -> None:
    program = home / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("status", [0, 3])
def test_a_jvm_that_ends_at_once_is_reported(home: Path, status: int) -> None:
    a_launcher(home, f"exit {status}")

    with pytest.raises(ConfigError, match=f"ended with status {status} before it was up"):
        Driver().start(_SETTINGS)


def test_a_jvm_that_does_not_come_up_is_killed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "START_TIMEOUT_S", 0.05)
    a_launcher(home, f"echo $$ > {home}/pid; trap '' TERM; read line; exit 5")

    with pytest.raises(ConnectionLost, match=r"was not up in 0\.05 s"):
        Driver().start(_SETTINGS)

    pid = (home / "pid").read_text() if (home / "pid").exists() else "0"
    assert pid == "0" or not Path(f"/proc/{pid.strip()}").exists()


def test_the_launcher_is_told_what_a_start_needs(home: Path) -> None:
    """Logging is quiet; executors start by the Java that was found; nobody asks for a name."""
    a_launcher(home, f'printf "%s\\n" "$@" "$SPARK_LOCAL_IP" "$JAVA_HOME" > {home}/told; exit 1')

    with pytest.raises(ConfigError):
        Driver().start(_SETTINGS | {"spark.driver.defaultJavaOptions": "-Da=1"})

    *arguments, address, java = (home / "told").read_text().splitlines()
    logging = next(text for text in arguments if "log4j2" in text).split()
    assert logging[0].startswith("spark.driver.defaultJavaOptions=-Dlog4j2.configurationFile=file:")
    assert (logging[1:], address) == (["-Da=1"], "127.0.0.1")
    assert "spark.driver.memory=1g" in arguments
    assert (Path(java) / "bin" / "java").is_file()


def test_logging_is_the_users_where_there_is_a_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(home))
    (home / "log4j2.properties").touch()
    a_launcher(home, f'printf "%s\\n" "$@" > {home}/told; exit 1')

    with pytest.raises(ConfigError):
        Driver().start(_SETTINGS)

    assert "log4j2" not in (home / "told").read_text()
