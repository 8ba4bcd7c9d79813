"""What needs a Spark: sessions, and the ways from gearpy to Spark that run on a driver.

- `sessions`: a session that works on this machine, or on a cluster; whether it still lives.
- `sink`: hands finished windows to a function over DataFrames.
- `listener`: notes how queries get on with a log.

Behind sessions:
- `settings`: which settings they get.
- `java`: which Java runs them.
- `jvm`: the command line of a driver, and its start.
- `driver`: the one JVM of this process, and what PySpark keeps about it.
- `archive`: an archive of loaded classes, for a quick start; `rehearsal` is what is recorded.

Behind the sink: `delivery` is its thread, `backlog` what waits, `batch` what the function is told,
`batch_frames` its frame, `batch_log` what is written down, `target` its session; `expiry` removes
old files.

Programs as Spark queries:
- `plan`: a program from a source to a sink; `frame`: its query; `frame_sql`, `frame_groups`,
  `frame_worker` and `frame_table` are its parts.
- `shipping`: the program's code on its way to workers.
- `recorded`: what a source gave; `difference`: of two answers.

Start with `sessions`. May be imported by dsl, cluster and above. Names load what they stand for
when they are first used: only that needs PySpark, from the extra ``spark``.
"""

import importlib.util
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gearpy.distribution import pip_install
from gearpy.errors import ConfigError

if TYPE_CHECKING:
    from gearpy.spark.archive import make_archive
    from gearpy.spark.batch import SparkBatch, overwrite
    from gearpy.spark.java import java_home
    from gearpy.spark.listener import listen
    from gearpy.spark.sessions import (
        forget_dead_session,
        is_alive,
        is_connection_error,
        session,
        stop,
    )
    from gearpy.spark.sink import SparkSink

__all__ = [
    "SparkBatch",
    "SparkSink",
    "forget_dead_session",
    "is_alive",
    "is_connection_error",
    "java_home",
    "listen",
    "make_archive",
    "overwrite",
    "session",
    "stop",
]

_HOMES = {
    "archive": ("make_archive",),
    "batch": ("SparkBatch", "overwrite"),
    "java": ("java_home",),
    "listener": ("listen",),
    "sessions": ("forget_dead_session", "is_alive", "is_connection_error", "session", "stop"),
    "sink": ("SparkSink",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gearpy.spark' has no attribute {name!r}")
    if importlib.util.find_spec("pyspark") is None:
        raise ConfigError(f"Spark is not installed: {pip_install('spark')}")
    value = globals()[name] = getattr(import_module(f"gearpy.spark.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
