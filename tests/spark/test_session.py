"""The session that all tests of this folder share: what it is, and what it refuses."""

import subprocess
import sys

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkRuntimeError
from pyspark.sql import SparkSession

import gearpy.spark
from gearpy.distribution import pip_install
from gearpy.errors import ConfigError


def test_a_session_is_made_once(spark: SparkSession) -> None:
    assert gearpy.spark.session() is spark
    assert gearpy.spark.session("other", master="local[2]") is spark


def test_a_session_has_the_settings_that_were_chosen(spark: SparkSession) -> None:
    """They have arrived: quick files, UTC, few partitions."""
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RawLocalFileSystem" in str(spark.conf.get("spark.hadoop.fs.file.impl"))


def test_settings_that_may_change_are_changed(spark: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    try:
        gearpy.spark.session(conf={name: "5"})
        assert spark.conf.get(name) == "5"
    finally:
        spark.conf.set(name, "2")


def test_settings_that_count_at_the_start_are_refused_all_at_once(spark: SparkSession) -> None:
    """PySpark would pass over them without a word. Nothing else is changed either."""
    with pytest.raises(ConfigError) as caught:
        gearpy.spark.session(
            master="local[3]",
            memory="9g",
            conf={"spark.driver.host": "elsewhere", "spark.sql.shuffle.partitions": "7"},
        )

    assert [text.partition(" in the ")[0] for text in caught.value.mistakes] == [
        "spark.master is local[2]",
        "spark.driver.memory is 1g",
        "spark.driver.host is 127.0.0.1",
    ]
    assert all("gearpy.spark.stop()" in text for text in caught.value.mistakes)
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"master": "sc://host"}, "master='sc://host' is a Spark Connect server"),
        ({"master": "local", "remote": "sc://host"}, "both master='local' and remote='sc://host'"),
        ({"remote": "local[2]"}, "remote='local[2]' is no URL of a Spark Connect server"),
        ({"remote": "sc://host", "memory": "2g"}, "memory='2g' is a matter of the server"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(
    arguments: dict[str, str], text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        gearpy.spark.session(**arguments)  # type: ignore[arg-type]

    assert text in str(caught.value)


def test_a_server_beside_a_session_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")

    with pytest.raises(ConfigError, match=r"cannot have one at sc://127\.0\.0\.1:1 beside it"):
        gearpy.spark.session()


def test_there_is_no_way_back_from_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark keeps that in the environment; its own error does not say what to do."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")

    with pytest.raises(ConfigError, match="start another process"):
        gearpy.spark.session()


def test_a_session_that_works_is_not_forgotten(spark: SparkSession) -> None:
    assert gearpy.spark.is_alive(spark)
    assert not gearpy.spark.forget_dead_session()
    assert spark.range(3).count() == 3


def test_wrong_queries_are_no_connection_errors(spark: SparkSession) -> None:
    """To try them again would be in vain."""
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT nothing FROM nowhere")

    assert not gearpy.spark.is_connection_error(caught.value)
    assert not gearpy.spark.is_connection_error(ValueError("UNAVAILABLE"))


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "Connection refused"),
        EOFError(),
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("Cannot call methods on a stopped SparkContext."),
        PySparkRuntimeError("<_InactiveRpcError … status = StatusCode.UNAVAILABLE>"),
        PySparkRuntimeError("[INVALID_HANDLE.SESSION_CHANGED] The handle … is invalid."),
        PySparkRuntimeError("Received incorrect server side session identifier for request. …"),
        PySparkRuntimeError("[NO_ACTIVE_SESSION] No active Spark session found. …"),
        PySparkRuntimeError("[RETRIES_EXCEEDED] The maximum number of retries …"),
    ],
)
def test_a_spark_that_is_gone_is_known_by_its_errors(error: Exception) -> None:
    """They come in many classes; also as the cause of an error of the user's."""
    outer = RuntimeError("my job failed")
    outer.__cause__ = ValueError("inner")
    outer.__cause__.__context__ = error

    assert gearpy.spark.is_connection_error(error)
    assert gearpy.spark.is_connection_error(outer)


def test_errors_that_refer_to_each_other_are_followed_once() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first

    assert not gearpy.spark.is_connection_error(first)


def test_without_pyspark_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['pyspark'] = None; from gearpy.spark import session"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.stderr == (
        f"error: Spark needs pyspark, not installed here: {pip_install('spark')}\n"
    )
