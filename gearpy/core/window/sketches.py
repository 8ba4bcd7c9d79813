"""Sketches: quantiles, different values and frequent values of many, in bounded memory.

All are plain data, and exact while a group is small. Nothing in them is random. The first two
follow from the values alone, not from their order, nor from how parts were merged; frequent values
follow from the order, too, as soon as some were forgotten. See `docs/adr/0125-sketches.md`.

Quantiles are a sorted list of numbers first; then a histogram, whose buckets are the first bits of
the numbers as floats. Buckets are whole numbers, so that Python and Arrow find the same ones.
"""

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from heapq import nlargest
from struct import Struct
from typing import Any, Final, TypeAlias

from gearpy.core.base.stable_hash import stable_hash

#: So many values of a group are kept as they are.
EXACT_MAX: Final = 1000

# -- quantiles -----------------------------------------------------------------------------------

#: The numbers, sorted, as `float_bits`; or, of more than `EXACT_MAX`, how coarse the buckets are,
#: and how many numbers are in each.
Quantiles: TypeAlias = list[int] | tuple[int, dict[int, int]]

#: A float has 52 bits of fraction. With the first 7 of them, a bucket is 1/128 of its numbers wide.
FINEST_SHIFT: Final = 52 - 7
#: More buckets are joined in pairs, all alike. With no bit of the fraction left there are as many.
BUCKETS_MAX: Final = 4096
_SIGN: Final = (1 << 63) - 1
_FLOAT: Final = Struct("<d")
_WORD: Final = Struct("<q")
NAN_BITS: Final = 0x7FF8 << 48


def float_bits(number: float) -> int:
    """Return the bits of a float as a number in the same order as floats; NaN is behind all."""
    if number != number:  # noqa: PLR0124 - NaN
        return NAN_BITS
    bits: int = _WORD.unpack(_FLOAT.pack(number + 0.0))[0]  # -0.0 is 0.0.
    return bits if bits >= 0 else bits ^ _SIGN


def float_of(bits: int) -> float:
    number: float = _FLOAT.unpack(_WORD.pack(bits if bits >= 0 else bits ^ _SIGN))[0]
    return number


def add_number(kept: Quantiles, bits: int) -> Quantiles:
    if isinstance(kept, list):
        insort(kept, bits)
        return kept if len(kept) <= EXACT_MAX else _histogram(kept)
    coarse, counts = kept
    bucket = bits >> FINEST_SHIFT + coarse
    counts[bucket] = counts.get(bucket, 0) + 1
    return kept if len(counts) <= BUCKETS_MAX else fitted(coarse, counts)


def merge_quantiles(kept: Quantiles, other: Quantiles) -> Quantiles:
    if isinstance(kept, list) and isinstance(other, list):
        kept += other
        kept.sort()
        return kept if len(kept) <= EXACT_MAX else _histogram(kept)
    coarse, counts = _histogram(kept) if isinstance(kept, list) else kept
    others_coarse, others = _histogram(other) if isinstance(other, list) else other
    both = max(coarse, others_coarse)
    joined = _coarser(counts, both - coarse)
    for bucket, count in _coarser(others, both - others_coarse).items():
        joined[bucket] = joined.get(bucket, 0) + count
    return fitted(both, joined)


def fitted(coarse: int, counts: dict[int, int]) -> tuple[int, dict[int, int]]:
    """Join buckets in pairs until there are few enough.

    How often is a function of the values alone, since more of them have no fewer buckets.
    """
    while len(counts) > BUCKETS_MAX:
        coarse, counts = coarse + 1, _coarser(counts, 1)
    return coarse, counts


def quantile(kept: Quantiles, at: float) -> float | None:
    """Return the value below which a part of all values is, between two of them in proportion."""
    total = len(kept) if isinstance(kept, list) else sum(kept[1].values())
    if not total:
        return None
    place = at * (total - 1)
    low = math.floor(place)
    first, second = _both_at(kept, low, min(low + 1, total - 1))
    part = place - low
    return first if first == second or not part else first + (second - first) * part


def _both_at(kept: Quantiles, low: int, high: int) -> tuple[float, float]:
    if isinstance(kept, list):
        return float_of(kept[low]), float_of(kept[high])
    coarse, counts = kept
    passed, first = 0, math.nan
    for bucket in sorted(counts):
        before, passed = passed, passed + counts[bucket]
        if before <= low < passed:
            first = _middle(bucket, FINEST_SHIFT + coarse)
        if high < passed:
            return first, _middle(bucket, FINEST_SHIFT + coarse)
    raise AssertionError("places are below the number of values")


def _middle(bucket: int, shift: int) -> float:
    near, far = bucket << shift, (bucket + 1 << shift) - 1
    if bucket < 0:
        near, far = far, near
    least, most = float_of(near), float_of(far)
    if bucket in {0, -1}:  # All in it is nearly zero, and most of it is zero.
        return 0.0
    return least if math.isinf(least) else least + (most - least) / 2


def _histogram(numbers: list[int]) -> tuple[int, dict[int, int]]:
    return 0, dict(Counter(bits >> FINEST_SHIFT for bits in numbers))


def _coarser(counts: dict[int, int], steps: int) -> dict[int, int]:
    if not steps:
        return counts
    joined: dict[int, int] = {}
    for bucket, count in counts.items():
        joined[bucket >> steps] = joined.get(bucket >> steps, 0) + count
    return joined


# -- how many different values -------------------------------------------------------------------

