"""A quick test of whether values fit an Avro schema, made once for each schema."""

from collections.abc import Callable, Mapping
from datetime import datetime, time
from functools import partial
from math import isfinite, isnan
from struct import pack, unpack
from typing import Any, Final, TypeAlias

#: Tells whether a value surely fits; of False, nothing is known. It may raise on one that does not.
Fit: TypeAlias = Callable[[Any], bool]

_INT: Final = 2**31
_LONG: Final = 2**63
_EXACT: Final = 2**53
_SHORT_EXACT: Final = 2**24
_SHORT_MAX: Final = 3.4028234663852886e38
_US_PER_MS: Final = 1000
_PAIR: Final = 2
_RECORDS: Final = frozenset({"record", "error"})
#: By this key a value may say of which record of a union it is.
_HINT: Final = "-type"


def fit_of(
    schema: Any, named: Mapping[str, Any], prepared: Mapping[str, Callable[[Any, Any], Any]]
) -> Fit:
    """Return the test for a schema: `fastavro.validation` finds no fault with what passes it.

    That one takes several times as long, as it makes an error of each branch of a union that does
    not fit. It is to be asked about what does not pass, and to tell what is wrong.

    Args:
        schema, named: as `fastavro.parse_schema` gives them.
        prepared: makes plain values of those of logical types: ``fastavro.write.LOGICAL_WRITERS``.
    """
    return _Fits(named, prepared).of(schema)


def is_recursive(
    schema: Any, named: Mapping[str, Any], within: frozenset[str] = frozenset()
) -> bool:
    """Tell whether a parsed schema has a type that is in itself, so that values have any depth."""
    if isinstance(schema, str):
        if schema in within:
            return True
        return schema in named and is_recursive(named[schema], named, within | {schema})
    if isinstance(schema, list):
        return any(is_recursive(each, named, within) for each in schema)
    if not isinstance(schema, Mapping):
        return False
    if "fields" in schema:
        within |= {schema["name"]}
        return any(is_recursive(field["type"], named, within) for field in schema["fields"])
    return any(is_recursive(schema.get(key), named, within) for key in ("type", "items", "values"))


class _Fits:
    def __init__(
        self, named: Mapping[str, Any], prepared: Mapping[str, Callable[[Any, Any], Any]]
    ) -> None:
        self._named = named
        self._prepared = prepared
        self._known: dict[str, Fit] = {}  # Named types may have themselves in them.

    def of(self, schema: Any) -> Fit:
        if isinstance(schema, list):
            return self._of_union(schema)
        if isinstance(schema, str):
            return _PLAIN.get(schema) or self._of_name(schema)
        kind = schema["type"]
        if not isinstance(kind, str):
            return _unknown
        fits: Fit
        if kind == "array":
            fits = partial(_array, self.of(schema["items"]))
        elif kind == "map":
            fits = partial(_map, self.of(schema["values"]))
        elif kind == "enum":
            fits = partial(_one_of, frozenset(schema["symbols"]))
        elif kind == "fixed":
            fits = partial(_fixed, schema["size"])
        elif kind in _RECORDS:
            fields = [
                (field["name"], field.get("default"), self.of(field["type"]))
                for field in schema["fields"]
            ]
            fits = partial(_record, fields)
        else:
            fits = self.of(kind)
        prepare = self._prepared.get(f"{kind}-{schema.get('logicalType')}")
        return fits if prepare is None else partial(_prepared, fits, prepare, schema)

    def _of_name(self, name: str) -> Fit:
        if name not in self._named:
            return _unknown
        if name not in self._known:
            # While it is being made, for where it has itself in it.
            self._known[name] = partial(self._named_fits, name)
            self._known[name] = self.of(self._named[name])
        return self._known[name]

    def _named_fits(self, name: str, value: Any) -> bool:
        return self._known[name](value)

    def _of_union(self, schemas: list[Any]) -> Fit:
        fits = [self.of(each) for each in schemas]
        by_name: dict[str, Fit] = {}
        for schema, each in zip(schemas, fits, strict=True):
            if isinstance(schema, str):
                by_name.setdefault(schema, each)
            elif schema.get("type") == "record":
                by_name.setdefault(schema["name"], each)
        return partial(_union, fits, by_name)


def _unknown(_: Any) -> bool:
    return False


def _short(value: Any) -> bool:
    """Tell whether a fraction of four bytes is not infinite where the value is not."""
    if type(value) is int:
        return -_SHORT_EXACT <= value <= _SHORT_EXACT
    return type(value) is float and (abs(value) <= _SHORT_MAX or not isfinite(value))


def _prepared(fits: Fit, prepare: Callable[[Any, Any], Any], schema: Any, value: Any) -> bool:
    if isinstance(value, datetime | time):  # Others may be cut, or be in the zone of the machine.
        is_cut = value.microsecond % _US_PER_MS and not schema["logicalType"].endswith("micros")
        if is_cut or (isinstance(value, datetime) and value.tzinfo is None):
            return False
    return fits(prepare(value, schema))


def is_kept(value: Any, read: Any) -> bool:
    """Tell whether a value is what a reader gets of it; more fields may have been added."""
    if isinstance(value, tuple) and len(value) == _PAIR and isinstance(value[0], str):
        value = value[1]  # The first is the name of a branch of a union.
    if isinstance(value, Mapping):
        return isinstance(read, Mapping) and all(
            is_kept(part, read.get(name)) for name, part in value.items() if name != _HINT
        )
    if isinstance(value, list | tuple):
        pairs = zip(value, read, strict=False)
        return len(value) == len(read) and all(is_kept(*pair) for pair in pairs)
    if isinstance(value, datetime) and isinstance(read, datetime):
        return (value.tzinfo is None) == (read.tzinfo is None) and value == read
    if isinstance(value, float) and isinstance(read, float) and value != read:
        is_short = abs(value) <= _SHORT_MAX and unpack("f", pack("f", value)) == (read,)
        return is_short or (isnan(value) and isnan(read))
    return bool(value == read)


def _array(fits: Fit, value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(fits, value))


def _map(fits: Fit, value: Any) -> bool:
    return (
        type(value) is dict and all(map(_PLAIN["string"], value)) and all(map(fits, value.values()))
    )


def _one_of(symbols: frozenset[str], value: Any) -> bool:
    return type(value) is str and value in symbols


def _fixed(size: int, value: Any) -> bool:
    return isinstance(value, bytes) and len(value) == size


def _record(fields: list[tuple[str, Any, Fit]], value: Any) -> bool:
    if type(value) is not dict or _HINT in value:
        return False
    get = value.get
    for name, default, fits in fields:  # noqa: SIM110 - a generator takes twice as long
        if not fits(get(name, default)):
            return False
    return True


def _union(fits: list[Fit], by_name: Mapping[str, Fit], value: Any) -> bool:
    if isinstance(value, tuple):
        name, value = value
        return by_name.get(name, _unknown)(value)
    for each in fits:  # noqa: SIM110 - as above
        if each(value):
            return True
    return False


_PLAIN: Final[Mapping[str, Fit]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: value is True or value is False,
    "string": lambda value: type(value) is str,
    "bytes": lambda value: isinstance(value, bytes | bytearray),
    "int": lambda value: type(value) is int and -_INT <= value < _INT,
    "long": lambda value: type(value) is int and -_LONG <= value < _LONG,
    "float": _short,
    "double": lambda value: (
        type(value) is float or (type(value) is int and -_EXACT <= value <= _EXACT)
    ),
}
