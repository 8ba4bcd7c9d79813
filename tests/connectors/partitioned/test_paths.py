"""Folders of partitions are named as Spark and Hive name them."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.partitioned.columns import NULL_PARTITION, partition_folder

#: Without surrogates, which no file system takes; short enough for a name.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=15)


@given(st.dictionaries(TEXTS.filter(bool), st.none() | TEXTS, min_size=1, max_size=4))
def test_values_come_back(values: dict[str, str | None]) -> None:
    """An empty text comes back as none; nothing leaves its folder, whatever is in a value."""
    folder = partition_folder(values.items())

    segments = folder.split("/")
    pairs = [each.split("=", 1) for each in segments]
    assert {unquote(name): unquote(value) for name, value in pairs} == {
        name: value or NULL_PARTITION for name, value in values.items()
    }
    assert not {".", "..", ""} & set(segments)
    assert "\0" not in folder


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ("de", "k=de"),
        (None, f"k={NULL_PARTITION}"),
        ("", f"k={NULL_PARTITION}"),
        ("a/b", "k=a%2Fb"),
        ("12:30", "k=12%3A30"),
        ("a=b%c", "k=a%3Db%25c"),
        ("\"#'*?\\{[]^\x7f\n\x01", "k=%22%23%27%2A%3F%5C%7B%5B%5D%5E%7F%0A%01"),
        ("} ~+&é", "k=} ~+&é"),
        ("..", "k=.."),
    ],
)
def test_a_value_is_escaped_as_spark_does(value: str | None, segment: str) -> None:
    """See Spark's ``ExternalCatalogUtils.escapePathName``."""
    assert partition_folder([("k", value)]) == segment
    assert unquote(segment) == f"k={value or NULL_PARTITION}"


def test_a_value_that_is_too_long_is_refused() -> None:
    """A file system takes 255 bytes, however many characters these are."""
    assert partition_folder([("k", "ä" * 126)])
    with pytest.raises(ValueError, match="partition column 'k' makes a folder's name of more than"):
        partition_folder([("k", "ä" * 127)])