#: The values; or, of more than `EXACT_MAX`, the registers of a HyperLogLog, a byte each.
Different: TypeAlias = set[Any] | bytes

#: The first bits of a hash choose a register: 4096 of them give a standard error of 1.6 %.
_INDEX_BITS: Final = 12
_REGISTERS: Final = 1 << _INDEX_BITS
_REST_BITS: Final = 64 - _INDEX_BITS


def add_different(kept: Different, value: Any) -> Different:
    """Take a value that is a key; see `one_key`."""
    if isinstance(kept, set):
        kept.add(value)
        return few_or_registers(kept)
    index, rank = _place(value)
    return kept if kept[index] >= rank else kept[:index] + bytes((rank,)) + kept[index + 1 :]


def few_or_registers(values: set[Any]) -> Different:
    return values if len(values) <= EXACT_MAX else _registers(bytes(_REGISTERS), values)


def merge_different(kept: Different, other: Different) -> Different:
    if isinstance(kept, bytes) and isinstance(other, bytes):
        return bytes(map(max, kept, other))
    if isinstance(kept, bytes):
        kept, other = other, kept
    assert isinstance(kept, set)
    if isinstance(other, bytes):
        return _registers(other, kept)
    kept |= other
    return few_or_registers(kept)


def count_different(kept: Different) -> int:
    """Return how many values there were, after Ertl, "New cardinality estimation", algorithm 6."""
    if not isinstance(kept, bytes):
        return len(kept)
    estimate = _REGISTERS * _tau(1 - kept.count(_REST_BITS + 1) / _REGISTERS)
    for rank in range(_REST_BITS, 0, -1):
        estimate = (estimate + kept.count(rank)) / 2
    estimate += _REGISTERS * _sigma(kept.count(0) / _REGISTERS)
    return round(_REGISTERS * _REGISTERS / (2 * math.log(2) * estimate))


def _registers(registers: bytes, values: Iterable[Any]) -> bytes:
    found = bytearray(registers)
    for index, rank in map(_place, values):
        found[index] = max(found[index], rank)
    return bytes(found)


def _place(value: Any) -> tuple[int, int]:
    """Return the register of a value, and the rank of the first bit that is set in the rest."""
    word = int.from_bytes(blake2b(_stable_bytes(value), digest_size=8).digest(), "big")
    return word >> _REST_BITS, _REST_BITS + 1 - (word & (1 << _REST_BITS) - 1).bit_length()


def _stable_bytes(value: Any) -> bytes:
    """Return bytes that are the same for equal values, in every process; text is most frequent."""
    if isinstance(value, str):
        return str.__str__(value).encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"\xffb" + value
    if isinstance(value, tuple):
        return b"\xfft" + b"".join(map(_digest, value))
    if isinstance(value, int):
        return b"\xffi%d" % value
    if isinstance(value, float | Decimal | Fraction) and value == value:  # noqa: PLR0124 - NaN
        if abs(value) != math.inf and value.as_integer_ratio()[1] == 1:
            return b"\xffi%d" % int(value)
        return b"\xfff%d" % hash(value)  # As the language defines it, alike for equal numbers.
    return b"\xffo%d" % stable_hash(value)


def _digest(value: Any) -> bytes:
    return blake2b(_stable_bytes(value), digest_size=16).digest()


def _sigma(x: float) -> float:
    if x == 1:
        return math.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before, z = z, z + x * y
        y += y
    return z


def _tau(x: float) -> float:
    if x in {0, 1}:
        return 0.0
    y, z, before = 1.0, 1 - x, -1.0
    while z != before:
        x = math.sqrt(x)
        y /= 2
        before, z = z, z - (1 - x) ** 2 * y
    return z / 3


# -- frequent values -----------------------------------------------------------------------------

#: How often there were some values, and how much was taken off each of them.
Frequent: TypeAlias = tuple[dict[Any, int], int]


def add_frequent(kept: Frequent, value: Any, capacity: int) -> Frequent:
    counts, _ = kept
    counts[value] = counts.get(value, 0) + 1
    return kept if len(counts) <= 2 * capacity else _pruned(kept, capacity)


def merge_frequent(kept: Frequent, other: Frequent, capacity: int) -> Frequent:
    counts, taken_off = kept
    for value, count in other[0].items():
        counts[value] = counts.get(value, 0) + count
    kept = counts, taken_off + other[1]
    return kept if len(counts) <= 2 * capacity else _pruned(kept, capacity)


def _pruned(kept: Frequent, capacity: int) -> Frequent:
    """Forget the rarer half, after Misra and Gries.

    As much is taken off each count that is left as off those that are gone. Each time at least
    ``capacity`` values lose it, so all in all it is no more than the number of values by this.
    """
    counts, taken_off = kept
    off = nlargest(capacity + 1, counts.values())[-1]
    return {each: count - off for each, count in counts.items() if count > off}, taken_off + off


def most_frequent(counts: dict[Any, int], most: int) -> list[tuple[Any, int]]:
    """Return the most frequent values with their counts; of equally frequent ones the least."""
    if not counts:
        return []
    least = nlargest(most, counts.values())[-1]
    found = _in_order([value for value, count in counts.items() if count >= least])
    return sorted(((each, counts[each]) for each in found), key=lambda pair: -pair[1])[:most]


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Return values in an order of their own, whatever they are; NaN last."""
    try:
        return sorted(values, key=lambda value: (value != value, value))  # noqa: PLR0124 - NaN
    except TypeError:  # They are of several kinds.
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))
