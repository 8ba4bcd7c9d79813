"""The page for users of other libraries names only what is there."""

import re

import pytest

import gearpy as gp
from gearpy.dsl.application import StreamApp
from gearpy.dsl.operators.names import own_words
from gearpy.dsl.streams.keyed import KeyedStream
from gearpy.dsl.streams.stream import Stream
from gearpy.dsl.streams.windowed import WindowedStream
from tests.docs.test_docs import ROOT

PAGE = (ROOT / "docs" / "coming-from.md").read_text()
KNOWN = {name for kind in (StreamApp, Stream, KeyedStream, WindowedStream) for name in dir(kind)}
OWN = [line.split("|")[-2] for line in PAGE.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("cell", OWN)
def test_what_stands_for_a_word_is_there(cell: str) -> None:
    """Steps and public names; commands and options have tests of their own."""
    steps = re.findall(r"`\.(\w+)\(", cell)
    names = re.findall(r"gp\.(\w+)", cell)
    assert [step for step in steps if step not in KNOWN] == []
    assert [name for name in names if name not in dir(gp)] == []


@pytest.mark.parametrize("word", ["withColumn", "where", "dropDuplicates", "to_topic", "sink_to"])
def test_words_of_the_page_are_answered(word: str) -> None:
    assert f"`{word}`" in PAGE
    assert own_words(word, KNOWN)
