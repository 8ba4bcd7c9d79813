"""Names of other libraries: what is proposed for them is there."""

import pytest

from gearpy.dsl.application import StreamApp
from gearpy.dsl.operators.names import own_words
from gearpy.dsl.streams.keyed import KeyedStream
from gearpy.dsl.streams.stream import Stream
from gearpy.dsl.streams.windowed import WindowedStream

KINDS = (StreamApp, Stream, KeyedStream, WindowedStream)
KNOWN = {name for kind in KINDS for name in dir(kind)}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("withColumn", "with_columns(...)"),
        ("dropDuplicates", "unique(...)"),
        ("keyBy", "key_by(...)"),
        ("print", "write(gp.console())"),
        ("readStream", "read(...)"),
        ("withWatermark", "time=... and out_of_order=... of the source"),
    ],
)
def test_a_name_of_another_library_is_answered_in_own_words(name: str, words: str) -> None:
    assert own_words(name, KNOWN) == words


def test_a_step_that_is_not_there_is_not_proposed() -> None:
    assert own_words("limit", {"map", "write"}) == ""


def test_a_name_that_nobody_knows_has_no_words() -> None:
    assert own_words("xyzzy", KNOWN) == ""
