"""What is known about one key, and dataclasses whose fields are keys.

A field's default is an ordinary default; the rest is in the field's metadata, where the
functions below find it. They know nothing of the keys that gearpy has; see `schema`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeAlias, TypeVar, cast

__all__ = [
    "Setting",
    "Value",
    "rebuilt",
    "section",
    "sections_in",
    "setting",
    "settings_in",
    "values_in",
]

Value: TypeAlias = int | str | tuple[str, ...]

_T = TypeVar("_T")

#: What a text may look like, by the words that `Setting.form` has for it.
_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    "a host name or address": re.compile(r"[^\s,]+"),
    "host:port": re.compile(r"[^\s,]+:\d{1,5}"),
    "a path": re.compile(r".*\S.*"),
    "module:Class=module:Serializer": re.compile(r"[^\s,=:]+:[^\s,=:]+=[^\s,=:]+:[^\s,=:]+"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key: what it is for and what it may be.

    ``low`` and ``high`` bound a number; ``choices`` or ``form`` says what a text may be.
    ``unit`` is a word for people, such as ``records`` or ``ms``.
    """

    key: str
    default: Value
    unit: str
    doc: str
    low: int = 1
    high: int = 0
    form: str = ""
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What a value may be, in words, with its unit."""
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
        return all(map(self._allows_text, texts))

    def _allows_text(self, text: str) -> bool:
        return text in self.choices if self.choices else bool(_FORMS[self.form].fullmatch(text))


def setting(
    key: str,
    default: _T,
    unit: str,
    doc: str,
    *,
    low: int = 1,
    high: int = 0,
    form: str = "",
    choices: tuple[str, ...] = (),
) -> _T:
    """Return the dataclass field of a key; see `Setting`."""
    known = Setting(
        key=key,
        default=cast("Value", default),
        unit=unit,
        doc=doc,
        low=low,
        high=high,
        form=form,
        choices=choices,
    )
    return field(default=default, metadata={"setting": known})


def section(key: str, default: _T) -> _T:
    """Return the dataclass field of a table of keys."""
    return field(default=default, metadata={"section": key})


def sections_in(config: Any) -> Iterator[tuple[str, type]]:
    """Return the tables directly in a configuration (or its class) with their classes."""
    for part in fields(config):
        if "section" in part.metadata:
            yield part.metadata["section"], type(part.default)


def settings_in(config: Any, prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Return every key in a configuration (or its class), dotted, with what is known about it."""
    for part in fields(config):
        if "section" in part.metadata:
            yield from settings_in(part.default, f"{prefix}{part.metadata['section']}.")
        else:
            yield prefix + part.metadata["setting"].key, part.metadata["setting"]


def values_in(config: Any, prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Return every key in a configuration, dotted, with its value."""
    for part in fields(config):
        value = getattr(config, part.name)
        if "section" in part.metadata:
            yield from values_in(value, f"{prefix}{part.metadata['section']}.")
        else:
            yield prefix + part.metadata["setting"].key, value


def rebuilt(config: _T, values: Mapping[str, Value], prefix: str = "") -> _T:
    """Return a configuration with some values replaced, by dotted key."""
    changes: dict[str, Any] = {}
    for part in fields(cast("Any", config)):
        if "section" in part.metadata:
            table = f"{prefix}{part.metadata['section']}."
            changes[part.name] = rebuilt(getattr(config, part.name), values, table)
        elif (key := prefix + part.metadata["setting"].key) in values:
            changes[part.name] = values[key]
    return cast("_T", replace(cast("Any", config), **changes))
