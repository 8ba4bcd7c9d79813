"""Classes by name: ``module:Qualified.Name``, alike in every process that runs a program.

A program's modules have other names in some processes: ``__main__`` where Python was started with
the file, ``gearpy_app_1.orders`` where several programs share a process (see `isolation`).
On the wire a class has the name that the author of the program knows.

Looking a class up never calls anything: a module is taken from those that are loaded, or imported
from the program's folder or what is installed, and the rest of the name is looked up in
dictionaries. What is found is a class, and the one of this name, or nothing.
"""

import re
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from importlib import import_module
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final, NamedTuple

from gearpy.errors import ProtocolError

#: Begins the name of the package that holds a program's modules in a process of several.
PROGRAM_PREFIX: Final = "gearpy_app_"

#: The package of the program whose code runs at present; empty where a process has only one.
PROGRAM: Final = ContextVar("program", default="")

_OWN_PACKAGE: Final = re.compile(rf"^{PROGRAM_PREFIX}(\d+\.)?")
#: The module of a file has any name that a file may have, such as my-flow; a class has not.
_NAME: Final = re.compile(r"[^./:\\\0\s][^/:\\\0\n]*:[^\W\d][\w.]*")
_NAME_CHARS_MAX: Final = 500
_MAIN: Final = "__main__"


class ClassPlace(NamedTuple):
    """The place where a class was found, to see later whether it is still there."""

    cls: type
    module: ModuleType
    path: tuple[str, ...]

    @property
    def is_current(self) -> bool:
        is_loaded = sys.modules.get(self.module.__name__) is self.module
        return is_loaded and _class_in(self.module, self.path) is self.cls


def module_name(name: str) -> str:
    """Return the name of a module as the author of the program knows it.

    Example:
        >>> module_name("gearpy_app_2.shop.orders")
        'shop.orders'
    """
    return _main_name() if name == _MAIN else without_package(name)


def without_package(name: str) -> str:
    return _OWN_PACKAGE.sub("", name)


def name_of_class(cls: type) -> str:
    """Return the name of a class on the wire.

    Example:
        >>> from decimal import Decimal
        >>> name_of_class(Decimal)
        'decimal:Decimal'
    """
    return f"{module_name(cls.__module__)}:{cls.__qualname__}"


def full_name(cls: type) -> str:
    module = module_name(cls.__module__)
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


def place_of_class(cls: type) -> ClassPlace | None:
    module = sys.modules.get(cls.__module__)
    return None if module is None else _place_in(module, cls.__qualname__)


def is_of_prompt(cls: type) -> bool:
    """Tell whether a class was typed at a prompt that keeps its names in no module.

    Such are those of ``python -m asyncio`` and of Python's module `code`.
    """
    is_in_function = "<locals>" in cls.__qualname__
    is_typed = cls.__module__ == _MAIN or cls.__module__ not in sys.modules
    return hasattr(sys, "ps1") and is_typed and not is_in_function


def class_named(name: str) -> ClassPlace:
    """Return the class of a name on the wire, as the program at hand has it."""
    if len(name) > _NAME_CHARS_MAX or not _NAME.fullmatch(name):
        raise ProtocolError(f"{name[:100]!r} is no name of a class")
    module_text, _, qualified = name.partition(":")
    for module in _modules(module_text):
        place = _place_in(module, qualified)
        if place is not None:
            return place
    raise ProtocolError(
        f"class {name!r} is not found here: define it at the top of its module, under that name, "
        "and give every process the same program and packages"
    )


def _place_in(module: ModuleType, qualified: str) -> ClassPlace | None:
    """Look a name up in dictionaries alone, so that no code of the module runs."""
    path = tuple(qualified.split("."))
    cls = _class_in(module, path)
    return None if cls is None else ClassPlace(cls, module, path)


def _class_in(module: ModuleType, path: tuple[str, ...]) -> type | None:
    found: Any = module
    for part in path:
        found = vars(found).get(part)
        if not isinstance(found, type):
            return None
    return found  # type: ignore[no-any-return] # a class, as was seen above


def _modules(name: str) -> Iterator[ModuleType]:
    """Yield the modules that a name may stand for: the program's own come first."""
    program = PROGRAM.get()
    if program:
        yield from _imported(f"{program}.{name}")
    # A program's file that has the name of another module, such as queue.py.
    own = sys.modules.get(PROGRAM_PREFIX + name.replace(".", "_"))
    if own is not None:
        yield own
    if name == _main_name() and _MAIN in sys.modules:
        yield sys.modules[_MAIN]
    yield from _imported(name)


def _imported(name: str) -> Iterator[ModuleType]:
    known = sys.modules.get(name)
    if known is not None:
        yield known
        return
    try:
        yield import_module(name)
    except ImportError:
        return
    except Exception as error:
        raise ProtocolError(
            f"module {name} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _main_name() -> str:
    """Return the name under which others import the main module."""
    main = sys.modules.get(_MAIN)
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    if not file or file.startswith("<"):  # Python calls its standard input <stdin>.
        return _MAIN
    return PurePath(file).stem
