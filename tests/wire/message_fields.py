"""The fields of messages, as docs/wire-protocol.md and the record of a version list them.

``python -m tests.wire.message_fields`` prints the record of the newest version.
"""

import sys
from collections.abc import Collection, Mapping
from types import GenericAlias, NoneType, UnionType
from typing import Any, Final, Literal, NewType, get_args, get_origin, get_type_hints

from msgspec import Struct

#: What a type may be made of, texts of a `Literal` excepted.
_Hint: Final = (type, NewType, GenericAlias, UnionType)
_PLAIN: Final[dict[Any, str]] = {
    NoneType: "nil",
    int: "int",
    str: "text",
    bytes: "bytes",
    bool: "bool",
    float: "float",
}


def fields_of(cls: type[Struct], *, without: Collection[str] = (), has_texts: bool = False) -> str:
    """Return the fields of a message and their types, in the order in which they are sent."""
    hints = get_type_hints(cls)
    names = (name for name in cls.__struct_fields__ if name not in without)
    return ", ".join(f"{name}: {_shape(hints[name], has_texts)}" for name in names) or "none"


def _shape(hint: Any, has_texts: bool) -> str:  # noqa: FBT001 - given on by position
    if isinstance(hint, NewType):
        return _shape(hint.__supertype__, has_texts)
    parts = (arg for arg in get_args(hint) if isinstance(arg, _Hint))
    args = [_PLAIN.get(arg) or _shape(arg, has_texts) for arg in parts]
    match get_origin(hint):
        case None:
            return _PLAIN.get(hint) or str(hint.__name__)
        case of if of is Literal:
            return f"text {'/'.join(get_args(hint))}" if has_texts else "text"
        case of if of is tuple:
            is_list = ... in get_args(hint)
            return f"list of {args[0]}" if is_list else f"({', '.join(args)})"
        case of if of is dict:
            return f"map of {args[0]} to {args[1]}"
    return " or ".join(args)


def record_of(
    classes: Mapping[str, type[Struct]], without: Mapping[str, Collection[str]]
) -> list[str]:
    """Return a line for each message of a version, but for what is added by the next one."""
    return [
        f"{name} | {fields_of(cls, without=without.get(name, ()), has_texts=True)}"
        for name, cls in sorted(classes.items())
        if without.get(name) != ()
    ]


if __name__ == "__main__":
    from gearpy.wire.codec import CONTROL_CLASSES

    sys.stdout.write("\n".join([*record_of(CONTROL_CLASSES, {}), ""]))
