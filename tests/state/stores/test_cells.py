"""Names of tables, cells, values and sections."""

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError, ProtocolError
from gearpy.state.encoding.coders import MSGPACK
from gearpy.state.stores.cells import (
    Stamped,
    Tag,
    entry_cell,
    expires_ms_of,
    head_of,
    is_collection,
    is_list,
    namespace_part,
    order_of,
    pack_stored,
    runs_of,
    split_cell,
    successor,
    table_of,
    value_of,
)
from gearpy.state.stores.store import Section
from tests.state.build import a_table

NAMES = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8)
TAGS = st.builds(
    Tag,
    st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    st.sampled_from(["value", "reducing", "combining", "list", "set", "map", "timers"]),
    st.sampled_from(["msgpack", "int", "json", "of my own"]),
    st.booleans(),
)
NAMESPACES = st.binary(max_size=255)
KEYS = st.binary(max_size=300)


@given(TAGS, NAMESPACES)
def test_a_table_says_what_it_holds(tag: Tag, namespace: bytes) -> None:
    table = tag.encode() + namespace_part(namespace)

    assert Tag.decode(table) == tag
    assert table_of(table + b"rest") == table
    assert is_collection(table) == (tag.kind in {"list", "set", "map", "timers"})
    assert is_list(table) == (tag.kind == "list")


@given(TAGS, NAMESPACES, KEYS, KEYS)
def test_a_cell_is_split_into_what_it_was_made_of(
    tag: Tag, namespace: bytes, key: bytes, entry: bytes
) -> None:
    table = tag.encode() + namespace_part(namespace)

    if is_collection(table):
        assert split_cell(entry_cell(table, key, entry)) == (table, key, entry)
    else:
        assert split_cell(table + key) == (table, key, None)


@given(KEYS, KEYS)
def test_entries_of_a_key_and_no_others_begin_with_its_head(one: bytes, other: bytes) -> None:
    table = a_table(kind="map")

    assert entry_cell(table, one, other).startswith(head_of(table, one))
    if one != other:
        assert not entry_cell(table, other, one).startswith(head_of(table, one))


@given(st.lists(KEYS, unique=True), st.sampled_from(["value", "map"]))
def test_keys_are_sorted_as_their_cells(keys: list[bytes], kind: str) -> None:
    table = a_table(kind=kind)
    cell = head_of if kind == "map" else bytes.__add__

    assert sorted(keys, key=order_of(table)) == sorted(keys, key=lambda key: cell(table, key))


@given(st.binary(min_size=1).filter(lambda data: data.strip(b"\xff")), st.binary())
def test_the_successor_ends_what_begins_alike(prefix: bytes, rest: bytes) -> None:
    """It is above all that begin so, and nothing else is between."""
    after = successor(prefix)

    assert prefix + rest < after
    assert not after[:-1] + bytes((after[-1] - 1,)) > prefix


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        (("",), "cannot have the name"),
        (("a\0b",), "cannot have the name"),
        (("a", ""), "cannot have the name"),
        (("x" * 200,), "13 bytes too long"),
    ],
)
def test_names_that_cannot_be_are_refused(path: tuple[str, ...], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        Tag(path, "value", "msgpack").encode()


def test_a_namespace_has_a_limit() -> None:
    with pytest.raises(ConfigError, match="a namespace has 256 bytes, at most 255 are taken"):
        namespace_part(b"x" * 256)


@pytest.mark.parametrize(
    "cell", [b"", b"\x05", b"\x02vp", b"\x02vp\0", b"\x02vp\0\x05abc"], ids=repr
)
def test_what_is_too_short_for_a_cell_is_refused(cell: bytes) -> None:
    with pytest.raises(ProtocolError, match="too short"):
        table_of(cell)


@pytest.mark.parametrize("table", [b"\0\0\0", b"\x03?p\0\0\0", b"\x02\xff\xff\0\0", b"\x01\0\0\0"])
def test_tables_without_a_tag_are_refused(table: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed cell"):
        Tag.decode(table)


@pytest.mark.parametrize("rest", [b"", b"\x05key", b"\xff\0\0", b"\xff\0\0\0\x09key"], ids=repr)
def test_an_entry_without_a_whole_key_is_refused(rest: bytes) -> None:
    with pytest.raises(ProtocolError, match="its key has"):
        split_cell(a_table(kind="map") + rest)


@given(st.integers() | st.text() | st.booleans() | st.floats(allow_nan=False))
def test_an_atom_is_packed_as_its_coder_packs_it(value: object) -> None:
    assert MSGPACK.decode(pack_stored(value)) == value


@given(st.integers(-(2**63), 2**63 - 1), st.integers() | st.binary())
def test_a_value_that_expires_says_when(expires_ms: int, value: int | bytes) -> None:
    stamped = Stamped(expires_ms, value)
    packed = pack_stored(stamped)

    assert expires_ms_of(stamped) == expires_ms_of(packed) == expires_ms
    assert value_of(stamped) == value
    assert value_of(packed) == pack_stored(value)


def test_a_value_that_does_not_say_when_it_expires_is_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed value"):
        expires_ms_of(b"short")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        msgpack.packb([1]),
        msgpack.packb({"text": b""}),
        msgpack.packb({a_table() + b"k": 5}),
        msgpack.packb({b"\xff": b""}),
        msgpack.packb({a_table() + b"k": b""}) + b"\0",
    ],
)
def test_a_section_that_is_no_map_of_cells_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(runs_of(Section(0, body)))


@given(st.binary(max_size=30))
def test_any_bytes_are_a_section_or_refused(body: bytes) -> None:
    with suppress(ProtocolError):
        list(runs_of(Section(0, body)))
