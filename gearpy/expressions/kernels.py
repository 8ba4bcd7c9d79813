"""The functions of expressions over columns: a rule for types, and Arrow's kernels.

A rule takes the types of the arguments, and gives the type of the result and a kernel. Where Arrow
would give another result than Python does over rows, or has no kernel, the function for rows is
called for each cell, so that the two are always equal.

Numbers are computed as int64, double or decimal: `plain_type` says which a column is taken as.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.types as at  # type: ignore[import-untyped]

from gearpy.expressions.arrow_types import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    TEXT,
    Datum,
    Kernel,
    Rule,
    Ruled,
    are_ascii,
    are_within,
    floored,
    mapped,
    plain,
    plain_type,
    refuse,
    where,
)
from gearpy.expressions.functions import FUNCTIONS, MEASURES, TAKES_NULL, WHITE_SPACE, whole
from gearpy.expressions.patterns import are_plain, arrow_pattern
from gearpy.expressions.time_kernels import TIME_RULES, are_in_years

#: A double has each whole number up to this.
_EXACT_MAX: Final = 1 << 53
_DIGITS: Final = 38
_NO_TRUTH: Final = pa.scalar(None, BOOL)


# -- numbers ---------------------------------------------------------------------------------------


def _is_number(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind))


def _as_ints(kinds: Sequence[pa.DataType]) -> list[pa.DataType]:
    return [INT if at.is_boolean(kind) else kind for kind in kinds]


def _number_type(name: str, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type in which numbers of several types are computed; decimals give None."""
    kinds = _as_ints(kinds)
    if not all(map(_is_number, kinds)):
        raise refuse(name, kinds, "numbers")
    if any(map(at.is_floating, kinds)):
        return FLOAT
    return None if any(map(at.is_decimal, kinds)) else INT


def _to(kind: pa.DataType, datum: Datum) -> Datum:
    if datum.type == kind:
        return datum
    is_scalar = isinstance(datum, pa.Scalar)
    if is_scalar and datum.as_py() is None:
        return pa.scalar(None, kind)
    if at.is_floating(kind):  # The nearest one, as in Python.
        if at.is_boolean(datum.type):
            datum = pc.cast(datum, INT)
        return pc.cast(datum, kind, safe=False)
    return pc.cast(datum, kind)


def _arithmetic(name: str, of_numbers: Callable[[Datum, Datum], Datum]) -> Rule:
    def rule(left: pa.DataType, right: pa.DataType) -> Ruled:
        kinds = [left, right]
        if not all(map(_is_number, _as_ints(kinds))):
            return _of_times(name, left, right)
        kind = _number_type(name, kinds)
        if kind is None:
            return _of_decimals(name, *kinds)
        if kind == INT and pa.uint64() in kinds:
            function = _PYTHON[name]
            return INT, mapped(lambda a, b: whole(name, a, b, function(a, b)), INT)
        return kind, lambda a, b: of_numbers(_to(kind, a), _to(kind, b))

    return rule


def _of_decimals(name: str, left: pa.DataType, right: pa.DataType) -> Ruled:
    sides = [kind if at.is_decimal(kind) else pa.decimal256(19, 0) for kind in (left, right)]
    scales = [kind.scale for kind in sides]
    wholes = [kind.precision - kind.scale for kind in sides]
    if name == "*":
        precision, scale = sum(kind.precision for kind in sides) + 1, sum(scales)
    else:
        precision, scale = max(wholes) + max(scales) + 1, max(scales)
    kind = (pa.decimal128 if precision <= _DIGITS else pa.decimal256)(min(precision, 76), scale)
    function = _PYTHON[name]
    return kind, mapped(lambda a, b: whole(name, a, b, function(a, b)), kind)


