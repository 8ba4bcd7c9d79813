"""One key for all that is stored as one key, where Python says otherwise.

Two keys are one if they are stored as the same bytes: see `gearpy.state.encoding.keys`. Python
mostly agrees: ``1``, ``1.0`` and ``True`` are equal, and are one key. It does not for NaN, which
equals nothing, and for times of a zone in the hour that the end of summer time repeats: it takes
both hours for equal, though they are two instants.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from operator import is_
from reprlib import repr as short_repr
from types import FunctionType
from typing import Any, Final
from uuid import UUID
from weakref import WeakValueDictionary

from gearpy.core.base.fields import NAN
from gearpy.core.base.stable_hash import is_numpy_bool, stable_hash
from gearpy.errors import ConfigError

#: Keys of these types are equal if they are stored as the same bytes.
PLAIN: Final = frozenset({str, int, bool, bytes, type(None), date, UUID})
#: Functions in Python by which what is equal is stored alike.
_SOUND: Final = frozenset(
    {Enum.__hash__, Fraction.__eq__, Fraction.__hash__, UUID.__eq__, UUID.__hash__}
)
#: Python may compare values of these types by the clock of one zone, not by the instant.
ORDERED_BY_ZONE: Final = frozenset({datetime, tuple})
#: Keys are stored as whole numbers, which would take as many digits.
_EXPONENT_MAX: Final = 10_000
_WITH_NAN: Final = WeakValueDictionary[tuple[Any, ...], Any]()
#: Those of classes with slots, to which there is no weak reference.
_WITH_NAN_KEPT: Final = dict[tuple[Any, ...], Any]()
_ADVICE: Final = "choose text, numbers, times or a tuple of them as the key"


def one_key(key: Any) -> Any:
    """Return the key that stands for all that are stored as this one.

    A dict finds neither NaN nor a time in a repeated hour; only keys that it does not find are
    looked up once more as this gives them. Raises `ConfigError` if such a value can be no key.
    """
    kind = type(key)
    return key if kind in PLAIN else (_RULES.get(kind) or _rule_of(key))(key)


def one_if_key(key: Any) -> Any:
    try:
        return one_key(key)
    except ConfigError:
        return key


def is_one_key(key: Any) -> bool:
    try:
        return one_key(key) is key
    except ConfigError:
        return False


def are_plain(keys: Iterable[Any]) -> bool:
    return PLAIN.issuperset(map(type, keys))


def one_keys(keys: list[Any]) -> list[Any]:
    return keys if are_plain(keys) else list(map(one_key, keys))


def instant(when: datetime) -> datetime:
    """Return a time that is compared by its instant, if its zone leaves open which one it is.

    Its zone is then the difference from UTC, so that its date and clock stay as they are.
    """
    offset = when.utcoffset()
    if offset is None or offset == when.replace(fold=1 - when.fold).utcoffset():
        return when
    return when.replace(tzinfo=timezone(offset), fold=0)


def check_key(key: Any) -> None:
    """Refuse a key of which equal ones are not stored alike, or others are."""
    if isinstance(key, datetime | timedelta):
        _check_time(key)
    stable_hash(key)  # It says what to do about what can be no key at all.
    kind = type(key)
    declared = getattr(kind, "__dataclass_params__", None)
    if declared is not None and declared.frozen:
        left_out = [each.name for each in fields(key) if not each.compare]
        if left_out:
            raise ConfigError(
                f"state cannot be kept for keys of class {kind.__qualname__}: equal ones may "
                f"differ in {', '.join(left_out)}; choose a tuple of the other fields as the key"
            )
        code = getattr(kind.__eq__, "__code__", None)
        is_sound = code is not None and code.co_filename == "<string>"  # Made by `dataclass`.
    else:
        methods = {kind.__eq__, kind.__hash__} - _SOUND
        is_sound = not any(isinstance(each, FunctionType) for each in methods)
    if not is_sound:
        raise ConfigError(
            f"state cannot be kept for keys of class {kind.__qualname__}: it has rules of its own "
            f"for which are equal, and is stored without them; {_ADVICE}"
        )


def check_decimal(key: Decimal) -> None:
    """Refuse a decimal that a comparison refuses, or that has very many digits if written out."""
    if key.is_snan():
        raise ConfigError(f"{key!r} can be no key: give Decimal('NaN') or None")
    if key.is_finite() and abs(key.adjusted()) > _EXPONENT_MAX:
        raise ConfigError(
            f"{short_repr(key)} can be no key, as its exponent is beyond {_EXPONENT_MAX}: "
            "round it, or choose its text as the key"
        )


def _check_time(key: Any) -> None:
    if key != key:  # noqa: PLR0124 -- a time that is none, of pandas
        raise ConfigError(f"{key!r} can be no key: give None")
    if getattr(key, "nanosecond", 0) or getattr(key, "nanoseconds", 0):
        raise ConfigError(f"{key!r} can be no key, as it has nanoseconds: round it to microseconds")


def _itself(key: Any) -> Any:
    return key


def _of_number(key: Any) -> Any:
    if isinstance(key, Decimal):
        check_decimal(key)
    return key if key == key else NAN  # noqa: PLR0124


def _of_other_number(key: Any) -> Any:
    return int(key) if isinstance(key, Integral) or is_numpy_bool(key) else _of_number(float(key))


def _of_tuple(key: tuple[Any, ...]) -> Any:
    parts = one_keys(list(key))
    return key if all(map(is_, parts, key)) else tuple.__new__(type(key), parts)


def _of_set(key: frozenset[Any]) -> Any:
    before = list(key)
    parts = one_keys(before)
    return key if all(map(is_, parts, before)) else frozenset(parts)


def _of_class(key: Any) -> Any:
    parts = {each.name: getattr(key, each.name) for each in fields(key) if each.init}
    ones = {name: one_key(part) for name, part in parts.items()}
    changed = {name: one for name, one in ones.items() if one is not parts[name]}
    key = replace(key, **changed) if changed else key
    if not any(one is NAN for one in ones.values()):
        return key
    # Since Python 3.13 classes compare each field by `==`, so only one object equals itself.
    known = _WITH_NAN if type(key).__weakrefoffset__ else _WITH_NAN_KEPT
    return known.setdefault((type(key), *ones.values()), key)


def _of_checked(rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of_time(key: Any) -> Any:
        _check_time(key)
        return rule(key)

    return of_time


_RULES: dict[type, Callable[[Any], Any]] = {
    float: _of_number,
    Decimal: _of_number,
    tuple: _of_tuple,
    frozenset: _of_set,
    datetime: instant,
    **dict.fromkeys((Fraction, time, timedelta), _itself),
}
_BY_BASE: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Enum, _itself),
    (int | float | Decimal | Fraction, _of_number),
    (Real, _of_other_number),
    (tuple, _of_tuple),
    (frozenset, _of_set),
    (datetime, _of_checked(instant)),
    (timedelta, _of_checked(_itself)),
)


def _rule_of(key: Any) -> Callable[[Any], Any]:
    check_key(key)
    kind = type(key)
    is_class = hasattr(kind, "__dataclass_params__")
    rules = (rule for base, rule in _BY_BASE if isinstance(key, base))
    rule = _of_other_number if is_numpy_bool(key) else next(rules, _itself)
    _RULES[kind] = _of_class if is_class else rule
    return _RULES[kind]
