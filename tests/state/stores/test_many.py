"""Many keys and values at once: the same as one by one."""

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import key_group
from gearpy.state.encoding.coders import MSGPACK, pack_atom
from gearpy.state.encoding.keys import TASK_GROUP, encode_key
from gearpy.state.stores.many import (
    CHUNK,
    WITH_KEY,
    Chunk,
    cells_of,
    groups_of_encoded,
    groups_of_keys,
    sections_of_chunks,
)
from tests.state.build import a_table

TABLE = a_table(kind="bulk")

#: Of one kind, as they mostly are, with what is special about it; and mixed.
KEYS = st.one_of(
    st.lists(st.text(), min_size=1),
    st.lists(st.text(st.sampled_from("a\n\ud800\udc00é"))),
    st.lists(st.integers()),
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1)),
    st.lists(st.sampled_from([-1, 0, (1 << 61) - 1, (1 << 63) - 1, 1 << 63, -(1 << 63)])),
    st.lists(st.binary()),
    st.lists(st.booleans()),
    st.lists(st.tuples(st.integers(-3, 3), st.integers())),
    st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-3, 3))),
    st.lists(st.tuples(st.text(max_size=3), st.integers(-3, 3), st.binary(max_size=2))),
    st.lists(st.tuples(st.one_of(st.text(), st.none(), st.integers()), st.tuples(st.text()))),
    st.lists(st.one_of(st.tuples(), st.tuples(st.integers(0, 3)))),
    st.lists(
        st.one_of(st.text(), st.integers(), st.none(), st.booleans(), st.tuples(st.integers()))
    ),
)
ATOMS = st.one_of(
    st.lists(st.integers()),
    st.lists(st.one_of(st.text(), st.none(), st.booleans(), st.floats(allow_nan=False))),
    st.lists(st.one_of(st.tuples(st.integers()), st.decimals(allow_nan=False), st.integers())),
)


def cells_in(chunks: list[Chunk], *, is_keyed: bool = True) -> dict[tuple[int, bytes], Any]:
    return {
        (section.group, cell): value
        for section in sections_of_chunks(iter(chunks), is_keyed=is_keyed)
        for cell, value in msgpack.unpackb(section.body).items()
    }


@given(KEYS)
def test_cells_are_those_of_each_key(keys: list[Any]) -> None:
    assert cells_of(TABLE, keys) == [TABLE + encode_key(key) for key in keys]


@given(KEYS)
def test_groups_are_those_of_each_key(keys: list[Any]) -> None:
    """Invariant: state is where the records of its key go."""
    assert groups_of_keys(keys) == list(map(key_group, keys))


@given(KEYS)
def test_groups_are_those_of_each_encoded_key(keys: list[Any]) -> None:
    encoded = [*map(encode_key, keys), b""]

    assert groups_of_encoded(encoded[:-1]) == list(map(key_group, keys))
    assert groups_of_encoded(encoded) == [*map(key_group, keys), TASK_GROUP]


@given(keys=KEYS, values=ATOMS, is_keyed=st.booleans())
def test_all_pairs_are_in_the_sections(
    keys: list[Any], values: list[Any], *, is_keyed: bool
) -> None:
    """With the key where it would not be given back as it is."""
    pairs = dict(zip(keys, values, strict=False))

    stored = cells_in([Chunk(TABLE, [*pairs], [*pairs.values()])], is_keyed=is_keyed)

    assert stored == {
        (key_group(key) if is_keyed else TASK_GROUP, TABLE + encode_key(key)): (
            pack_atom(value)
            if {str, int, bytes, type(None)}.issuperset(
                map(type, key if type(key) is tuple else [key])
            )
            else WITH_KEY + MSGPACK.encode(key) + pack_atom(value)
        )
        for key, value in pairs.items()
    }


def test_what_is_said_last_counts() -> None:
    chunks = [
        Chunk(TABLE, ["a", "b"], [1, 1]),
        Chunk(TABLE, ["a", "b"], None),
        Chunk(TABLE, ["b"], [b"\x07"]),
    ]

    assert cells_in(chunks) == {
        (key_group("a"), TABLE + b"sa"): None,
        (key_group("b"), TABLE + b"sb"): b"\x07",
    }


@pytest.mark.parametrize("count", [1, 7, 8, 15, 16, 32_767, 32_768, 65_536, 100_000])
def test_sections_of_any_size_are_maps(count: int) -> None:
    keys = list(range(count))
    chunks = [Chunk(TABLE, keys[at : at + CHUNK], None) for at in range(0, count, CHUNK)]

    assert len(cells_in(chunks, is_keyed=False)) == count


def test_a_large_group_has_several_sections() -> None:
    values = [bytes(1000)] * CHUNK
    chunks = [Chunk(TABLE, range(at, at + CHUNK), values) for at in range(0, 8 * CHUNK, CHUNK)]

    sections = list(sections_of_chunks(chunks, is_keyed=False))

    assert sum(len(msgpack.unpackb(section.body)) for section in sections) == 8 * CHUNK
    assert len(sections) > 2
    assert {section.group for section in sections} == {TASK_GROUP}


def test_large_values_do_not_wait_in_memory() -> None:
    values = [bytes(100_000)] * 100
    chunks = [Chunk(TABLE, range(at, at + 100), values) for at in range(0, 2000, 100)]

    sections = sections_of_chunks(chunks, is_keyed=True)

    assert sum(len(msgpack.unpackb(section.body)) for section in sections) == 2000
