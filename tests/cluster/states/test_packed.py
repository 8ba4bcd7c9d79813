"""Cells taken from the bytes of sections at once: the same as one by one, or none."""

import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.states import packed
from gearpy.cluster.states.packed import Group, PackedRun, numbers_of, packed_run, portions
from gearpy.errors import GearpyError
from gearpy.state.encoding.coders import pack_atom
from gearpy.state.open import heap_state
from gearpy.state.stores.cells import Tag, namespace_part, runs_in
from gearpy.storage.snapshot_files import living_cells
from tests.state.build import put

TABLE = Tag(("kept", "count"), "bulk", "msgpack").encode() + namespace_part(b"")

_LONG = 64  # Bytes of keys of which more than the first eight are compared.

# Names of tables and bytes of msgpack may be anywhere in keys and values.
_PIECES = st.sampled_from([TABLE, TABLE[:9], b"\xc4\x20", b"\xc0", b"\0", b"s", b"word", b"\xff"])
_BYTES = st.lists(_PIECES, max_size=6).map(b"".join)
_KEYS = st.one_of(_BYTES, st.binary(max_size=12))
_VALUES = st.one_of(st.none(), _BYTES, st.sampled_from([b"x" * 255, b"x" * 300]))
_BODIES = st.dictionaries(_KEYS, _VALUES, max_size=20)
_GROUPS = st.lists(st.tuples(st.integers(0, 1023), st.lists(_BODIES, max_size=3)), max_size=3)


def body(cells: Mapping[bytes, bytes | None], table: bytes = TABLE) -> tuple[str, bytes]:
    named = {table + key: value for key, value in cells.items()}
    return "a file", msgspec.msgpack.encode(named)


def one_by_one(groups: Sequence[Group]) -> list[tuple[int, bytes, bytes]]:
    """Return key groups, cells and values as they are read without numpy."""
    return [
        (group, cell, value or b"")
        for group, bodies in groups
        for run in runs_in(living_cells(bodies))
        for cell, value in zip(run.cells, run.values, strict=True)
    ]


def at_once(run: PackedRun) -> list[tuple[int, bytes, bytes]]:
    numbers = [group for group, size in run.groups for _ in range(size)]
    cells = [run.table + key for key in run.keys.to_pylist()]
    return list(zip(numbers, cells, run.values.to_pylist(), strict=True))


@given(found=_GROUPS)
def test_cells_are_the_same_as_one_by_one(
    found: list[tuple[int, list[dict[bytes, bytes | None]]]],
) -> None:
    groups = [(group, list(map(body, bodies))) for group, bodies in found]
    run, wanted = packed_run(groups), one_by_one(groups)

    if run is not None:
        assert at_once(run) == wanted
    else:
        cells = [cell for _, bodies in found for each in bodies for cell in each.items()]
        is_misled = any(TABLE in key or TABLE in (value or b"") for key, value in cells)
        assert is_misled or not wanted or max(len(key) for key, _ in cells) > _LONG


@given(cells=_BODIES, data=st.data())
def test_damaged_sections_are_left_to_those_who_tell(
    cells: dict[bytes, bytes | None], data: st.DataObject
) -> None:
    """Bytes that were changed, cut off or put behind: it is the same cells, or none are taken."""
    location, whole = body(cells)
    at = data.draw(st.integers(0, len(whole)))
    changed = whole[:at] + data.draw(_BYTES) + whole[at + data.draw(st.integers(0, 2)) :]
    groups = [(3, [(location, changed)])]
    try:
        wanted = one_by_one(groups)
    except GearpyError:
        assert packed_run(groups) is None
    else:
        run = packed_run(groups)
        assert run is None or at_once(run) == wanted


def test_bytes_that_look_like_a_cell_are_none() -> None:
    """There are as many names of the table as cells: one is inside a value, as in another cell."""
    alike = b"\xc4%c%bsb\xc4\x01\x02" % (len(TABLE) + 2, TABLE)
    other = Tag(("kept", "other"), "bulk", "msgpack").encode() + namespace_part(b"")
    cells = {TABLE + b"sa": alike, other + b"sa": b"\1"}

    assert packed_run([(0, [("a file", msgspec.msgpack.encode(cells))])]) is None


