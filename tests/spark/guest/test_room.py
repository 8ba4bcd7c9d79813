"""Whether Spark has room, and what is told of its errors."""

import pytest

from gearpy.spark.guest.room import cause_of, cores_in, refusal, too_few

_JAVA = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
"""
_EXCLUDED = """An error occurred while calling o7.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure:{blank}
Aborting TaskSet 3.0 because task 0 (partition 0)
cannot run anywhere due to node and executor excludeOnFailure.
Most recent failure:
{cause}

ExcludeOnFailure behavior can be configured via spark.excludeOnFailure.*.
"""
_LOST = (
    "Lost task 0.1 in stage 3.0 (TID 9) (10.0.0.7 executor 1): Python worker exited unexpectedly"
)
_TOLD = (
    "Spark has excluded every executor where this could run, as it has failed there; spark."
    f"excludeOnFailure decides how often it may, and this was the last failure: ({_LOST})"
)
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
    assert cores_in(master, cores) == found


def test_too_many_workers_are_refused_with_both_numbers() -> None:
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
        (_EXCLUDED.format(cause=_LOST, blank=" "), _TOLD),
        (
            _EXCLUDED.format(cause="Lost task: No module named 'gearpy'", blank=""),
            "the Python of Spark's executors lacks a module: ",
        ),
        (_JAVA, "Job aborted due to stage failure: Task 0 in stage 3.0 failed"),
        ("", "Spark does not say why"),
    ],
    ids=[
        "no gearpy",
        "other python",
        "refused",
        "any error",
        "excluded",
        "excluded for that",
        "java",
        "nothing",
    ],
)
def test_an_error_of_spark_is_told_in_one_line(text: str, cause: str) -> None:
    told = cause_of(text)

    assert told.startswith(cause)
    assert "\n" not in told
