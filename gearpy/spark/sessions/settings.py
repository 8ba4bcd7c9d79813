"""Decides the settings of a session. Pure: no JVM, no files.

The caller's settings always win. The rest makes a session on one machine quiet, closed to the
outside, and quick with small files; on a cluster gearpy sets only what holds there, too.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

LOOPBACK: Final = "127.0.0.1"

#: Memory of the JVM when nothing is said.
MEMORY: Final = "1g"

_STATE_STORE: Final = "spark.sql.streaming.stateStore.providerClass"

#: Spark starts the program ``chmod`` for every file it makes on a local disk, about 40 times per
#: empty micro-batch. With these it does not: 13 ms instead of 69 ms.
_RENAMES: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
_RAW_FILES: Final = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}
FAST_FILES: Final = {**_RENAMES, **_RAW_FILES}

#: Spark's own pattern (`spark.redaction.regex`) for what must not be seen. All users of a machine
#: see the arguments of its processes; these settings reach Spark over the connection instead.
_SECRET: Final = re.compile(r"(?i)secret|password|token|access[.]?key")
#: Settings that mean nothing before there is a session.
_OF_SESSIONS: Final = ("spark.app.name", "spark.sql.", "spark.ui.")
_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"

#: Masters whose every process runs on this machine.
_LOCAL: Final = re.compile(r"local(-cluster)?(\[.*\])?$")
_LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


def is_here(master: str) -> bool:
    if _LOCAL.match(master):
        return True
    hosts = [part.rsplit(":", 1)[0] for part in master.removeprefix("spark://").split(",")]
    return master.startswith("spark://") and all(host in _LOOPBACK_HOSTS for host in hosts)


def cores_of(master: str, cores: int) -> int | None:
    """Return how many tasks run at a time under a local master; None if another decides that.

    Args:
        master: For example ``local``, ``local[2]``, ``local[*]`` or ``local[4,3]``.
    """
    if master == "local":
        return 1
    number = re.match(r"local\[(\d+|\*)[\],]", master)
    if number is None:
        return None
    return cores if number[1] == "*" else int(number[1])


def fast_files_for(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for quick local files that are safe beside `conf`.

    Checkpoints and data have to be on local disks, as is the case unless `conf` names another file
    system as the default. The RocksDB state store cannot commit through the raw file system.
    """
    default = conf.get("spark.hadoop.fs.defaultFS", "file:///")
    if not default.startswith("file:"):
        return {}
    return dict(_RENAMES) if "RocksDB" in conf.get(_STATE_STORE, "") else dict(FAST_FILES)


def defaults_of(text: str) -> dict[str, str]:
    lines = (line.strip() for line in text.splitlines())
    parts = [
        re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line[:1] not in "#!"
    ]
    return {part[0]: part[1] for part in parts if len(part) > 1}


def session_settings(
    app: str,
    *,
    master: str,
    memory: str,
    conf: Mapping[str, str],
    fast_files: bool,
    cores: int,
) -> dict[str, str]:
    settings = {
        "spark.app.name": app,
        "spark.master": master,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Windows are cut and shown in UTC; a day of Spark's is to be the same day.
        "spark.sql.session.timeZone": "UTC",
    }
    if is_here(master):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = LOOPBACK
        settings |= fast_files_for(conf) if fast_files else {}
    tasks = cores_of(master, cores)
    if tasks is not None:
        # The default of 200 is meant for clusters: each micro-batch would start 200 tasks.
        settings["spark.sql.shuffle.partitions"] = str(tasks)
    return settings | dict(conf)


def launch_settings(settings: Mapping[str, str], *, logging: str) -> dict[str, str]:
    """Return the settings with which a JVM is started: without secrets, and those of the session.

    Args:
        logging: An option of Java, which the user's options may contradict.
    """
    plain = {
        name: value
        for name, value in settings.items()
        if not name.startswith(_OF_SESSIONS) and not _SECRET.search(name)
    }
    return plain | {_JAVA_OPTIONS: f"{logging} {settings.get(_JAVA_OPTIONS, '')}".strip()}


def remote_settings(conf: Mapping[str, str]) -> dict[str, str]:
    return {"spark.sql.session.timeZone": "UTC", **conf}


def conflicts(
    wanted: Mapping[str, str],
    *,
    current: Callable[[str], str | None],
    is_changeable: Callable[[str], bool],
) -> list[str]:
    """Return the settings that a living session cannot take any more, one text for each."""
    return [
        f"{name} is {current(name) or 'not set'} in the Spark session that this process has, and "
        f"{value} was asked for: it counts when Spark starts; call gearpy.spark.stop() before"
        for name, value in wanted.items()
        if current(name) != value and not is_changeable(name)
    ]


def python_env(master: str, env: Mapping[str, str], *, python: str) -> dict[str, str]:
    """Return which Python runs user functions: this one, not whatever ``python3`` is on ``PATH``.

    Other machines may have it elsewhere: there the user's ``PYSPARK_PYTHON`` or ``python3`` counts.

    Args:
        env: The environment; its settings win.
    """
    chosen = {"PYSPARK_DRIVER_PYTHON": python}
    if is_here(master):
        chosen["PYSPARK_PYTHON"] = python
    return {name: env.get(name) or program for name, program in chosen.items()}
