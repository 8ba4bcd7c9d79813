"""Whether Spark has room, and what is told of its errors."""

import pytest

from gearpy.spark.guest.room import cause_of, cores_in, refusal, too_few

_JAVA = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
"""
_PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 4327, in invoke_udf
    run_process()
{error}
"""


@pytest.mark.parametrize(
    ("master", "cores", "found"),
    [("local-cluster[2, 3,1024]", None, 6), ("local[2]", 2, 2), ("yarn", None, None)],
)
def test_cores_of_masters_that_do_not_grow(master: str, cores: int | None, found: object) -> None:
    """Others may add executors while a cluster waits for them."""
    assert cores_in(master, cores) == found


def test_too_many_workers_are_refused_with_both_numbers() -> None:
    """Workers take cores."""
    assert refusal(workers=2, cores=2, has=4) == ""
    assert refusal(workers=3, cores=2, has=4).startswith(
        "a cluster of 3 x 2 cores was asked for, and Spark has 4: ask for fewer workers"
    )
    assert refusal(workers=2, cores=1, has=5, masters=3) == ""
    assert refusal(workers=2, cores=1, has=4, masters=3).startswith(
        "a cluster of 2 x 1 cores was asked for beside 3 masters, and Spark has 4: ask for fewer"
    )
    text = too_few(workers=3, cores=1, came=2, within_s=60.0)
    assert text.startswith("a cluster of 3 x 1 cores was asked for, and Spark has started 2 in 60")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            _PYTHON.format(error="ModuleNotFoundError: No module named 'gearpy'"),
            "the Python of Spark's executors lacks a module: ",
        ),
        (
            _PYTHON.format(
                error="PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
                "different version: 3.12 than that in driver: 3.11"
            ),
            "Spark's executors run another Python than the driver: ",
        ),
        (
            _PYTHON.format(error="gearpy.errors.ConfigError: gearpy is 2 in the driver and 1 at x"),
            "gearpy is 2 in the driver and 1 at x",
        ),
        (_PYTHON.format(error="ValueError: no such thing"), "no such thing"),
        (_JAVA, "Job aborted due to stage failure: Task 0 in stage 3.0 failed"),
        ("", "Spark does not say why"),
    ],
    ids=["no gearpy", "other python", "refused", "any error", "java", "nothing"],
)
def test_an_error_of_spark_is_told_in_one_line(text: str, cause: str) -> None:
    """Nobody has to read the stack of a JVM."""
    told = cause_of(text)

    assert told.startswith(cause)
    assert "\n" not in told
