"""Limits of tasks, as a configuration sets them."""

from gearpy.cluster.host.task_limits import output_limits, task_limits
from gearpy.config.load import from_overrides


def test_tables_have_a_limit_of_their_own() -> None:
    config = from_overrides({"streaming.columnar-batch-records": "100"})

    assert output_limits(config).columnar_batch_records == 100
    assert task_limits(config).columnar_batch_records == 100
    assert output_limits(config).batch_records == 1024
