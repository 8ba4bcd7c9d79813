"""Loads the application that an artifact describes."""

import inspect
import secrets
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final, TypeAlias, TypeVar, get_args

from msgspec.structs import replace

from gearpy.cluster.programs.isolation import OF_RUN, GuestModules, Modules, OwnModules, ProgramRuns
from gearpy.cluster.programs.requirements import check_requirements
from gearpy.config.schema import Config
from gearpy.distribution import EXTRAS, not_installed
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import AppId
from gearpy.messages.client import Artifact
from gearpy.messages.summaries import Until
from gearpy.task.api.actor_app import ActorApp
from gearpy.task.api.application import Buildable, StreamApplication
from gearpy.task.api.failure import note_place, operator_error
from gearpy.wire.values.class_names import PROGRAM
from gearpy.wire.values.records import use_serializer

#: An application as it is loaded: a graph of tasks, or actors.
Program: TypeAlias = StreamApplication | ActorApp
P = TypeVar("P", StreamApplication, ActorApp)

#: Applications given as objects, for clusters in this process.
_embedded: dict[str, Buildable | ActorApp] = {}
_keys: Final = count(1)
#: Begins all keys of this process and its forks: a stored one of another process is of none here.
_PROCESS: Final = secrets.token_hex(4)
#: The program that is being loaded in this context; empty while none is.
loading: Final = ContextVar("loading", default="")
_SPREAD: Final = " on "  # Behind the key of an embedded application.
_ATTRS: Final = (OF_RUN, "app", "main")
_MakeModules = Callable[[Path], Modules]


def run_by_loader(app: object) -> None:
    """Leave an application to the command that loads the program, if one does."""
    if loading.get():
        raise ProgramRuns(app)


class ArgumentsRefused(ConfigError):
    """A program does not take the arguments that it was given."""


def embed(app: Buildable | ActorApp) -> Artifact:
    """Make an artifact of an object; this process, and forks of it, can load it.

    Undo with `forget`.
    """
    key = f"{_PROCESS}-{next(_keys)}"
    _embedded[key] = app
    runs_actors = isinstance(app, ActorApp)
    return Artifact(kind="memory", location=key, runs="actors" if runs_actors else "streams")


def spread(embedded: Artifact, processes: int) -> Artifact:
    """Return the artifact of an embedded application as it runs on so many processes."""
    if processes == 1:
        return embedded
    return replace(embedded, location=f"{embedded.location}{_SPREAD}{processes}")


def embedded_here(stored: Artifact, submitted: Artifact) -> Artifact:
    """Return an artifact that a run has stored, for the object that it has in this process."""
    key, on, processes = stored.location.partition(_SPREAD)
    here = submitted.location.partition(_SPREAD)[0]
    if stored.kind != "memory" or key in _embedded or here not in _embedded:
        return stored
    return replace(stored, location=f"{here}{on}{processes}")


def loaded_as(kind: type[P], program: Program) -> P:
    if not isinstance(program, kind):
        raise ConfigError(other_kind(program.name, type(program), kind))
    return program


def other_kind(name: str, found: type, submitted: type) -> str:
    return (
        f"{name} is a {found.__name__} where it runs, and was submitted as a "
        f"{submitted.__name__}: a program must be the same application wherever it is loaded"
    )


def forget(artifact: Artifact) -> None:
    _embedded.pop(artifact.location, None)


def stream_of(program: Program, use: str) -> StreamApplication:
    if isinstance(program, StreamApplication):
        return program
    raise ConfigError(no_stream(program.name, use))


def no_stream(name: str, use: str) -> str:
    return (
        f"{name} is an application of actors, and {use} is for streams: start a cluster "
        "(gear local, or bin/local in a clone) and submit it there (gear app submit FILE)"
    )


def split_target(target: str) -> tuple[Path, str]:
    path, colon, attr = target.rpartition(":")
    if not colon or not path or "/" in attr or "\\" in attr:
        return Path(target), ""
    return Path(path), attr


def with_serializers(application: StreamApplication, config: Config) -> StreamApplication:
    PROGRAM.set(application.program)
    for entry in config.serializers:
        use_serializer(entry)
    return application


def load(artifact: Artifact, folder: Path | None = None) -> Program:
    return _load(artifact, folder, OwnModules)[0]


