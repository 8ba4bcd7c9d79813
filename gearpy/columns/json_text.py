"""The JSON of records: dataclasses and NamedTuples are objects, what has no form is refused."""

import dataclasses
import json
from datetime import date, time
from typing import Any, Final, SupportsIndex

_to_json: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=True
).encode


def json_of(value: Any) -> str:
    try:
        text = _to_json(_plain(value))
        text.encode()  # Half of a surrogate pair is no text; said here, where the record is known.
    except (TypeError, ValueError) as error:
        raise _blamed(value, error) from error
    return text


def _blamed(value: Any, error: Exception) -> Exception:
    """Return the error of the first field, or part of it, that JSON has no form for."""
    if isinstance(value, float):
        return ValueError(f"JSON has no form for {value!r}: map it to None or a text before")
    if isinstance(value, str):
        return ValueError(
            f"JSON has no form for {value!r:.100}, which has half a character: map it before, as "
            "by .encode('utf-8', 'replace').decode()"
        )
    named = dict(value) if isinstance(value, dict) else {}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = dict(zip(value._fields, value, strict=True))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    items = value if isinstance(value, list | tuple) else ()
    parts = [(f"field {name!r}", part) for name, item in named.items() for part in (name, item)]
    for where, part in parts or [(f"item {at}", item) for at, item in enumerate(items)]:
        try:
            json_of(part)
        except (TypeError, ValueError) as inner:
            return ValueError(f"{where}: {inner}")
    return error


def _plain(value: Any) -> Any:
    """Return a value that the JSON encoder can take; it would write a NamedTuple as a list."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, SupportsIndex):
        return value.__index__()
    kind = type(value).__name__
    fix = "decode them" if isinstance(value, bytes | bytearray) else "map it to text or numbers"
    raise TypeError(f"JSON has no form for {kind} {value!r:.100}: {fix} before")
