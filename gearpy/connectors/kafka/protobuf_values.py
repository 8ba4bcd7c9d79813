"""Messages of Protobuf as values of Python, and such values as messages: one undoes the other."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from operator import attrgetter
from typing import Any, Final

from gearpy.connectors.files.found.exact import is_inexact

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_US: Final = 1000
_FLOAT_MAX: Final = 3.4028234663852886e38
#: Types of fields, as descriptors number them, and the values that they take as they are.
_DOUBLE, _FLOAT, _BOOL = 5, 6, 7
_EXACT: Final = {1: int, 2: int, 3: int, 4: int, _DOUBLE: float, _FLOAT: float, _BOOL: bool}


def plain(message: Any) -> Any:
    """Return the value of a message: a dict, or what stands for one of the well-known types."""
    read = _READ.get(message.DESCRIPTOR.full_name)
    if read is not None:
        return read(message)
    return {field.name: of_field(message, field) for field in message.DESCRIPTOR.fields}


def filled(message: Any, value: Any) -> Any:
    """Return an empty message with the value that `plain` gives of it; absent is None."""
    write = _WRITE.get(message.DESCRIPTOR.full_name)
    if isinstance(value, type(message)):
        message.CopyFrom(value)
    elif write is not None:
        write(message, value)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if part is not None:
                of = message.DESCRIPTOR
                field = of.fields_by_name.get(name) or of.fields_by_camelcase_name.get(name)
                if field is None:
                    known = ", ".join(of.fields_by_name)
                    raise ValueError(
                        f"{message.DESCRIPTOR.full_name} has no field {name!r:.100}; it has {known}"
                    )
                try:
                    _set(message, field, part)
                except (TypeError, ValueError, OverflowError) as error:
                    raise ValueError(f"{field.name}: {error}") from error
    else:
        raise TypeError(
            f"{value!r:.100} is no dict of the fields of {message.DESCRIPTOR.full_name}"
        )
    return message


# -- reading ---------------------------------------------------------------------------------


def of_field(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.has_presence and not message.HasField(field.name):
        return None
    if (kind := _kind_of_map(field)) is not None:
        return {key: _single(kind, each) for key, each in value.items()}
    if field.is_repeated:
        return [_single(field, each) for each in value]
    return _single(field, value)


def _kind_of_map(field: Any) -> Any:
    entries = field.message_type
    is_map = entries is not None and entries.GetOptions().map_entry
    return entries.fields_by_name["value"] if is_map else None


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return value if named is None else named.name
    return value


# -- writing ---------------------------------------------------------------------------------


def _set(message: Any, field: Any, value: Any) -> None:
    target = getattr(message, field.name)
    if (kind := _kind_of_map(field)) is not None:
        for key, each in value.items():
            if kind.message_type is not None:
                filled(target[key], each)
            else:
                target[key] = _scalar(kind, each)
    elif field.is_repeated and field.message_type is not None:
        for each in value:
            filled(target.add(), each)
    elif field.is_repeated:
        target.extend(_scalar(field, each) for each in value)
    elif field.message_type is not None:
        target.SetInParent()  # It is there, though nothing in it may be.
        filled(target, value)
    else:
        setattr(message, field.name, _scalar(field, value))


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is None or not isinstance(value, str):
        kind = field.cpp_type
        if type(value) is not _EXACT.get(kind) and kind in _EXACT:
            _check_kept(kind, value)
        if kind == _FLOAT and isfinite(value) and abs(value) > _FLOAT_MAX:
            raise ValueError(f"{value!r} is too large for a float, where it is infinite")
        return value
    named = field.enum_type.values_by_name.get(value)
    if named is None:
        known = ", ".join(field.enum_type.values_by_name)
        raise ValueError(f"{field.name} is {value!r:.100}, must be one of {known}")
    return named.number


def _check_kept(kind: int, value: Any) -> None:
    """Refuse what Protobuf would make another value of: a flag as a number, or a large number."""
    if isinstance(value, bool) or (kind == _BOOL and isinstance(value, int)):
        raise TypeError(f"{value!r} is of type {type(value).__name__}, not {_EXACT[kind].__name__}")
    if kind in {_DOUBLE, _FLOAT} and isinstance(value, int) and is_inexact(value):
        raise ValueError(f"{value} would be another number as a fraction: map it before")


# -- well-known types ------------------------------------------------------------------------


def _set_timestamp(message: Any, value: Any) -> None:
    if isinstance(value, str):
        message.FromJsonString(value)
    elif not isinstance(value, datetime):
        raise TypeError(f"{value!r:.100} is no datetime")
    elif value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone: such as datetime.now(UTC) has one")
    else:
        message.FromDatetime(value)


def _set_duration(message: Any, value: Any) -> None:
    if isinstance(value, str):
        message.FromJsonString(value)
    elif not isinstance(value, timedelta):
        raise TypeError(f"{value!r:.100} is no timedelta")
    else:
        message.FromTimedelta(value)


def _struct(message: Any) -> dict[str, Any]:
    return {key: _value(each) for key, each in message.fields.items()}


def _set_struct(message: Any, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.100} is no dict")
    for key, each in value.items():
        _set_value(message.fields[key], each)


def _list(message: Any) -> list[Any]:
    return [_value(each) for each in message.values]


def _set_list(message: Any, value: Any) -> None:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.100} is no list")
    for each in value:
        _set_value(message.values.add(), each)


def _value(message: Any) -> Any:
    kind = message.WhichOneof("kind")
    if kind in {None, "null_value"}:
        return None
    if kind == "struct_value":
        return _struct(message.struct_value)
    return _list(message.list_value) if kind == "list_value" else getattr(message, kind)


def _set_value(message: Any, value: Any) -> None:
    match value:
        case None:
            message.null_value = 0
        case bool():
            message.bool_value = value
        case int() | float():
            _check_kept(_DOUBLE, value)
            message.number_value = value
        case str():
            message.string_value = value
        case Mapping():
            message.struct_value.SetInParent()
            _set_struct(message.struct_value, value)
        case list() | tuple():
            message.list_value.SetInParent()
            _set_list(message.list_value, value)
        case _:
            raise TypeError(f"{value!r:.100} is no value of JSON")


_WRAPPERS: Final = tuple(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(_WRAPPERS, attrgetter("value")),
    "google.protobuf.Timestamp": lambda time: (
        _EPOCH + timedelta(seconds=time.seconds, microseconds=time.nanos // _NS_PER_US)
    ),
    "google.protobuf.Duration": lambda each: timedelta(
        seconds=each.seconds, microseconds=int(each.nanos / _NS_PER_US)
    ),
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "google.protobuf.Value": _value,
}
_WRITE: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    **dict.fromkeys(_WRAPPERS, lambda message, value: setattr(message, "value", value)),
    "google.protobuf.Timestamp": _set_timestamp,
    "google.protobuf.Duration": _set_duration,
    "google.protobuf.Struct": _set_struct,
    "google.protobuf.ListValue": _set_list,
    "google.protobuf.Value": _set_value,
}
