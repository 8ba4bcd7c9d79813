"""The functions of expressions for one row: plain Python, beside the kernels of the same names.

None of them is given None, but those of `TAKES_NULL`; the rest is None where an argument is.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final, NoReturn

import msgspec

from gearpy.core.base.stable_hash import stable_hash
from gearpy.expressions.time_functions import TIME_FUNCTIONS, in_utc

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
_EXACT: Final = Context(prec=80)
_EXACTLY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
}
_NUMBERS: Final = (int, float, Decimal)
#: Functions of a number that give a float, as `math` and Arrow have them.
MEASURES: Final = ("sin", "cos", "tan", "asin", "acos", "atan")
#: The characters that `str.strip` takes away.
WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


# -- arithmetic ------------------------------------------------------------------------------------


def mixed(operator: str, left: Any, right: Any) -> Any:
    """Compute what Python refuses: division by 0, also of 0, and decimals with floats."""
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        if isinstance(left, int) and isinstance(right, int):
            raise ZeroDivisionError(f"{left} {operator} {right}: division by zero")
        left, right = float(left), float(right)
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return _divided(left, right)
    raise _no_operands(operator, left, right)


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def whole(operator: str, left: Any, right: Any, result: Any) -> Any:
    """Return a result of arithmetic that is neither a float nor a number of 64 bits."""
    if type(result) is Decimal:
        if operator == "/":
            return float(left) / float(right)
        return _EXACTLY[operator](left, right)
    if isinstance(result, datetime | timedelta) and operator != "/":
        # Not by the clocks of a zone, as Python does: they skip hours, and have some twice.
        first, second = in_utc(left), in_utc(right)
        return first + second if operator == "+" else first - second if operator == "-" else result
    if not isinstance(result, float | int) or isinstance(left, str | bytes | list | tuple):
        raise _no_operands(operator, left, right)
    return result if isinstance(result, float) else _int64(f"{left} {operator} {right}", result)


def floating(value: Any) -> Any:
    """Return a number as a float, as one of several values that may be floats."""
    return float(value) if type(value) in {int, Decimal} else value


def _int64(what: str, number: int) -> int:
    if INT64_MIN <= number <= INT64_MAX:
        return number
    raise OverflowError(f"{what} is {number}, more than the 64 bits of a whole number")


def _no_operands(operator: str, left: Any, right: Any) -> TypeError:
    return TypeError(
        f"{operator} does not take {type(left).__name__} and {type(right).__name__}: "
        f"{left!r:.100} {operator} {right!r:.100}"
    )


def _quotient(left: Any, right: Any) -> float:
    left, right = _floats("/", left, right)
    return _divided(left, right)


def _floor_divided(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return _int64(f"{left} // {right}", left // right)
    left, right = _floats("//", left, right)
    return left // right if right else _divided(left, right)


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return _int64(f"{left} % {right}", left % right)
    left, right = _floats("%", left, right)
    return math.nan if not right or math.isinf(left) else left % right


def _quotient_to_zero(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        size = abs(left) // abs(right)
    else:
        size = _floor_divided(*map(abs, _floats("quotient", left, right)))
    return _signed(f"{left} // {right}", size, is_below=(left < 0) != (right < 0))


def _remainder_of_left(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        size = abs(left) % abs(right)
    else:
        size = _remainder(*map(abs, _floats("remainder", left, right)))
    return _signed(f"{left} % {right}", size, is_below=left < 0)


def _signed(what: str, size: Any, *, is_below: bool) -> Any:
    number = -size if is_below else size
    return _int64(what, number) if type(number) is int else number


def _power(left: Any, right: Any) -> float:
    base, exponent = _floats("**", left, right)
    try:
        return math.pow(base, exponent)
    except OverflowError:
        is_odd = exponent % 2 == 1
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:  # A root of what is below 0, or 0 to what is below 0.
        if base:
            return math.nan
        return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf


def _floats(operator: str, left: Any, right: Any) -> tuple[float, float]:
    if not (isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS)):
        raise _no_operands(operator, left, right)
    return float(left), float(right)


def _negate(value: Any) -> Any:
    return _int64(f"-({value})", -value) if type(value) is int else -_number("-", value)


def _abs(value: Any) -> Any:
    return _int64(f"abs({value})", abs(value)) if type(value) is int else abs(_number("abs", value))


def _measure(function: Callable[[float], float]) -> Callable[[Any], float]:
    """Return a function of a number that is NaN where it has no value."""

    def measured(value: Any) -> float:
        try:
            return function(float(_number(function.__name__, value)))
        except ValueError:
            return math.nan

    return measured


def _round_away(value: Any, *, digits: int) -> Any:
    """Round as SQL does: a half goes away from 0; of a float that is the nearest to a fraction."""
    if type(value) is Decimal:
        return value.quantize(Decimal(1).scaleb(-digits), "ROUND_HALF_UP")
    if type(value) is int:
        by = 10 ** max(0, -digits)
        return _int64(
            f"round({value}, {digits})",
            (abs(value) + by // 2) // by * by * (1 if value > 0 else -1),
        )
    number = float(_number("round", value)) * 10.0**digits
    if not math.isfinite(number):
        return value
    whole_part = math.floor(abs(number))
    return math.copysign(whole_part + (2 * (abs(number) - whole_part) >= 1), number) / 10.0**digits


def _round(value: Any, *, digits: int) -> Any:
    if type(value) is int:
        return _int64(f"round({value}, {digits})", round(value, digits))
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return round(_number("round", value), digits)


def _rounded(name: str, value: Any, function: Callable[[Any], int]) -> Any:
    if type(value) is int or (isinstance(value, float) and not math.isfinite(value)):
        return value
    if isinstance(value, float):
        return math.copysign(float(function(value)), value)
    return Decimal(function(_number(name, value)))


def _sqrt(value: Any) -> float:
    number = float(_number("sqrt", value))
    return math.nan if number < 0 else math.sqrt(number)


def _exp(value: Any) -> float:
    number = float(_number("exp", value))
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _logarithm(value: Any, function: Callable[[float], float]) -> float:
    number = float(_number("log", value))
    if number > 0 or math.isnan(number):
        return function(number)
    return math.nan if number else -math.inf


def _number(name: str, value: Any) -> Any:
    if isinstance(value, int | float | Decimal | timedelta) and not isinstance(value, bool):
        return value
    raise TypeError(f"{name} takes a number, not {value!r:.100}")


# -- truth -----------------------------------------------------------------------------------------


def not_bool(value: Any) -> None:
    """Refuse what is neither true nor false; None is missing."""
    if value is not None:
        raise TypeError(f"{value!r:.100} is neither true nor false: compare it with something")


def both(left: Any, right: Any) -> bool | None:
    _check_truths(left, right)
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Any, right: Any) -> bool | None:
    _check_truths(left, right)
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _check_truths(*values: Any) -> None:
    for value in values:
        if value is not True and value is not False:
            not_bool(value)


def _extreme(values: tuple[Any, ...], choose: Callable[[Any], Any]) -> Any:
    present = [value for value in values if value is not None]
    numbers = [value for value in present if value == value]  # noqa: PLR0124 - without NaN
    return choose(numbers) if numbers else present[0] if present else None


# -- texts -----------------------------------------------------------------------------------------


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{name} takes a text, not {value!r:.100}")


def _extract(value: Any, *, pattern: str, group: int) -> str | None:
    found = re.search(pattern, _text("extract", value))
    return None if found is None else found[group]


def _replace_matches(value: Any, *, pattern: str, by: str, count: int) -> str:
    return re.sub(pattern, by, _text("replace_matches", value), count=count)


def _pad(value: Any, *, width: int, fill: str, at_start: bool) -> str:
    text = _text("pad", value)
    more = max(0, width - len(text))
    filling = (fill * more)[:more]
    return filling + text if at_start else text + filling


def _digest(value: Any, *, algorithm: str) -> str:
    return hashlib.new(
        algorithm, _text("digest", value).encode(), usedforsecurity=False
    ).hexdigest()


def _json(value: Any, *, path: tuple[int | str, ...], as_json: bool) -> str | None:
    try:
        found = msgspec.json.decode(_text("json", value))
    except msgspec.DecodeError as error:
        raise ValueError(f"{value!r:.100} is no JSON: {error}") from None
    for key in path:
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and isinstance(key, int):
            found = found[key] if -len(found) <= key < len(found) else None
        else:
            return None
    if isinstance(found, str) and not as_json:
        return found
    return None if found is None else msgspec.json.encode(found).decode()


def _list_contains(values: Any, value: Any) -> bool:
    if not isinstance(values, list | tuple):
        raise TypeError(f"contains takes a list, not {values!r:.100}")
    return value in values


def _list_join(values: Any, *, by: str) -> str | None:
    if not isinstance(values, list | tuple):
        raise TypeError(f"join takes a list, not {values!r:.100}")
    return None if None in values else by.join(map(_shown, values))


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise TypeError(f"join takes a list of texts or numbers, not {value!r:.100}")


def _of_items(function: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    """Return a function of the items of a list that are there; None if none is."""

    def found(values: Any) -> Any:
        present = [each for each in _items(values) if each is not None]
        return function(present) if present else None

    return found


def _items(values: Any) -> list[Any]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"a list is needed, not {values!r:.100}")
    return [*values]


def _checked(total: Any) -> Any:
    return _int64("sum of a list", total) if type(total) is int else total


def _mean(values: list[Any]) -> float:
    return math.fsum(values) / len(values)


def _list_sort(values: Any, *, descending: bool) -> list[Any]:
    present = [each for each in _items(values) if each is not None]
    return sorted(present, reverse=descending) + [None] * (len(values) - len(present))


def _list_unique(values: Any) -> list[Any]:
    return [*dict.fromkeys(each for each in _items(values) if each is not None)]


def _list_slice(values: Any, *, start: int, stop: int | None) -> list[Any]:
    return _items(values)[start:stop]


def _list_find(values: Any, value: Any) -> int:
    return _items(values).index(value) if value in _items(values) else -1


def _length(value: Any) -> int:
    if isinstance(value, str | bytes | list | tuple | Mapping):
        return len(value)
    raise TypeError(f"length takes a text or a list, not {value!r:.100}")


def _slice(value: Any, *, start: int, length: int | None) -> str:
    text = _text("slice", value)
    begin = max(0, len(text) + start) if start < 0 else start
    return text[begin:] if length is None else text[begin : begin + length]


@lru_cache(maxsize=256)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern of SQL's LIKE: % is any text, _ any character."""
    parts: list[str] = []
    pending = iter(pattern)
    for each in pending:
        literal = next(pending, "\\") if each == "\\" else each
        wild = {"%": ".*", "_": "."}.get(each)
        parts.append(wild or re.escape(literal))
    return re.compile("".join(parts), re.DOTALL)


