"""The hash of `stable_hash` for whole columns.

The checksum is taken of one value after the other; all arithmetic behind it is done on columns.
Numbers of 64 bits are multiplied as two halves, as Arrow has none of 128.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from gearpy.core.base.stable_hash import GOLDEN, HALF, TUPLE, stable_hash
from gearpy.messages.table import cells_of

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_WORD: Final = 8
_HALF_MASK: Final = (1 << HALF) - 1
#: Python's hash of a number from here on is another number; -1 has that of -2.
_SAME_MAX: Final = (1 << 61) - 2


def hash_column(values: "pa.Array") -> "pa.UInt64Array":
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    words = _words(values)
    if words is None:
        return pa.array(map(stable_hash, cells_of(values)), pa.uint64())
    if pa.types.is_integer(words.type):
        hashes = _spread(_checksums(words))
    else:
        hashes = _spread(pa.array(map(crc32, words.to_pylist()), pa.uint64()))
    return (
        pc.if_else(values.is_null(), _word(stable_hash(None)), hashes)
        if values.null_count
        else hashes
    )


def fold_columns(hashes: Iterable["pa.UInt64Array"]) -> "pa.UInt64Array":
    """Return the hash of tuples, from those of their parts."""
    import pyarrow.compute as pc  # noqa: PLC0415 - there is a column, so Arrow is there

    state: pa.Array | pa.Scalar = _word(TUPLE)
    for each in hashes:
        state = pc.add(_spread(pc.bit_wise_xor(each, state)), _word(1))
    return _spread(state)


def _words(values: "pa.Array") -> "pa.Array | None":
    """Return bytes, or numbers, whose checksum counts, of a null any; None if there are none."""
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    kind, at = values.type, pa.types
    if at.is_string(kind) or at.is_large_string(kind) or at.is_binary(kind):
        return values.cast(pa.large_binary()).fill_null(b"")
    if not at.is_integer(kind):
        return None
    ends = pc.min_max(values).as_py()
    if ends["min"] is not None and not -_SAME_MAX <= ends["min"] <= ends["max"] <= _SAME_MAX:
        return None
    numbers = values.cast(pa.int64()).fill_null(0)
    return pc.if_else(pc.equal(numbers, -1), pa.scalar(-2, pa.int64()), numbers)


def _checksums(numbers: "pa.Int64Array") -> "pa.UInt64Array":
    """Return the checksums of the bytes of numbers, all at once.

    That of some bytes is a sum without carry: of what each byte adds where it is.
    """
    import numpy as np  # noqa: PLC0415 - for columns only
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there

    octets = numbers.to_numpy().astype("<i8").view(np.uint8).reshape(-1, _WORD)
    found = np.full(len(octets), crc32(bytes(_WORD)), np.uint32)
    for place, added in enumerate(_added()):
        found ^= added[octets[:, place]]
    return pa.array(found.astype(np.uint64))


@cache
def _added() -> list[Any]:
    import numpy as np  # noqa: PLC0415 - for columns only

    nothing = crc32(bytes(_WORD))
    words = [
        [bytes(place) + bytes((octet,)) + bytes(_WORD - 1 - place) for octet in range(1 << 8)]
        for place in range(_WORD)
    ]
    return [np.array([crc32(word) ^ nothing for word in each], np.uint32) for each in words]


def _spread(words: "pa.UInt64Array") -> "pa.UInt64Array":
    """Return the low 64 bits of ``spread ^ spread >> 32`` for ``spread = word * GOLDEN``."""
    import pyarrow.compute as pc  # noqa: PLC0415 - there is a column, so Arrow is there

    high, low = pc.shift_right(words, _word(HALF)), pc.bit_wise_and(words, _word(_HALF_MASK))
    carried = pc.shift_right(pc.multiply(low, _word(GOLDEN & _HALF_MASK)), _word(HALF))
    shifted = pc.add(pc.multiply(high, _word(GOLDEN)), pc.multiply(low, _word(GOLDEN >> HALF)))
    return pc.bit_wise_xor(pc.multiply(words, _word(GOLDEN)), pc.add(shifted, carried))


def _word(number: int) -> "pa.UInt64Scalar":
    import pyarrow as pa  # noqa: PLC0415 - there is a column, so Arrow is there

    return pa.scalar(number, pa.uint64())
