"""One Spark session for all tests of this folder: a JVM takes seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import gearpy.spark


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session. Tests leave it as it was; those that break a JVM start their own."""
    gearpy.spark.stop()  # One that another test of this process has left.
    session = gearpy.spark.session(
        "tests",
        master="local[2]",
        conf={
            # Started and warm sooner, slower once warm: tests are over before that.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            # A query of a few rows is over before code for it is compiled.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            # Else tables of tests would be in a folder where pytest was started.
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    gearpy.spark.stop()
