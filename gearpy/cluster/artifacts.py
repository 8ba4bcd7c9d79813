"""From what was submitted to the application it describes."""

import importlib.util
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final

from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import AppId, ExecutorId
from gearpy.messages.cluster import Artifact
from gearpy.task.application import Buildable, StreamApplication
from gearpy.task.failure import operator_error

__all__ = ["ApplicationLoader", "application_of", "embed", "forget", "load", "split_target"]

#: Applications given as objects, for clusters in this process.
_embedded: dict[str, Buildable] = {}
_keys: Final = count(1)
_ATTRS: Final = ("app", "main")


def embed(app: Buildable) -> Artifact:
    """Make an artifact of an object; only this process can load it. Undo with `forget`."""
    key = str(next(_keys))
    _embedded[key] = app
    return Artifact(kind="memory", location=key)


def forget(artifact: Artifact) -> None:
    """Drop an embedded application."""
    _embedded.pop(artifact.location, None)


def split_target(target: str) -> tuple[Path, str]:
    """Split ``FILE[:attr]`` as the command line takes it."""
    path, colon, attr = target.rpartition(":")
    if not colon or not path or "/" in attr or "\\" in attr:
        return Path(target), ""
    return Path(path), attr


def load(artifact: Artifact) -> StreamApplication:
    """Import the program and build its application.

    Raises:
        ConfigError: no such file or attribute, no application in it, or it cannot run.
        OperatorError: the program itself raised.
    """
    return _load(artifact)[0]


def application_of(
    found: Any, args: Sequence[str], *, where: str = "application"
) -> StreamApplication:
    """Build what was given: an application, or a function that makes one of arguments.

    Raises:
        ConfigError: it is neither, takes no arguments, or the application cannot run.
        OperatorError: the function raised.
    """
    if not _is_application(found):
        if not callable(found):
            raise ConfigError(f"{where} is a {type(found).__name__}, not an application")
        found = _called(where, found, args)
    elif args:
        raise ConfigError(
            f"{where} takes no arguments, got {' '.join(args)}: "
            "only a function main(args) can take some"
        )
    if not _is_application(found):
        raise ConfigError(
            f"{where} returned a {type(found).__name__}, not an application: return the StreamApp"
        )
    built = found.build()
    assert isinstance(built, StreamApplication)
    return built


@dataclass(slots=True)
class _Loaded:
    """One application and who uses it; ``lock`` is held while it is loaded."""

    lock: Lock = field(default_factory=Lock)
    users: set[ExecutorId] = field(default_factory=set)
    application: StreamApplication | None = None
    module: str = ""


class ApplicationLoader:
    """Loads each submitted application once for all its roles in this process.

    It is dropped, with its module, when all that loaded it have released it. A program that
    takes long to import holds up no other application.

    Runs on: any thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._loaded: dict[AppId, _Loaded] = {}

    def load(self, app_id: AppId, artifact: Artifact, user: ExecutorId) -> StreamApplication:
        """Return the application until `release`; see `load` for what is raised."""
        with self._lock:
            loaded = self._loaded.setdefault(app_id, _Loaded())
            loaded.users.add(user)
        try:
            with loaded.lock:
                if loaded.application is None:
                    loaded.application, loaded.module = _load(artifact)
                return loaded.application
        except BaseException:
            self.release(app_id, user)
            raise

    def release(self, app_id: AppId, user: ExecutorId) -> None:
        """Need the application no more; does nothing when called again."""
        with self._lock:
            loaded = self._loaded.get(app_id)
            if loaded is None:
                return
            loaded.users.discard(user)
            if loaded.users:
                return
            del self._loaded[app_id]
        sys.modules.pop(loaded.module, None)


def _load(artifact: Artifact) -> tuple[StreamApplication, str]:
    """Return the application and the name of the module that was imported for it, if any."""
    if artifact.kind == "memory":
        app = _embedded.get(artifact.location)
        if app is None:
            raise ConfigError(f"application object {artifact.location} is not in this process")
        return app.build(), ""
    module = _import(Path(artifact.location))
    try:
        name, found = _find(module, artifact)
        where = f"{artifact.location}:{name}"
        return application_of(found, artifact.args, where=where), module.__name__
    except BaseException:
        sys.modules.pop(module.__name__, None)
        raise


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"no such file: {path}")
    path = path.resolve()
    name = f"gearpy_app_{next(_keys)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file: give a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Dataclasses and typing look their module up there.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        if isinstance(error, GearpyError):
            raise
        raise operator_error(f"import {path.name}", error) from error
    return module


def _find(module: ModuleType, artifact: Artifact) -> tuple[str, Any]:
    if artifact.attr:
        found = getattr(module, artifact.attr, None)
        if found is None:
            raise ConfigError(
                f"{artifact.location} has no {artifact.attr!r}; "
                f"it has {', '.join(_candidates(module)) or 'no application at all'}"
            )
        return artifact.attr, found
    for name in _ATTRS:
        if name in vars(module):
            return name, getattr(module, name)
    candidates = _candidates(module)
    if len(candidates) == 1:
        return candidates[0], getattr(module, candidates[0])
    if candidates:
        raise ConfigError(
            f"{artifact.location} has several applications: {', '.join(candidates)}; "
            f"say which: {artifact.location}:{candidates[0]}"
        )
    raise ConfigError(
        f"no application in {artifact.location}: "
        "define `app = gearpy.StreamApp(...)` or a function `main(args)` that returns one"
    )


def _candidates(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if _is_application(value)]


def _is_application(value: Any) -> bool:
    return callable(getattr(value, "build", None)) and not isinstance(value, type)


def _called(where: str, function: Any, args: Sequence[str]) -> Any:
    takes_args = bool(inspect.signature(function).parameters)
    if args and not takes_args:
        raise ConfigError(f"{where} takes no arguments, got {' '.join(args)}")
    try:
        return function(list(args)) if takes_args else function()
    except GearpyError:
        raise
    except SystemExit as error:
        raise ConfigError(f"{where} refused its arguments (exit {error.code})") from error
    except Exception as error:
        raise operator_error(where, error) from error
