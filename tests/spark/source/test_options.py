"""What options of the format "gearpy" mean."""

from typing import Any

import pytest

from gearpy.errors import ConfigError
from gearpy.spark.source.options import SourceReadOptions, WriteOptions, read_options, write_options


def test_without_options_everything_is_read() -> None:
    assert read_options({"path": "log"}) == SourceReadOptions(path="log")
    assert SourceReadOptions(path="log").fail_on_data_loss


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("startingPosition", '{"w-1": 3, "a-0": 1, "b-0": 0}', "starting", {"a-0": 1, "w-1": 3}),
        ("startingPosition", "earliest", "starting", None),
        ("startingPosition", "Latest", "from_end", True),
        ("endingPosition", '{"w-1": 3}', "ending", {"w-1": 3}),
        ("endingPosition", "latest", "ending", None),
        ("windowsSince", "1500", "windows_since_ms", 1500),
        ("windowsSince", "1970-01-01T00:00:02", "windows_since_ms", 2000),
        ("windowsSince", "1970-01-01 01:00:02+01:00", "windows_since_ms", 2000),
        ("maxRowsPerTrigger", "7", "max_rows", 7),
        ("maxBatchesPerTrigger", " 7 ", "max_batches", 7),
        ("failOnDataLoss", "False", "fail_on_data_loss", False),
        ("purge", "true", "purge", True),
        ("reader", "my-query.2", "reader", "my-query.2"),
        ("numPartitions", "3", "partitions", 3),
        ("storageOptions", '{"key": "k"}', "storage_options", {"key": "k"}),
    ],
)
def test_options_for_reading(name: str, text: str, field: str, value: Any) -> None:
    for spelled in (name, name.lower()):
        assert getattr(read_options({"path": "log", spelled: text}), field) == value


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("writer", "roll_up", "writer", "roll_up"),
        ("body", "arrow", "body", "arrow"),
        ("watermark", "window_end", "watermark", "window_end"),
        ("outOfOrder", "5s", "out_of_order_ms", 5000),
        ("storageOptions", "{}", "storage_options", {}),
    ],
)
def test_options_for_writing(name: str, text: str, field: str, value: Any) -> None:
    assert getattr(write_options({"path": "log", name: text}), field) == value
    assert write_options({"path": "log"}) == WriteOptions(path="log")


def test_a_transaction_has_a_name_and_a_number() -> None:
    options = write_options({"path": "log", "txnAppId": "roll-up", "txnVersion": "7"})

    assert options.transaction == ("roll-up", 7)
    for name, text in (("txnAppId", "a"), ("txnVersion", "1")):
        with pytest.raises(ConfigError, match="only mean something together"):
            write_options({"path": "log", name: text})


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        ("startingPosition", "soon", 'need "earliest", "latest", or JSON'),
        ("startingPosition", '{"w-1": "3"}', "is no position"),
        ("endingPosition", "earliest", "or JSON"),
        ("windowsSince", "yesterday", "need ms since 1970, or a time such as"),
        ("maxRowsPerTrigger", "0", "1 or more"),
        ("maxBatchesPerTrigger", "-1", "1 or more"),
        ("failOnDataLoss", "no", "need true or false"),
        ("reader", "../x", "need letters"),
        ("reader", "to_spark.x", "names that begin with to_spark. are those of to_spark"),
        ("numPartitions", "many", "1 or more"),
        ("storageOptions", "[1]", "need a JSON object"),
        ("storageOptions", "{", "need a JSON object"),
        ("maxRowPerTrigger", "1", "maxRowsPerTrigger is meant"),
    ],
)
def test_mistakes_for_reading_are_told(name: str, text: str, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        read_options({"path": "log", name: text})


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        ("writer", "two words", "need letters"),
        ("writer", "_x", "need letters"),
        ("body", "csv", "must be one of parquet, arrow"),
        ("watermark", "", "it is empty"),
        ("outOfOrder", "soon", "soon"),
        ("txnVersion", "1.5", "need a whole number"),
    ],
)
def test_mistakes_for_writing_are_told(name: str, text: str, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        write_options({"path": "log", name: text})


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read_options({"purge": "maybe", "reader": "/"})

    assert len(caught.value.mistakes) == 3
    assert 'no path: call load("PATH")' in str(caught.value)


def test_options_of_spark_are_passed_over() -> None:
    assert write_options({"path": "log", "checkpointLocation": "x"}) == WriteOptions(path="log")
