"""The decorator `dataclass` of classes that only gearpy makes: methods come at their first call.

Python compiles six methods of each frozen dataclass where it is declared, which takes half of a
millisecond. A process declares some hundred, all messages among them, and makes objects of few:
that was half of the time that an executor takes to load.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

__all__ = ["dataclass"]

_NO_METHODS: Final = {"init": False, "repr": False, "eq": False}
#: What Python gives a frozen dataclass with slots, but for what refuses changes; how to get it.
_LATE: Final = {
    "__init__": {"init": True, "frozen": True},
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"unsafe_hash": True},
    "__getstate__": {"frozen": True, "slots": True},
    "__setstate__": {"frozen": True, "slots": True},
}
#: A class that has one of these is made at once; so is one with a base.
_OWN: Final = {*_LATE, "__post_init__", "__setattr__", "__delattr__"}

if TYPE_CHECKING:  # For checkers it is Python's.
    from dataclasses import dataclass
else:

    def dataclass(**options: bool) -> Callable[[type], type]:
        """Make a class a dataclass; if it is frozen and has slots, with methods that come late."""
        is_late = {"kw_only": False, **options}.keys() == {"frozen", "slots", "kw_only"}

        def made(cls: type) -> type:
            if not is_late or cls.__bases__ != (object,) or vars(cls).keys() & _OWN:
                return dataclasses.dataclass(**options)(cls)
            return _made_late(cls, options)

        return made


def _made_late(declared: type, options: dict[str, bool]) -> type:
    cls: Any = dataclasses.dataclass(**options | _NO_METHODS | {"frozen": False})(declared)
    params = cls.__dataclass_params__  # Python looks at them when another class inherits from it.
    params.init = params.repr = params.eq = params.frozen = True
    for name in _LATE:
        setattr(cls, name, _first_call(cls, name))
    cls.__signature__ = _Signature(cls)
    cls.__setattr__, cls.__delattr__ = _refuse_to_assign, _refuse_to_delete
    return cls  # type: ignore[no-any-return]


def _first_call(cls: type, name: str) -> Callable[..., Any]:
    """Return a method that has the real one made, puts it into its own place and calls it."""

    def method(self: object, /, *args: Any, **kwargs: Any) -> Any:
        if vars(cls)[name] is method:  # Not if somebody has kept this one.
            setattr(cls, name, _method(cls, name))
        return vars(cls)[name](self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return method


def _method(cls: Any, name: str) -> Callable[..., Any]:
    """Return the method that Python makes for another class with the same fields: it works here.

    Two threads may ask at the same time: what they get works the same.
    """
    fields = dataclasses.fields(cls)
    body: dict[str, Any] = {each.name: each for each in fields}
    body["__annotations__"] = {each.name: each.type for each in fields}
    body |= {part: getattr(cls, part) for part in ("__doc__", "__module__", "__qualname__")}
    like_it = type(cls.__name__, (), body)
    made = vars(dataclasses.dataclass(**_NO_METHODS | _LATE[name])(like_it))
    return made[name]  # type: ignore[no-any-return]


class _Signature:
    """Has ``__init__`` made when somebody asks a class for its signature: Python finds it there."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, _: object, __: type) -> None:
        self._cls.__init__ = _method(self._cls, "__init__")


def _refuse_to_assign(_: object, name: str, __: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
