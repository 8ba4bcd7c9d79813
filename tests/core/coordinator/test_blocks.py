"""Headers of stored files: whole, or refused with the place of the damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.coordinator.blocks import HEADER_BYTES, BlockFormat

KIND = BlockFormat(b"gearkind", 7)


class DamagedError(Exception):
    """What a reader raises."""


def damaged(offset: int, reason: str) -> DamagedError:
    return DamagedError(offset, reason)


@given(st.binary(max_size=50), st.text(max_size=5))
def test_a_block_is_read_as_it_was_written(body: bytes, name: str) -> None:
    assert KIND.body(KIND.block(body, name=name), damaged, name=name) == body


@given(st.binary(max_size=50), st.data())
def test_a_block_with_any_change_is_refused(body: bytes, data: st.DataObject) -> None:
    """A bit, a part that is missing, or more behind it; the place is in the file."""
    whole = KIND.block(body, name="a")
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytes([*whole[:at], whole[at] ^ 1 << at % 8, *whole[at + 1 :]])

    for other in (flipped, whole[:at], whole + b"x"):
        with pytest.raises(DamagedError) as found:
            KIND.body(other, damaged, name="a")
        assert 0 <= found.value.args[0] <= len(other)


def test_a_file_cannot_stand_for_another() -> None:
    with pytest.raises(DamagedError, match="checksum"):
        KIND.body(KIND.block(b"body", name="a"), damaged, name="b")
    with pytest.raises(DamagedError, match="does not begin as it must"):
        KIND.body(BlockFormat(b"gearelse", 7).block(b"body"), damaged)


def test_another_version_is_told() -> None:
    with pytest.raises(DamagedError, match="format version 8, this gearpy reads version 7"):
        KIND.body(KIND._replace(version=8).block(b"body"), damaged)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=20))
def test_a_header_has_a_number_and_covers_what_belongs_to_it(number: int, table: bytes) -> None:
    header = KIND.header(number, table)

    assert len(header) == HEADER_BYTES
    assert KIND.check(header + table, damaged, table) == number
    with pytest.raises(DamagedError, match="checksum"):
        KIND.check(header, damaged, table + b"x")