def application_of(
    found: Any,
    args: Sequence[str],
    *,
    where: str = "application",
    scale: Mapping[str, int] | None = None,
    until: Until = "end",
) -> Program:
    """Build an application: take the given one, or call the given function with arguments.

    With ``scale`` it gets other numbers of tasks of steps, by id or name, than it says itself.
    """
    if not _is_application(found):
        if not callable(found):
            raise ConfigError(f"{where} is a {type(found).__name__}, not an application")
        found = _called(where, found, args)
    elif args:
        raise ArgumentsRefused(
            f"{where} takes no arguments, got {' '.join(args)}: "
            "only a function main(args) can take some"
        )
    if not _is_application(found):
        raise ConfigError(
            f"{where} returned a {type(found).__name__}, not an application: return the StreamApp"
        )
    return _built(found, scale or {}, until)


def _built(found: Any, scale: Mapping[str, int], until: Until) -> Program:
    if not scale and until == getattr(found, "until", "end"):
        built = found.build()
    elif isinstance(found, ActorApp):
        raise ConfigError(
            f"{found.name} is an application of actors, which have no steps"
            if scale
            else no_stream(found.name, f"until={until!r}")
        )
    else:  # The stream language plans anew; a graph by hand is scaled as it is.
        planned = found if hasattr(found, "scaled") else found.build()
        built = planned.scaled(scale, until=until)
    assert isinstance(built, Program)
    return built


def stream_here(app: Any, until: Until = "end") -> StreamApplication:
    if until not in get_args(Until):
        raise ConfigError(f'until is {until!r:.100}, must be "end" or "caught-up"')
    args = [] if _is_application(app) else sys.argv[1:]
    return stream_of(application_of(app, args, until=until), "a run in this process")


@dataclass(slots=True)
class _Loaded:
    """One application and its users; ``lock`` is held while it is loaded."""

    lock: Lock = field(default_factory=Lock)
    users: set[Hashable] = field(default_factory=set)
    application: Program | None = None
    modules: Modules | None = None


class ApplicationLoader:
    """Loads each submitted application once for all its roles in this process.

    It is dropped, with its modules, when all that loaded it have released it. A program that
    takes long to import holds up no other application.

    Runs on: any thread.

    Args:
        own_process: the process is there for one application, whose modules have their own
            names in it; else applications cannot see each other's. See `isolation`.
    """

    def __init__(self, *, own_process: bool = False) -> None:
        self._lock = Lock()
        self._loaded: dict[tuple[AppId, Artifact], _Loaded] = {}
        self._modules_in: _MakeModules = OwnModules if own_process else GuestModules

    def load(
        self, app_id: AppId, artifact: Artifact, user: Hashable, folder: Path | None = None
    ) -> Program:
        self.release(app_id, user, but=artifact)
        with self._lock:
            loaded = self._loaded.setdefault((app_id, artifact), _Loaded())
            loaded.users.add(user)
        try:
            with loaded.lock:
                if loaded.application is None:
                    loaded.application, loaded.modules = _load(artifact, folder, self._modules_in)
                return loaded.application
        except BaseException:
            self.release(app_id, user)
            raise

    def release(self, app_id: AppId, user: Hashable, *, but: Artifact | None = None) -> None:
        """Need no version of the application any more, but one; asked again, nothing changes."""
        unused: list[_Loaded] = []
        with self._lock:
            for place, loaded in list(self._loaded.items()):
                if place[0] != app_id or place[1] == but or user not in loaded.users:
                    continue
                loaded.users.discard(user)
                if not loaded.users:
                    unused.append(self._loaded.pop(place))
        for loaded in unused:
            if loaded.modules is not None:
                loaded.modules.close()


def _load(
    artifact: Artifact, folder: Path | None, modules_in: _MakeModules
) -> tuple[Program, Modules | None]:
    if artifact.kind == "memory":
        key, _, processes = artifact.location.partition(_SPREAD)
        app = _embedded.get(key)
        if app is None:
            raise ConfigError(f"application object {key} is not in this process")
        until = app.until if isinstance(app, StreamApplication) else artifact.until
        if processes:
            built = _built(app, {}, until)
            app = stream_of(built, "a run on processes").spread(int(processes))
        return _built(app, dict(artifact.scale), until), None
    folder = _checked_folder(artifact, folder)
    modules = modules_in(folder)
    outer = loading.set(shown_program(artifact))
    try:
        module = _import(artifact, folder, modules)
        name, found = _find(module, artifact)
        where = f"{shown_program(artifact)}:{name}"
        application = application_of(
            found, artifact.args, where=where, scale=dict(artifact.scale), until=artifact.until
        )
        application.program = modules.package
        if artifact.kind == "stored" and isinstance(application, StreamApplication):
            application.folder = str(folder)
        return application, modules
    except BaseException:
        modules.close()
        raise
    finally:
        loading.reset(outer)


