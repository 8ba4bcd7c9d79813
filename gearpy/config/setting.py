"""One key of the configuration, and dataclasses whose annotated fields are keys.

A field ``batch_max: Annotated[int, Setting(low=10, unit="records"), "Why it is there."] = 1000``
is the key ``batch-max``. Of several `Setting` the later one counts more, so a type can have its
own. A field whose type is a dataclass is a table of keys. Which keys gearpy has is in `schema`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args, get_origin

from msgspec import Struct
from msgspec.structs import FieldInfo, fields, replace

Value: TypeAlias = int | str | tuple[str, ...]

_T = TypeVar("_T")

#: The texts that each `Setting.form` allows.
_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    "a host name or address": re.compile(r"[^\s,]+"),
    "host:port": re.compile(r"[^\s,]+:\d{1,5}"),
    "a path": re.compile(r".*\S.*"),
    "a path or URL, or nothing": re.compile(r"(.*\S.*)?"),
    "an http or https URL": re.compile(r"https?://[^\s,]+"),
    "user names": re.compile(r"[^\s,]{1,64}"),
    "user=slots": re.compile(r"[^\s,=]{1,64}=\d{1,9}"),
    "host names": re.compile(r"[^\s,|]+"),
    "a host name or address, or nothing": re.compile(r"[^\s,]*"),
    "a name, or nothing": re.compile(r"[^\s,|]*"),
    "step=host|host": re.compile(r"[^,=|]+=[^\s,=|]+(\|[^\s,=|]+)*"),
    "step=least..most": re.compile(r"[^,=]+=\d{1,6}\.\.\d{1,6}(@\d{1,2}%?)?"),
    "NAME=value": re.compile(r"(?!_?GEARPY_)[A-Za-z_][A-Za-z0-9_]*=[^\0\r\n]*"),
    "options of Python, such as -O, -X dev and -W error": re.compile(
        r"-(?:b{1,2}|B|d|E|I|O{1,2}|P|s|u|v{1,3}|[WX] ?[^\s,]+)"
    ),
    "a name": re.compile(r"[\w.-]+"),
    "module:Class=module:Serializer": re.compile(r"[^\s,=:]+:[^\s,=:]+=[^\s,=:]+:[^\s,=:]+"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: its unit, its bounds and its reason.

    ``low`` and ``high`` bound a number; ``form`` or ``choices`` describes a text. ``key`` is given
    where it is not the name of the field; `_setting_of` adds ``doc``, ``choices``, ``default``.
    """

    low: int = 1
    high: int = 0
    form: str = ""
    unit: str = ""
    key: str = ""
    doc: str = ""
    choices: tuple[str, ...] = ()
    default: Value = 0

    @property
    def allowed(self) -> str:
        """The allowed values in words, with their unit."""
        if isinstance(self.default, int):
            return f"a whole number from {self.low} to {self.high} ({self.unit})"
        if self.choices:
            return " or ".join(repr(choice) for choice in self.choices)
        if isinstance(self.default, tuple):
            return f"a list of {self.form}, with commas between them"
        return self.form

    def allows(self, value: Value) -> bool:
        """Tell whether a value of the right type is within bounds."""
        if isinstance(value, int):
            return self.low <= value <= self.high
        texts = value if isinstance(value, tuple) else (value,)
        if not texts:
            return not self.default
        if self.choices:
            return all(text in self.choices for text in texts)
        return all(map(_FORMS[self.form].fullmatch, texts))


def settings_in(table: Any, prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Yield every dotted key of a class, with its `Setting`."""
    for part in _parts_of(table):
        if _is_table(part):
            yield from settings_in(part.type, f"{prefix}{part.name}.")
        else:
            setting = _setting_of(part)
            yield prefix + setting.key, setting


def sections_in(table: Any) -> Iterator[tuple[str, type]]:
    """Yield the name and the class of each table of keys in a class."""
    return ((part.name, cast("type", part.type)) for part in _parts_of(table) if _is_table(part))


@cache
def getters_in(
    table: type, prefix: str = "", path: str = ""
) -> tuple[tuple[str, Callable[[Any], Value]], ...]:
    """Return every dotted key of a class, with the function that gets its value.

    Each run reads all of its configuration dozens of times, so fields are looked at once.
    """
    found: list[tuple[str, Callable[[Any], Value]]] = []
    for part in _parts_of(table):
        if _is_table(part):
            found += getters_in(part.type, f"{prefix}{part.name}.", f"{path}{part.name}.")
        else:
            found.append((prefix + _setting_of(part).key, attrgetter(path + part.name)))
    return tuple(found)


def rebuilt(config: _T, values: Mapping[str, Value], prefix: str = "") -> _T:
    """Return a configuration with some values replaced, by dotted key; itself if all are equal."""
    changes: dict[str, Any] = {}
    for name, key in _fields_of(cast("Any", type(config))):
        old = getattr(config, name)
        new = values.get(prefix + key, old) if key else rebuilt(old, values, f"{prefix}{name}.")
        if new is not old and new != old:
            changes[name] = new
    return cast("_T", replace(cast("Any", config), **changes)) if changes else config


@cache
def _fields_of(table: type) -> tuple[tuple[str, str], ...]:
    return tuple(
        (part.name, "" if _is_table(part) else _setting_of(part).key) for part in _parts_of(table)
    )


@cache
def _parts_of(table: Any) -> tuple[FieldInfo, ...]:
    return fields(table)


def _is_table(part: FieldInfo) -> bool:
    return isinstance(part.type, type) and issubclass(part.type, Struct)


def _setting_of(part: FieldInfo) -> Setting:
    kind, *annotations = get_args(part.type)
    name = re.sub("_s$", "_seconds", part.name)
    found: dict[str, Any] = {
        "key": name.replace("_", "-"),
        "choices": get_args(kind) if get_origin(kind) is Literal else (),
        "default": part.default,
    }
    for each in annotations:
        known = {"doc": each} if isinstance(each, str) else asdict(each)
        found |= {name: value for name, value in known.items() if value != _NOT_SET[name]}
    return Setting(**found)


_NOT_SET: Final = asdict(Setting())