def _of_times(name: str, left: pa.DataType, right: pa.DataType) -> Ruled:
    kinds = [left, right]
    of_durations = pc.add_checked if name == "+" else pc.subtract_checked

    def function(a: Datum, b: Datum) -> Datum:
        found = of_durations(a, b)
        if at.is_timestamp(found.type) and not are_in_years(pc.cast(found, INT)):
            raise OverflowError("a time is before the year 1 or after 9999")
        return found

    match name:
        case "+" if at.is_duration(left) and (at.is_timestamp(right) or at.is_duration(right)):
            return right, function
        case "+" | "-" if at.is_duration(right) and (at.is_timestamp(left) or at.is_duration(left)):
            return left, function
        case "-" if at.is_timestamp(left) and left == right:
            return DURATION, function
        case "-" if at.is_date(left) and at.is_date(right):
            return DURATION, lambda a, b: pc.cast(function(a, b), DURATION)
        case "*" if left in {INT, DURATION} and right in {INT, DURATION} and left != right:
            return DURATION, pc.multiply_checked
        case "*" if FLOAT in kinds and DURATION in kinds:
            return DURATION, mapped(operator.mul, DURATION)
    raise refuse(name, kinds, "numbers")


def _division(left: pa.DataType, right: pa.DataType) -> Ruled:
    kind = _number_type("/", [left, right])
    if kind is None:
        return FLOAT, mapped(FUNCTIONS["/"], FLOAT)
    if kind == FLOAT:
        return FLOAT, lambda a, b: pc.divide(_to(FLOAT, a), _to(FLOAT, b))
    exactly = mapped(operator.truediv, FLOAT)

    def of_ints(left: Datum, right: Datum) -> Datum:
        sides = [_to(INT, each) if at.is_boolean(each.type) else each for each in (left, right)]
        if not all(map(_is_exact, sides)):
            return exactly(left, right)
        left, right = sides
        if pc.any(pc.equal(right, 0)).as_py():
            return exactly(left, right)  # Raises, unless what is divided is missing.
        return pc.divide(_to(FLOAT, left), _to(FLOAT, right))

    return FLOAT, of_ints


def _is_exact(datum: Datum) -> bool:
    """Tell whether a double can hold all of some whole numbers."""
    return are_within(datum, -_EXACT_MAX, _EXACT_MAX)


def _floor_division(left: pa.DataType, right: pa.DataType) -> Ruled:
    kind = _number_type("//", [left, right]) or FLOAT
    if kind != INT or pa.uint64() in {left, right}:
        return kind, mapped(FUNCTIONS["//"], kind)
    return INT, lambda a, b: floored(_to(INT, a), _to(INT, b))[0]


def _remainder(left: pa.DataType, right: pa.DataType) -> Ruled:
    kind = _number_type("%", [left, right]) or FLOAT
    if kind != INT or pa.uint64() in {left, right}:
        return kind, mapped(FUNCTIONS["%"], kind)

    return INT, lambda a, b: floored(_to(INT, a), _divisor(b))[1]


def _quotient(left: pa.DataType, right: pa.DataType) -> Ruled:
    kind = _number_type("quotient", [left, right]) or FLOAT
    if kind != INT or pa.uint64() in {left, right}:
        return kind, mapped(FUNCTIONS["quotient"], kind)
    return INT, lambda a, b: pc.divide_checked(_to(INT, a), _to(INT, b))


def _remainder_of_left(left: pa.DataType, right: pa.DataType) -> Ruled:
    kind = _number_type("remainder", [left, right]) or FLOAT
    if kind != INT or pa.uint64() in {left, right}:
        return kind, mapped(FUNCTIONS["remainder"], kind)

    def of_ints(left: Datum, right: Datum) -> Datum:
        number, by = _to(INT, left), _divisor(right)
        return pc.subtract(number, pc.multiply(pc.divide_checked(number, by), by))

    return INT, of_ints


def _divisor(divisor: Datum) -> Datum:
    """Return a divisor that leaves the same rest: by -1 nothing remains, as by 1.

    The quotient by -1 may have more than 64 bits.
    """
    by = _to(INT, divisor)
    return pc.if_else(pc.equal(by, -1), pa.scalar(1, INT), by)


