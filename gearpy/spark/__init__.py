"""Sessions of Spark, and the ways from gearpy to Spark that run on a driver.

- `sessions`: a Spark session that works on this machine: Java, JVM, settings.
- `delivery`: finished windows to a function over DataFrames, each batch once.
- `query`: a program as a query of Spark.
- `guest`: a cluster of gearpy inside a Spark application, whose tasks are its workers.
- `source`: the source and sink ``format("gearpy")`` of Spark, which reads and writes window logs.
- `entry`: the module at the top of an installation by which Spark finds it.

Start with `sessions.sessions`. May be imported by dsl and above. Names load their
modules when they are first used: only that needs PySpark, from the extra ``spark``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gearpy.spark.delivery.batch import SparkBatch, overwrite
    from gearpy.spark.delivery.listener import listen
    from gearpy.spark.delivery.sink import SparkSink
    from gearpy.spark.guest.cluster import SparkCluster, cluster
    from gearpy.spark.sessions.java import java_home
    from gearpy.spark.sessions.sessions import (
        forget_dead_session,
        is_alive,
        is_connection_error,
        session,
        stop,
    )

__all__ = [
    "SparkBatch",
    "SparkCluster",
    "SparkSink",
    "cluster",
    "forget_dead_session",
    "is_alive",
    "is_connection_error",
    "java_home",
    "listen",
    "overwrite",
    "session",
    "stop",
]

_HOMES = {
    "delivery.batch": ("SparkBatch", "overwrite"),
    "sessions.java": ("java_home",),
    "delivery.listener": ("listen",),
    "sessions.sessions": (
        "forget_dead_session",
        "is_alive",
        "is_connection_error",
        "session",
        "stop",
    ),
    "delivery.sink": ("SparkSink",),
    "guest.cluster": ("SparkCluster", "cluster"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gearpy.spark' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"gearpy.spark.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
