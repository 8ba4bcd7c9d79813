"""Imports the modules of a program so that they do not mix with those of others.

`OwnModules` is for a process that runs one program: its folder comes first on ``sys.path``, and
its modules have the names that the user gave them, as if Python itself had started it.

`GuestModules` is for a process that several programs share, at the same time and maybe with
modules of the same names. All modules of one program live in a package made for it,
``gearpy_app_1``, which has the program's folder as its path: the file ``orders.py`` is the module
``gearpy_app_1.orders``. The program does not see the prefix: code of it gets an ``__import__``
of its own, by which ``import orders`` finds its own `orders` and then that of Python.
Relative imports, imports within functions, dataclasses and type hints work as usual. What looks
a module up by a text does not find the program's own: ``importlib.import_module("orders")``,
`pickle`, `importlib.resources.files("package")`; nor do compiled extension modules.
"""

import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final, Protocol

from gearpy.errors import ConfigError
from gearpy.wire.values.class_names import PROGRAM_PREFIX
from gearpy.wire.values.records import DEFAULT_REGISTRY

_numbers_lock: Final = Lock()
_numbers: Final[set[int]] = set()


class Modules(Protocol):
    """The modules of one program; ``package`` holds them, empty if they have their own names."""

    package: str

    def run_file(self, path: Path) -> ModuleType: ...

    def run_module(self, name: str) -> ModuleType: ...

    def close(self) -> None:
        """Forget all modules; does nothing when called again."""
        ...


#: Where a module has the application that it has run while it was loaded.
OF_RUN: Final = "gp.run"


class ProgramRuns(BaseException):
    """A program runs its application while it is loaded: that one is loaded, and nothing runs."""

    def __init__(self, app: Any) -> None:
        super().__init__("gp.run or gp.start while the program is loaded")
        self.app = app


class OwnModules:
    """Modules under their own names; see the docstring of this module.

    Runs on: one thread at a time.
    """

    package = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._entry = str(self._folder)
        self._main = ""
        importlib.invalidate_caches()
        sys.path.insert(0, self._entry)

    def run_file(self, path: Path) -> ModuleType:
        # A program called queue.py must not stand in for Python's own module.
        self._main = path.stem
        if path.stem in sys.modules or "." in path.stem:
            self._main = PROGRAM_PREFIX + path.stem.replace(".", "_")
        return _run(_spec_of_file(self._main, path))

    def run_module(self, name: str) -> ModuleType:
        top = name.partition(".")[0]
        known = sys.modules.get(top)
        if known is not None and not self._is_own(known):
            raise ConfigError(
                f"module {top} of the program has the name of another one that is loaded "
                f"({getattr(known, '__file__', None) or 'built in'}): rename it"
            )
        _check_found(name, lambda each: _find_below(each, self._entry))
        return _import_module(name)

    def close(self) -> None:
        with suppress(ValueError):
            sys.path.remove(self._entry)
        own = [name for name, module in list(sys.modules.items()) if self._is_own(module)]
        for name in own:
            sys.modules.pop(name, None)
        _forget_paths(self._entry)

    def _is_own(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        places = [file] if file else list(getattr(module, "__path__", ()))
        return any(Path(place).is_relative_to(self._folder) for place in places if place)


class GuestModules:
    """Modules in a package of their own; see the docstring of this module. Runs on: any thread."""

    def __init__(self, folder: Path) -> None:
        self._entry = str(folder.resolve())
        # Submitted once more, a program gets its names, and record classes, again.
        with _numbers_lock:
            number = next(each for each in count(1) if each not in _numbers)
            _numbers.add(number)
        self._number: int | None = number
        self.package = f"{PROGRAM_PREFIX}{self._number}"
        self._is_own: dict[str, bool] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}
        package = ModuleType(self.package, "A program's own modules.")
        package.__path__ = [self._entry]
        self._finder = _Finder(self.package, self._builtins)
        importlib.invalidate_caches()
        sys.modules[self.package] = package
        sys.meta_path.insert(0, self._finder)

    def run_file(self, path: Path) -> ModuleType:
        name = f"{self.package}.{path.stem.replace('.', '_')}"
        spec = _spec_of_file(name, path)
        spec.loader = _Loader(name, str(path), self._builtins)
        return _run(spec)

    def run_module(self, name: str) -> ModuleType:
        _check_found(name, lambda each: _find_below(each, self._entry))
        return _import_module(f"{self.package}.{name}")

    def close(self) -> None:
        number, self._number = self._number, None
        if number is None:
            return
        with suppress(ValueError):
            sys.meta_path.remove(self._finder)
        for name in [*sys.modules]:
            if name == self.package or name.startswith(f"{self.package}."):
                sys.modules.pop(name, None)
        DEFAULT_REGISTRY.forget(self.package)
        _forget_paths(self._entry)
        with _numbers_lock:
            _numbers.discard(number)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - as `__import__` has it
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        top = name.partition(".")[0]
        if level or not self._has(top):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        full = f"{self.package}.{name}"
        try:
            if fromlist:
                return builtins.__import__(full, globals, locals, fromlist, 0)
            _import_module(full)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith(f"{self.package}."):
                name = error.name.removeprefix(f"{self.package}.")
                raise ModuleNotFoundError(f"No module named {name!r}", name=name) from None
            raise
        return sys.modules[f"{self.package}.{top}"]

    def _has(self, top: str) -> bool:
        known = self._is_own.get(top)
        if known is None:
            spec = PathFinder.find_spec(top, [self._entry])
            known = spec is not None and spec.origin is not None
            if spec is not None and not known:
                # A folder without __init__.py gives way to an installed package, as on sys.path.
                other = None if top in sys.modules else find_spec(top)
                known = top not in sys.modules and (other is None or other.origin is None)
            self._is_own[top] = known
        return known


class _Finder(MetaPathFinder):
    """Finds the modules in the package of one program."""

    def __init__(self, package: str, own_builtins: dict[str, Any]) -> None:
        self._start = f"{package}."
        self._builtins = own_builtins

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self._start):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(fullname, spec.loader.path, self._builtins)
        return spec


class _Loader(SourceFileLoader):
    """Runs a module with the built-in functions that it is given."""

    def __init__(self, name: str, path: str, own_builtins: dict[str, Any]) -> None:
        super().__init__(name, path)
        self._builtins = own_builtins

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._builtins
        super().exec_module(module)


def _import_module(name: str) -> ModuleType:
    module = builtins.__import__(name, fromlist=("__name__",))
    assert isinstance(module, ModuleType)
    return module


def _spec_of_file(name: str, path: Path) -> ModuleSpec:
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file: give a .py file")
    return spec


def _run(spec: ModuleSpec) -> ModuleType:
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses and typing look their module up there.
    assert spec.loader is not None
    try:
        spec.loader.exec_module(module)
    except ProgramRuns as runs:
        vars(module)[OF_RUN] = runs.app
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return module


def _check_found(name: str, find: Callable[[str], bool]) -> None:
    if not find(name):
        raise ConfigError(f"the program has no module {name}: see what was packed, and its name")


def _find_below(name: str, entry: str) -> bool:
    paths: Sequence[str] | None = [entry]
    for part in name.split("."):
        spec = PathFinder.find_spec(part, paths) if paths else None
        if spec is None:
            return False
        paths = spec.submodule_search_locations
    return True


def _forget_paths(entry: str) -> None:
    for path in [*sys.path_importer_cache]:
        if path == entry or path.startswith(f"{entry}/"):
            sys.path_importer_cache.pop(path, None)