def _power(left: pa.DataType, right: pa.DataType) -> Ruled:
    _number_type("**", [left, right])
    return FLOAT, mapped(FUNCTIONS["**"], FLOAT)


def _of_number(
    name: str, ints: Kernel | None, floats: Kernel | None, gives: pa.DataType | None = None
) -> Rule:
    """Return the rule of a function of one number; without a kernel it is that of rows."""

    def rule(kind: pa.DataType, **options: Any) -> Ruled:
        if not _is_number(kind) and not (at.is_duration(kind) and name in {"negate", "abs"}):
            raise refuse(name, [kind], "a number")
        given = ints if at.is_integer(kind) or at.is_duration(kind) else floats
        result = gives or kind
        if given is None or at.is_decimal(kind) or (at.is_uint64(kind) and gives is None):
            result = INT if kind == pa.uint64() and name == "negate" else result
            if at.is_decimal(kind) and name in {"round", "round_away", "floor", "ceil"}:
                result = pa.decimal256(min(76, kind.precision + 1), kind.scale)
            function = FUNCTIONS[name]
            return result, mapped(lambda value: function(value, **options), result)
        return result, lambda datum: given(_to(FLOAT, datum) if gives is FLOAT else datum)

    return rule


def _round(kind: pa.DataType, *, digits: int) -> Ruled:
    kernel = None if digits else lambda datum: pc.round(datum, round_mode="half_to_even")
    return _of_number("round", None, kernel)(kind, digits=digits)


def _round_away(kind: pa.DataType, *, digits: int) -> Ruled:
    by = pa.scalar(10.0**digits)

    def kernel(datum: Datum) -> Datum:
        numbers = _to(FLOAT, datum)
        found = pc.multiply(numbers, by)
        rounded = pc.divide(pc.round(found, round_mode="half_towards_infinity"), by)
        return pc.if_else(pc.is_finite(found), rounded, numbers)

    ints = _same if digits >= 0 else None
    return _of_number("round_away", ints, kernel)(kind, digits=digits)


def _same(datum: Any) -> Any:
    return datum


# -- comparison and truth --------------------------------------------------------------------------


def _comparison(name: str, kernel: Kernel) -> Rule:
    exactly = mapped(_PYTHON[name], BOOL)

    def rule(left: pa.DataType, right: pa.DataType) -> Ruled:
        numbers = [_is_number(kind) or at.is_boolean(kind) for kind in (left, right)]
        if left == right and not at.is_nested(left) and not at.is_decimal(left):
            return BOOL, kernel
        if left == right and name in {"==", "!="}:
            return BOOL, exactly
        if not all(numbers):
            raise TypeError(f"{left} {name} {right} compares nothing alike")
        if at.is_decimal(left) or at.is_decimal(right):
            return BOOL, exactly
        is_float = at.is_floating(left) or at.is_floating(right)
        by = FLOAT if is_float else INT

        def of_both(left: Datum, right: Datum) -> Datum:
            for each in (left, right):  # A kind of which some numbers have no place in the other.
                if (at.is_integer(each.type) if is_float else at.is_uint64(each.type)) and (
                    not _is_exact(each)
                ):
                    return exactly(left, right)
            return kernel(_to(by, left), _to(by, right))

        return BOOL, of_both

    return rule


def _not(kind: pa.DataType) -> Ruled:
    if not at.is_boolean(kind):
        raise TypeError(f"~ takes what is true or false, not {kind}: compare it with something")
    return BOOL, pc.invert