def _checked_folder(artifact: Artifact, folder: Path | None) -> Path:
    if artifact.kind == "file":
        path = Path(artifact.location)
        if not path.is_file():
            raise ConfigError(f"no such file: {path}")
        path = path.resolve()
        module = artifact.module
        above = module.count(".") + (bool(module) and path.name == "__init__.py")
        return path.parents[above]
    if folder is None:
        raise ConfigError(f"artifact {artifact.location[:12]} was not fetched")
    if artifact.check_requirements:
        check_requirements(folder, artifact.module)
    return folder


def _import(artifact: Artifact, folder: Path, modules: Modules) -> ModuleType:
    path = Path(artifact.location).resolve()
    if artifact.kind == "stored":
        path = folder.resolve() / artifact.filename
    try:
        if path.suffix == ".sql":  # The room of SQL is above; it is called as a program is.
            module = ModuleType(path.stem)
            module.app = import_module("gearpy.sql.job").program_of(path)  # type: ignore[attr-defined]
            return module
        return modules.run_module(artifact.module) if artifact.module else modules.run_file(path)
    except (Exception, SystemExit) as error:
        if isinstance(error, GearpyError):
            note_place(error)
            raise
        if isinstance(error, ModuleNotFoundError) and (name := error.name or "") in EXTRAS:
            raise not_installed(artifact.module or path.name, name) from error
        raise operator_error(f"import {artifact.module or path.name}", error) from error


def shown_program(artifact: Artifact) -> str:
    if artifact.kind != "stored":
        return artifact.module or artifact.location
    return f"{artifact.filename}:{artifact.module}" if artifact.module else artifact.filename


def _find(module: ModuleType, artifact: Artifact) -> tuple[str, Any]:
    if artifact.attr:
        found = getattr(module, artifact.attr, None)
        if found is None:
            known = [
                *_candidates(module),
                *[
                    name
                    for name, value in vars(module).items()
                    if inspect.isfunction(value)
                    and value.__module__ == module.__name__
                    and name[0] != "_"
                ],
            ]
            nearest = get_close_matches(artifact.attr, known, n=1)
            raise ConfigError(
                f"{shown_program(artifact)} has no {artifact.attr!r}; it has "
                f"{', '.join(known) or 'no application, and no function that could make one'}"
                + (f"; did you mean {shown_program(artifact)}:{nearest[0]}?" if nearest else "")
            )
        return artifact.attr, found
    for name in _ATTRS:
        if name in vars(module):
            return name, vars(module)[name]
    candidates = _candidates(module)
    if len(candidates) == 1:
        return candidates[0], getattr(module, candidates[0])
    if candidates:
        raise ConfigError(
            f"{shown_program(artifact)} has several applications: {', '.join(candidates)}; "
            f"say which: {shown_program(artifact)}:{candidates[0]}"
        )
    raise ConfigError(
        f"no application in {shown_program(artifact)}: "
        "define `app = gearpy.StreamApp(...)` or a function `main(args)` that returns one"
    )


def _candidates(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if _is_application(value)]


def _is_application(value: Any) -> bool:
    return callable(getattr(value, "build", None)) and not isinstance(value, type)


def _called(where: str, function: Any, args: Sequence[str]) -> Any:
    takes_args = bool(inspect.signature(function).parameters)
    if args and not takes_args:
        raise ArgumentsRefused(f"{where} takes no arguments, got {' '.join(args)}")
    try:
        return function(list(args)) if takes_args else function()
    except ProgramRuns as runs:
        return runs.app
    except GearpyError as error:
        note_place(error)
        raise
    except SystemExit as error:
        raise ArgumentsRefused(f"{where} refused its arguments (exit {error.code})") from error
    except Exception as error:
        raise operator_error(where, error) from error