@pytest.mark.parametrize("shared", [0, 5, 40])
def test_many_keys_are_taken_at_once(shared: int) -> None:
    """Whatever they have in common: else nobody would see that all are read slowly."""
    numbers = range(3000)
    cells = {b"s" + b"w" * shared + str(each).encode(): pack_atom(each) for each in numbers}

    run = packed_run([(7, [body(cells)])])

    assert run is not None
    assert run.groups == [(7, len(cells))]
    assert run.keys.to_pylist() == sorted(cells)


def test_what_a_step_stores_is_taken_at_once() -> None:
    state = heap_state()
    put(state.bulk("kept", operator="count"), {f"word{each}": each for each in range(3000)})
    delta = state.snapshot()
    assert delta is not None

    for each in delta.sections():
        groups = [(each.group, [("", each.body)])]
        run = packed_run(groups)
        assert run is not None
        assert at_once(run) == one_by_one(groups)


@pytest.mark.parametrize(
    "cells",
    [
        [body({b"s" + b"x" * 70: b"\1", b"sy": b"\1"})],
        [body({b"sa": b"\1"}), body({b"sa": b"\1"}, TABLE[:-2] + namespace_part(b"i"))],
        [body({b"\2sa": b"\1"}, Tag(("kept",), "map", "int").encode() + namespace_part(b""))],
        [body({})],
        [body({b"sa": None})],
    ],
    ids=["very long keys", "two tables", "a collection", "no cells", "none that is left"],
)
def test_the_rest_is_read_one_by_one(cells: list[tuple[str, bytes]]) -> None:
    assert packed_run([(0, cells)]) is None


def test_more_bytes_than_arrow_has_offsets_for_are_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = [(0, [body({b"key": b"value"})])]
    assert packed_run(groups) is not None
    monkeypatch.setattr(packed, "_BYTES_MAX", 100)
    assert packed_run([(0, [body({b"key": b"x" * 100})])]) is None


def test_key_groups_are_read_in_portions() -> None:
    small, large = ("", bytes(1000)), ("", bytes(1 << 19))
    groups: list[Group] = [(at, [large if at == 5 else small]) for at in range(10)]

    assert [[group for group, _ in each] for each in portions(groups)] == [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9],
    ]


_INTS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(-200, 300), st.integers(-40_000, 70_000)
)
_NUMBERS = st.one_of(
    st.lists(_INTS, min_size=1), st.lists(st.floats(), min_size=1), st.lists(st.integers(0, 9))
)


@given(parts=st.lists(_NUMBERS, min_size=1, max_size=3))
def test_numbers_become_the_column_that_arrow_makes_of_them(parts: list[list[Any]]) -> None:
    values = [value for each in parts for value in each]
    found = numbers_of([pa.array(map(pack_atom, each), pa.binary()) for each in parts])

    if len(set(map(type, values))) != 1:
        assert found is None
    else:
        wanted = pa.array(values)
        assert found is not None
        assert found.type == wanted.type
        assert [struct.pack(">d", each) for each in found.to_pylist()] == [
            struct.pack(">d", each) for each in wanted.to_pylist()
        ]


@pytest.mark.parametrize("value", [None, "a", True, 2**63, 2**70, [1], b"\1", (1,)])
def test_what_is_no_number_is_no_column_of_numbers(value: Any) -> None:
    assert numbers_of([pa.array([pack_atom(1), pack_atom(value)], pa.binary())]) is None


@pytest.mark.parametrize("damaged", [b"", b"\xcd\1", b"\1\1", b"\xcb\0", b"\xc1\x92\1\1"])
def test_malformed_numbers_are_left_to_those_who_tell(damaged: bytes) -> None:
    assert numbers_of([pa.array([pack_atom(1), damaged], pa.binary())]) is None


_FAULTS: Final = """
import resource
from gearpy.cluster.states.packed import keep_memory, np
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
keep_memory()
before = faults()
for _ in range(25):
    several = [np.ones(1 << 20, np.uint8) for _ in range(4)]
    del several
print(faults() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other allocators are others")
def test_portions_have_the_same_memory() -> None:
    """A page that the system gives takes longer than to fill it; there were 25,600."""
    done = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, check=True)
    assert int(done.stdout) < 2560