def _is_in(kind: pa.DataType, *, values: tuple[Any, ...]) -> Ruled:
    kinds = {plain_type(pa.scalar(value).type) for value in values}
    if wrong := [each for each in kinds if not _is_alike(kind, each)]:
        raise TypeError(f"is_in looks for {wrong[0]} in {kind}")
    if kinds <= {kind} and not at.is_decimal(kind):
        known = pa.array(list(dict.fromkeys(values)), kind)

        def look_up(datum: Datum) -> Datum:
            found = pc.is_in(datum, value_set=known)
            return pc.if_else(pc.is_valid(datum), found, pa.scalar(None, BOOL))

        return BOOL, look_up
    listed = frozenset(values)
    return BOOL, mapped(listed.__contains__, BOOL)


def _is_alike(left: pa.DataType, right: pa.DataType) -> bool:
    numbers = [_is_number(kind) or at.is_boolean(kind) for kind in (left, right)]
    return left == right or all(numbers)


def common_type(name: str, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type that holds values of several: of numbers the wider one."""
    present = list(dict.fromkeys(kind for kind in kinds if not at.is_null(kind)))
    if len(present) < 2:  # noqa: PLR2004 - all are of one type
        return present[0] if present else pa.null()
    if all(map(_is_number, present)):
        if any(map(at.is_floating, present)):
            return FLOAT
        if all(map(at.is_integer, present)):
            return INT
        decimals = [kind if at.is_decimal(kind) else pa.decimal256(20, 0) for kind in present]
        scale = max(kind.scale for kind in decimals)
        digits = max(kind.precision - kind.scale for kind in decimals) + scale
        return pa.decimal256(min(76, digits), scale)
    raise TypeError(f"{name} has values of {' and '.join(map(str, present))}: cast them to one")


def as_type(kind: pa.DataType, datum: Datum) -> Datum:
    return _to(kind, datum)


def _extreme(name: str, kernel: Kernel) -> Rule:
    def rule(*kinds: pa.DataType) -> Ruled:
        kind = common_type(name, kinds)
        if at.is_nested(kind):
            raise refuse(name, kinds, "numbers, texts or times")
        if not (at.is_integer(kind) or at.is_floating(kind) or at.is_date(kind)):
            return kind, mapped(FUNCTIONS[name], kind, takes_null=True)
        return kind, lambda *datums: kernel(*(_to(kind, each) for each in datums), skip_nulls=True)

    return rule


def _hash(kind: pa.DataType) -> Ruled:
    if at.is_nested(kind):
        raise refuse("hash", [kind], "a text, number or time")
    return INT, mapped(FUNCTIONS["hash"], INT)


def _cast(kind: pa.DataType, *, to: Any) -> Ruled:
    ruled: Ruled = to.rule(kind)
    return ruled


# -- texts -----------------------------------------------------------------------------------------


def _of_texts(
    name: str, gives: pa.DataType, make: Callable[..., Kernel | None] | None = None
) -> Rule:
    """Return the rule of a function of texts; without a kernel it is that of rows."""

    def rule(*kinds: pa.DataType, **options: Any) -> Ruled:
        if not all(map(at.is_string, kinds)):
            raise refuse(name, kinds, "texts")
        kernel = make(**options) if make is not None else None
        if kernel is None:
            function = FUNCTIONS[name]
            return gives, mapped(lambda *values: function(*values, **options), gives)
        return gives, kernel

    return rule


def _with_part(name: str, kernel: Callable[..., Datum]) -> Callable[[], Kernel]:
    by_cell = mapped(FUNCTIONS[name], BOOL)

    def apply(text: Datum, part: Datum) -> Datum:
        if isinstance(part, pa.Scalar) and part.is_valid:
            return kernel(text, pattern=part.as_py())
        return by_cell(text, part)

    return lambda: apply


def _length(kind: pa.DataType) -> Ruled:
    if at.is_string(kind):
        return INT, lambda datum: pc.cast(pc.utf8_length(datum), INT)
    if at.is_binary(kind):
        return INT, lambda datum: pc.cast(pc.binary_length(datum), INT)
    if at.is_map(kind):
        return INT, mapped(FUNCTIONS["length"], INT)
    if at.is_nested(kind) and hasattr(kind, "value_type"):
        return INT, lambda datum: pc.cast(pc.list_value_length(datum), INT)
    raise refuse("length", [kind], "a text or a list")


def _slice_kernel(*, start: int, length: int | None) -> Kernel:
    if start < 0 and length is not None:
        return mapped(lambda text: FUNCTIONS["slice"](text, start=start, length=length), TEXT)
    stop = None if length is None else start + length
    return lambda datum: pc.utf8_slice_codeunits(datum, start, stop)


def _replace_kernel(*, old: str, new: str) -> Kernel | None:
    if not old:
        return None
    return lambda datum: pc.replace_substring(datum, pattern=old, replacement=new)


def _of_ascii(name: str, kernel: Kernel) -> Callable[[], Kernel]:
    """Return a kernel for texts of ASCII alone; of others Python knows more."""
    return lambda: where(are_ascii, kernel, mapped(FUNCTIONS[name], TEXT))


def _trim(kernel: Callable[..., Datum]) -> Callable[..., Kernel]:
    return lambda *, chars=None: (
        lambda datum: kernel(datum, characters=WHITE_SPACE if chars is None else chars)
    )


def _like_kernel(*, pattern: str) -> Kernel | None:
    """Return the kernel of a pattern in which nothing is escaped."""
    if "\\" in pattern:
        return None
    inner = pattern.removeprefix("%").removesuffix("%")
    if not inner or "%" in inner or "_" in inner:
        return lambda datum: pc.match_like(datum, pattern=pattern)
    starts, ends = not pattern.startswith("%"), not pattern.endswith("%")
    match starts, ends:
        case True, True:
            return lambda datum: pc.equal(datum, inner)
        case True, False:
            return lambda datum: pc.starts_with(datum, pattern=inner)
        case False, True:
            return lambda datum: pc.ends_with(datum, pattern=inner)
    return lambda datum: pc.match_substring(datum, pattern=inner)


def _matches_kernel(*, pattern: str) -> Kernel | None:
    found = arrow_pattern(pattern)
    if found is None:
        return None
    by_cell = mapped(lambda text: FUNCTIONS["matches"](text, pattern=pattern), BOOL)

    def kernel(text: Datum) -> Datum:
        return pc.match_substring_regex(text, found.text)

    return where(are_plain, kernel, by_cell) if found.for_plain else kernel


def _extract_kernel(*, pattern: str, group: int) -> Kernel | None:
    found = arrow_pattern(pattern, group)
    if found is None:
        return None
    by_cell = mapped(lambda text: FUNCTIONS["extract"](text, pattern=pattern, group=group), TEXT)

    def kernel(text: Datum) -> Datum:
        return pc.struct_field(pc.extract_regex(text, found.text), "found")

    return where(are_plain, kernel, by_cell) if found.for_plain else kernel


def _is_list(kind: pa.DataType) -> bool:
    return bool(at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind))


def _list_contains(kind: pa.DataType, of: pa.DataType) -> Ruled:
    if not _is_list(kind):
        raise refuse("contains", [kind], "a list")
    if not _is_alike(plain_type(kind.value_type), of):
        raise TypeError(f"contains looks for {of} in {kind}")
    by_cell = mapped(FUNCTIONS["list_contains"], BOOL)
    if at.is_fixed_size_list(kind) or at.is_dictionary(kind.value_type):
        return BOOL, by_cell

    def apply(lists: Datum, value: Datum) -> Datum:
        if isinstance(lists, pa.Scalar) or not (isinstance(value, pa.Scalar) and value.is_valid):
            return by_cell(lists, value)
        first, last = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
        is_equal = pc.equal(lists.values.slice(first, last - first), value).fill_null(False)
        # So many equal items there are before each list, and behind the last.
        counts = np.append([0], is_equal.to_numpy(zero_copy_only=False).cumsum())
        counts = counts[lists.offsets.to_numpy() - first]
        return pc.if_else(lists.is_valid(), pa.array(counts[1:] > counts[:-1]), _NO_TRUTH)

    return BOOL, apply


def _list_join(kind: pa.DataType, *, by: str) -> Ruled:
    of = plain_type(kind.value_type) if _is_list(kind) else kind
    if not _is_list(kind) or not (at.is_string(of) or at.is_boolean(of) or of in (INT, FLOAT)):
        raise refuse("join", [kind], "a list of texts or numbers")
    by_cell = mapped(lambda cells: FUNCTIONS["list_join"](cells, by=by), TEXT)
    if not (at.is_list(kind) and at.is_string(kind.value_type)):
        return TEXT, by_cell
    return (
        TEXT,
        lambda lists: by_cell(lists) if isinstance(lists, pa.Scalar) else pc.binary_join(lists, by),
    )


def _of_list(name: str, gives: Callable[[pa.DataType], pa.DataType], takes: str = "a list") -> Rule:
    """Return the rule of a function of a list, which is that of rows."""

    def rule(kind: pa.DataType, *_: pa.DataType, **options: Any) -> Ruled:
        of = plain_type(kind.value_type) if _is_list(kind) else None
        if of is None or (takes != "a list" and not _is_number(of)):
            raise refuse(name, [kind], takes)
        function = FUNCTIONS[name]
        result = gives(of)
        return result, mapped(lambda *values: function(*values, **options), result)

    return rule


# -- lists and structs -----------------------------------------------------------------------------


def _field(kind: pa.DataType, *, key: int | str) -> Ruled:
    if at.is_struct(kind) and isinstance(key, str):
        if kind.get_field_index(key) < 0:
            raise UnknownField(key, [kind.field(place).name for place in range(kind.num_fields)])
        result = plain_type(kind.field(key).type)
        return result, lambda datum: plain(pc.struct_field(datum, key))
    if at.is_map(kind) and isinstance(key, str):
        result = plain_type(kind.item_type)
        return result, mapped(lambda cells: cells.get(key), result)
    if at.is_nested(kind) and hasattr(kind, "value_type") and isinstance(key, int):
        result = plain_type(kind.value_type)
        by_cell = mapped(lambda cells: FUNCTIONS["field"](cells, key=key), result)
        if not (at.is_list(kind) or at.is_large_list(kind)):
            return result, by_cell
        return (
            result,
            lambda datum: (
                by_cell(datum) if isinstance(datum, pa.Scalar) else plain(_items(datum, key))
            ),
        )
    takes = "a struct or a map" if isinstance(key, str) else "a list"
    raise refuse(f"[{key!r}]", [kind], takes)


def _items(lists: pa.Array, key: int) -> pa.Array:
    """Return the item of each list at a place, counted as Python does; None where there is none."""
    starts, ends = lists.offsets[:-1], lists.offsets[1:]
    place = pc.add_checked((starts if key >= 0 else ends).cast(INT), key)
    is_in = pc.less(place, ends) if key >= 0 else pc.greater_equal(place, starts)
    is_there = pc.and_(is_in, lists.is_valid())
    return lists.values.take(pc.if_else(is_there, place, pa.scalar(None, INT)))


class UnknownField(LookupError):
    """There is no field of this name."""

    def __init__(self, name: str, there: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.there = list(there)


_LISTS_OF_LISTS: Final = ("list_sort", "list_unique", "list_reverse", "list_slice")
_TEXTS_OF_TEXTS: Final = ("repeat", "pad", "replace_matches", "digest", "json")
_PYTHON: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

RULES: Final[Mapping[str, Rule]] = {
    "+": _arithmetic("+", pc.add_checked),
    "-": _arithmetic("-", pc.subtract_checked),
    "*": _arithmetic("*", pc.multiply_checked),
    "/": _division,
    "//": _floor_division,
    "%": _remainder,
    "quotient": _quotient,
    "remainder": _remainder_of_left,
    "**": _power,
    "==": _comparison("==", pc.equal),
    "!=": _comparison("!=", pc.not_equal),
    "<": _comparison("<", pc.less),
    "<=": _comparison("<=", pc.less_equal),
    ">": _comparison(">", pc.greater),
    ">=": _comparison(">=", pc.greater_equal),
    "~": _not,
    "is_null": lambda _: (BOOL, pc.is_null),
    "is_in": _is_in,
    "negate": _of_number("negate", pc.negate_checked, pc.negate),
    "abs": _of_number("abs", pc.abs_checked, pc.abs),
    "round": _round,
    "floor": _of_number("floor", _same, pc.floor),
    "ceil": _of_number("ceil", _same, pc.ceil),
    "sqrt": _of_number("sqrt", pc.sqrt, pc.sqrt, FLOAT),
    "exp": _of_number("exp", pc.exp, pc.exp, FLOAT),
    "log": _of_number("log", pc.ln, pc.ln, FLOAT),
    **{name: _of_number(name, getattr(pc, name), getattr(pc, name), FLOAT) for name in MEASURES},
    "log2": _of_number("log2", None, None, FLOAT),
    "log10": _of_number("log10", None, None, FLOAT),
    "round_away": _round_away,
    "greatest": _extreme("greatest", pc.max_element_wise),
    "least": _extreme("least", pc.min_element_wise),
    "cast": _cast,
    "hash": _hash,
    "field": _field,
    "lower": _of_texts("lower", TEXT, _of_ascii("lower", pc.ascii_lower)),
    "upper": _of_texts("upper", TEXT, _of_ascii("upper", pc.ascii_upper)),
    "strip": _of_texts("strip", TEXT, _trim(pc.utf8_trim)),
    "contains": _of_texts("contains", BOOL, _with_part("contains", pc.match_substring)),
    "starts_with": _of_texts("starts_with", BOOL, _with_part("starts_with", pc.starts_with)),
    "ends_with": _of_texts("ends_with", BOOL, _with_part("ends_with", pc.ends_with)),
    "replace": _of_texts("replace", TEXT, _replace_kernel),
    "length": _length,
    "slice": _of_texts("slice", TEXT, _slice_kernel),
    "concat": _of_texts(
        "concat", TEXT, lambda: lambda *each: pc.binary_join_element_wise(*each, "")
    ),
    "like": _of_texts("like", BOOL, _like_kernel),
    "strip_start": _of_texts("strip_start", TEXT, _trim(pc.utf8_ltrim)),
    "strip_end": _of_texts("strip_end", TEXT, _trim(pc.utf8_rtrim)),
    "matches": _of_texts("matches", BOOL, _matches_kernel),
    "extract": _of_texts("extract", TEXT, _extract_kernel),
    "split": _of_texts(
        "split", pa.list_(TEXT), lambda *, by: partial(pc.split_pattern, pattern=by)
    ),
    "list_contains": _list_contains,
    "list_join": _list_join,
    "list_sum": _of_list("list_sum", _same, "a list of numbers"),
    "list_min": _of_list("list_min", _same),
    "list_max": _of_list("list_max", _same),
    "list_mean": _of_list("list_mean", lambda _: FLOAT, "a list of numbers"),
    "list_find": _of_list("list_find", lambda _: INT),
    **{name: _of_list(name, pa.list_) for name in _LISTS_OF_LISTS},
    "reverse": _of_texts("reverse", TEXT, lambda: pc.utf8_reverse),
    "find": _of_texts("find", INT),
    **{name: _of_texts(name, TEXT) for name in _TEXTS_OF_TEXTS},
    **TIME_RULES,
}
assert RULES.keys() == FUNCTIONS.keys(), RULES.keys() ^ FUNCTIONS.keys()
assert RULES.keys() >= TAKES_NULL
