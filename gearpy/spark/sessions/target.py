"""Gives a sink its Spark session, and another one when that is gone."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pyspark.sql import SparkSession

from gearpy.errors import ConfigError
from gearpy.spark.sessions.sessions import forget_dead_session, is_alive, session

#: None: one on this machine. A text: the URL of a master, or of a Spark Connect server.
SparkTarget: TypeAlias = str | SparkSession | Callable[[], SparkSession] | None

_MASTER: Final = re.compile(r"local(\[.*\])?|yarn|(spark|k8s)://.+", re.ASCII)
_CONNECT: Final = "sc://"


class SessionTarget:
    """Gives a session whenever one is needed.

    Runs on: the thread of the hand-over.

    Args:
        can_replace: whether ``make`` may be called again when the session is gone.
    """

    def __init__(self, make: Callable[[], SparkSession], *, can_replace: bool = True) -> None:
        self._make = make
        self._can_replace = can_replace
        self._session: SparkSession | None = None

    def connect(self) -> SparkSession:
        if self._session is not None and not self._can_replace:
            raise ConfigError(
                "the Spark session that to_spark was given is gone, and nobody else can make it "
                "again: give to_spark a function that makes one, a URL, or nothing"
            )
        self._session = None
        forget_dead_session()  # It may be that of an earlier sink.
        self._session = self._make()
        return self._session

    @property
    def is_lost(self) -> bool:
        return self._session is None or not is_alive(self._session)


def target_of(spark: Any) -> SessionTarget:
    if spark is None:
        return SessionTarget(session)
    if isinstance(spark, str):
        if spark.startswith(_CONNECT):
            return SessionTarget(lambda: session(remote=spark))
        if _MASTER.fullmatch(spark):
            return SessionTarget(lambda: session(master=spark))
        raise ConfigError(
            f"to_spark: {spark!r} is no URL of a Spark: give sc://host:port, spark://host:port, "
            "yarn, k8s://... or local[n]"
        )
    if isinstance(spark, SessionTarget):
        return spark
    if hasattr(spark, "createDataFrame") and not isinstance(spark, type):
        return SessionTarget(lambda: spark, can_replace=False)
    if callable(spark):
        return SessionTarget(spark)
    raise ConfigError(
        f"to_spark: spark is {spark!r:.200}: give nothing, a URL, a SparkSession, or a function "
        "that returns one"
    )