# -- lists and structs -----------------------------------------------------------------------------


def _field(value: Any, *, key: int | str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(key, str):
        return getattr(value, key)
    if isinstance(value, list | tuple):
        return value[key] if -len(value) <= key < len(value) else None
    raise TypeError(f"[{key}] takes a list, not {value!r:.100}")


def _hash(value: Any) -> int:
    number = stable_hash(value)
    return number if number <= INT64_MAX else number - (1 << 64)


def _refused(*_: Any) -> NoReturn:  # The writer has lines of its own for these.
    raise AssertionError("is written inline")


#: By name: what is called with the values of the arguments, and with the options by name.
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **dict.fromkeys(("+", "-", "*"), _refused),
    "/": _quotient,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _refused),
    **dict.fromkeys(("~", "is_null", "is_in"), _refused),
    "//": _floor_divided,
    "%": _remainder,
    "quotient": _quotient_to_zero,
    "remainder": _remainder_of_left,
    "**": _power,
    **{name: _measure(getattr(math, name)) for name in MEASURES},
    "log2": lambda value: _logarithm(value, math.log2),
    "log10": lambda value: _logarithm(value, math.log10),
    "round_away": _round_away,
    "negate": _negate,
    "abs": _abs,
    "round": _round,
    "floor": lambda value: _rounded("floor", value, math.floor),
    "ceil": lambda value: _rounded("ceil", value, math.ceil),
    "sqrt": _sqrt,
    "exp": _exp,
    "log": lambda value: _logarithm(value, math.log),
    "greatest": lambda *values: _extreme(values, max),
    "least": lambda *values: _extreme(values, min),
    "cast": lambda value, *, to: to.value(value),
    "hash": _hash,
    "field": _field,
    "lower": lambda value: _text("lower", value).lower(),
    "upper": lambda value: _text("upper", value).upper(),
    "strip": lambda value, *, chars=None: _text("strip", value).strip(chars),
    "contains": lambda value, part: _text("contains", part) in _text("contains", value),
    "starts_with": lambda value, part: _text("starts_with", value).startswith(
        _text("starts_with", part)
    ),
    "ends_with": lambda value, part: _text("ends_with", value).endswith(_text("ends_with", part)),
    "replace": lambda value, *, old, new: _text("replace", value).replace(old, new),
    "length": _length,
    "slice": _slice,
    "concat": lambda *values: "".join([_text("concat", value) for value in values]),
    "like": lambda value, *, pattern: (
        like_pattern(pattern).fullmatch(_text("like", value)) is not None
    ),
    "strip_start": lambda value, *, chars=None: _text("strip_start", value).lstrip(chars),
    "strip_end": lambda value, *, chars=None: _text("strip_end", value).rstrip(chars),
    "matches": lambda value, *, pattern: re.search(pattern, _text("matches", value)) is not None,
    "extract": _extract,
    "split": lambda value, *, by: _text("split", value).split(by),
    "list_contains": _list_contains,
    "list_join": _list_join,
    "list_sum": _of_items(lambda values: _checked(sum(values))),
    "list_min": _of_items(min),
    "list_max": _of_items(max),
    "list_mean": _of_items(_mean),
    "list_sort": _list_sort,
    "list_unique": _list_unique,
    "list_reverse": lambda values: _items(values)[::-1],
    "list_slice": _list_slice,
    "list_find": _list_find,
    "reverse": lambda value: _text("reverse", value)[::-1],
    "repeat": lambda value, *, times: _text("repeat", value) * times,
    "find": lambda value, part: _text("find", value).find(_text("find", part)),
    "pad": _pad,
    "replace_matches": _replace_matches,
    "digest": _digest,
    "json": _json,
    **TIME_FUNCTIONS,
}
#: Those that are given None, too.
TAKES_NULL: Final = frozenset({"is_null", "greatest", "least"})
