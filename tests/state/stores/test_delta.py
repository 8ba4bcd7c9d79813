"""What has changed, as sections."""

import threading
import time
from collections.abc import Iterable
from itertools import count
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import key_group
from gearpy.state.encoding.keys import encode_key
from gearpy.state.stores.delta import Reads, TablesDelta, sections_of
from gearpy.state.stores.heap import HeapStore
from gearpy.state.stores.store import Section
from tests.state.build import a_table, stored

TABLE = a_table()
MANY = 250_000
INTS = st.integers(0, 1 << 62)


def cells_in(sections: Iterable[Section]) -> dict[tuple[int, bytes], Any]:
    return {
        (section.group, cell): value
        for section in sections
        for cell, value in msgpack.unpackb(section.body).items()
    }


def test_a_large_group_has_several_sections() -> None:
    """Each takes a few ms to make; others must not wait for more."""
    values = {encode_key("ada"): {encode_key(number): bytes(1000) for number in range(5000)}}

    sections = list(sections_of({a_table(kind="map"): values}, Reads()))

    assert len(sections) == 5
    assert {section.group for section in sections} == {key_group("ada")}
    assert max(len(section.body) for section in sections) < 1_200_000


#: Stored values of one kind, as they mostly are, and mixed: of bytes, atoms, and what expires.
STORED = st.one_of(
    st.lists(st.binary()),
    st.lists(st.integers()),
    st.lists(st.one_of(st.binary(), st.text(), st.none(), st.tuples(INTS, st.integers()))),
)


@given(values=STORED, kind=st.sampled_from(["value", "map"]), is_text=st.booleans())
def test_many_cells_at_once_are_the_same_as_one_by_one(
    values: list[Any], kind: str, *, is_text: bool
) -> None:
    keys = [encode_key(str(number) if is_text else number) for number in range(len(values))]
    cells = dict(zip(keys, values, strict=True))
    if kind == "map":
        cells = {key: {b"one": value, b"other": None} for key, value in cells.items()}
    changes = {a_table(kind=kind): cells}

    at_once = cells_in(TablesDelta(changes).sections())

    assert at_once == cells_in(sections_of(changes, Reads()))
    assert len(at_once) == len(values) * (1 if kind == "value" else 2)


def test_a_value_larger_than_a_section_has_one() -> None:
    changes = {TABLE: {b"": bytes(3 << 20), encode_key(1): b""}}

    assert len(list(sections_of(changes, Reads()))) == 2


def test_a_task_that_waits_in_a_read_is_let_on() -> None:
    class CountingReads(Reads):
        def __init__(self) -> None:
            super().__init__()
            self.times = 0

        def let_go_on(self) -> None:
            super().let_go_on()
            self.times += 1

    reads = CountingReads()
    changes = {TABLE: {encode_key(number): b"" for number in range(10)}}
    list(sections_of(changes, reads))
    assert reads.times == 0

    reads.is_waiting = True
    list(sections_of(changes, reads))

    assert reads.times == 20


@pytest.mark.slow
def test_many_cells_are_handed_over_at_once_and_stored_beside_the_task() -> None:
    store = HeapStore()
    for number in range(MANY):
        store.put(TABLE, encode_key(number), number)
    began_s = time.thread_time()  # Others may have the processor meanwhile.
    delta = store.snapshot()
    handed_over_s = time.thread_time() - began_s
    assert isinstance(delta, TablesDelta)
    turns = count()
    has_ended = threading.Event()

    def go_on() -> None:
        while not has_ended.is_set():
            next(turns)

    other = threading.Thread(target=go_on)
    other.start()
    sections = stored(delta)
    has_ended.set()
    other.join()
    again = HeapStore()
    for section in sections:
        again.load(section)

    assert handed_over_s < 0.05
    assert next(turns) > MANY
    assert sum(1 for _ in again.keys(TABLE)) == MANY
    assert again.get(TABLE, encode_key(7)) == b"\x07"
