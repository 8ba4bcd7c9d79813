"""Numbers that a column would change: found after a parser has read them.

Arrow's parsers make a fraction of each number in a column of fractions. A whole number beyond 2**53
is then another one, and a number that is too large is infinite. In columns of whole numbers that
nobody has asked for, what begins with 0 is no number, as 007 is not 7.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

_EXACT_MAX: Final = 1 << 53
_UINT64_END: Final = 1 << 64
#: Begins with a sign or with zeros that a number does not keep, or is hexadecimal.
_NO_NUMBER: Final = r"^\s*(\+|-?0[0-9xX])"
_WHOLE: Final = r"^\s*-?[0-9]{16,}\s*$"
_ANY_WHOLE: Final = r"^\s*-?[0-9]+\s*$"
_INFINITE: Final = r"^\s*[+-]?[iI][nN][fF]"


def has_large(column: pa.Array) -> bool:
    """Tell whether a fraction in a column, or inside of it, may be another one than was written."""
    for leaf in _fractions(column):
        ends = pc.min_max(leaf)
        least, most = ends["min"].as_py(), ends["max"].as_py()
        if least is not None and (least <= -_EXACT_MAX or most >= _EXACT_MAX):
            return True
    return False


def _fractions(column: pa.Array) -> Iterator[pa.Array]:
    kind = column.type
    if pa.types.is_floating(kind):
        yield column
    elif pa.types.is_struct(kind) or (pa.types.is_nested(kind) and hasattr(kind, "value_field")):
        parts = column.flatten()
        for part in parts if pa.types.is_struct(kind) else [parts]:
            yield from _fractions(part)


def is_inexact(number: int) -> bool:
    try:
        return int(float(number)) != number
    except OverflowError:
        return True


# -- texts ------------------------------------------------------------------------------------


def code_pattern(delimiter: str) -> str:
    """Return the pattern of a cell that may be a code, such as 007 or +49, in lines."""
    edge = rf"[^0-9A-Za-z.:/_-]|{re.escape(delimiter)}"
    return rf"(?:^|{edge})(?:\+|-?0[0-9xX])[0-9A-FXa-fx.,+-]*(?:$|{edge})"


def has_code(lines: bytes, pattern: str) -> bool:
    """Tell whether there may be a code in lines; see `code_pattern`."""
    found: bool = pc.match_substring_regex(pa.scalar(lines), pattern).as_py()
    return found


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def are_numbers(texts: pa.Array) -> bool:
    return not pc.any(pc.match_substring_regex(texts, _NO_NUMBER)).as_py()


def number_type(texts: pa.Array, numbers: pa.Array) -> pa.DataType:
    """Return the type that keeps texts which a parser has taken for numbers; that may be text."""
    if not are_numbers(texts):
        return pa.string()
    if not has_large(numbers):
        return numbers.type
    present = texts.drop_null().to_pylist()
    if all(text.strip().isdecimal() and int(text) < _UINT64_END for text in present):
        return pa.uint64()
    is_whole = pc.all(pc.match_substring_regex(texts, _ANY_WHOLE)).as_py()
    is_same = not is_whole and changed_text(texts, numbers) is None
    return numbers.type if is_same else pa.string()


def changed_text(texts: pa.Array, numbers: pa.Array) -> str | None:
    """Return the first text of which a fraction was made that is another number; None if none."""
    if not pa.types.is_floating(numbers.type):
        return None
    infinite = pc.and_(pc.is_inf(numbers), pc.invert(pc.match_substring_regex(texts, _INFINITE)))
    for text in texts.filter(infinite).to_pylist():
        return str(text)
    whole = texts.filter(pc.match_substring_regex(texts, _WHOLE)).to_pylist()
    return next((text for text in whole if is_inexact(int(text))), None)


# -- values of JSON ---------------------------------------------------------------------------


def refined(kind: pa.DataType, cells: Sequence[Any], name: str) -> pa.DataType:
    """Return the type of a column of JSON with whole numbers where all are, up to 2**64 - 1."""
    present = [cell for cell in cells if cell is not None]
    if pa.types.is_struct(kind):
        fields = [
            each.with_type(refined(each.type, [cell.get(each.name) for cell in present], name))
            for each in kind
        ]
        return pa.struct(fields)
    if pa.types.is_list(kind):
        item = kind.value_field
        inner = [each for cell in present for each in cell]
        return pa.list_(item.with_type(refined(item.type, inner, name)))
    if not pa.types.is_floating(kind):
        return kind
    whole = [each for each in present if type(each) is int]
    if len(whole) < len(present) or not whole:
        huge = next(filter(is_inexact, whole), None)
        if huge is None:
            return kind
    elif all(0 <= each < _UINT64_END for each in whole):
        return pa.uint64()
    else:
        huge = max(whole, key=abs)
    raise ValueError(refusal(name, huge))


def refusal(name: str, number: Any) -> str:
    return (
        f"column {name!r} has {str(number)[:100]}, which would be another number as a fraction: "
        "give schema=, with pyarrow.uint64() for whole numbers up to 2**64 - 1, or with "
        "pyarrow.decimal128(38, 0)"
    )


def check_values(values: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse whole numbers of JSON in columns of fractions that would be others there."""
    for name in names:
        for number in _whole_in([value.get(name) for value in values]):
            if is_inexact(number):
                raise ValueError(refusal(name, number))


def _whole_in(values: Any) -> Iterator[int]:
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list):
        for value in values:
            yield from _whole_in(value)
    elif type(values) is int:
        yield values


def large_columns(batch: pa.RecordBatch, names: Sequence[str]) -> list[str]:
    return [name for name in names if has_large(batch.column(name))]
