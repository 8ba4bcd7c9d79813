"""Submits a program in the name of a caller."""

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gearpy.cluster.app.config import application_overrides
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.programs.upload import packed, send
from gearpy.config.load import load
from gearpy.config.schema import SETTINGS, Config
from gearpy.errors import ChangeForbidden, ConfigError
from gearpy.ids import AppId
from gearpy.messages.client import Artifact
from gearpy.services.programs.graphs import SubmittedGraph, program_of
from gearpy.services.programs.uploads import Uploads
from gearpy.services.security.access import Caller
from gearpy.storage.archives import ArtifactLimits, unpack
from gearpy.transport.security.tokens import TokenScope

_GRAPH: Final = "gearpy_graph"
_NO_ENV: Final[Mapping[str, str]] = {}
_SETTINGS: Final = "settings.toml"
#: Keys that name folders, by which a program gets files made and read where it has none.
_FOLDERS: Final = frozenset(key for key, each in SETTINGS.items() if each.unit == "folder")


class Submitting:
    """Packs programs, uploads them to the master, and has them started. Runs on: any thread."""

    def __init__(self, client: ClusterClient, config: Config, uploads: Uploads) -> None:
        self._client = client
        self._config = config
        self._uploads = uploads

    def program(
        self,
        path: Path,
        *,
        user: str,
        name: str = "",
        target: str = "",
        args: Sequence[str] = (),
        executors: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> AppId:
        running = self._client.submit(
            name or path.stem,
            self.upload(path, target=target, args=args),
            executors=executors,
            config=settings,
            user=user,
        )
        return running.app_id

    def upload(self, path: Path, *, target: str = "", args: Sequence[str] = ()) -> Artifact:
        """Upload a file to the master; return the program that it is. Nothing of it is run here."""
        if path.suffix == ".py":
            try:
                compile(path.read_bytes(), path.name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                line = getattr(error, "lineno", None)
                raise ConfigError(f"{path.name}{f':{line}' if line else ''}: {error}") from error
            except (MemoryError, RecursionError) as error:
                raise ConfigError(
                    f"{path.name} cannot be compiled: it is nested too deeply, or too large "
                    f"({error!r})"
                ) from error
        place = f"{path}:{target}" if target else str(path)
        with _told_without(path.parent), packed(place, self._config, args=args) as program:
            send(self._client.send, program)
            return program.artifact

    def graph(self, graph: SubmittedGraph, *, caller: Caller) -> AppId:
        text = program_of(graph)
        lines = [f"{key}={value}" for key, value in (graph.user_config or {}).items()]
        settings = self.settings(lines, caller=caller)
        with self._uploads.work_folder() as folder:
            program = folder / "program"
            uploads = [self._uploads.kept(each) for each in graph.handles]
            program.mkdir(mode=0o700)
            for number, each in enumerate(uploads):
                unpacked = folder / f"unpacked-{number}"
                unpack(each, unpacked, each.name, ArtifactLimits.of(self._config.artifact))
                for top in sorted(unpacked.iterdir()):
                    if (program / top.name).exists():
                        raise ConfigError(f"two uploads have {top.name}: rename one")
                    shutil.move(top, program / top.name)
            (program / f"{_GRAPH}.py").write_text(text, encoding="utf-8")
            return self.program(
                program, user=caller.name, name=graph.app_name, target=_GRAPH, settings=settings
            )

    def settings(
        self, lines: Sequence[str], toml: bytes = b"", *, caller: Caller
    ) -> dict[str, str]:
        """Return the settings of an application, from lines ``key=value`` over a file."""
        parts = [each.partition("=") for each in lines]
        if mistakes := [
            f"{key[:80]!r} has no value: write key=value" for key, equals, _ in parts if not equals
        ]:
            raise ConfigError(*mistakes)
        overrides = {key.strip(): value.strip() for key, _, value in parts}
        with self._uploads.work_folder() as folder:
            path = folder / _SETTINGS
            path.write_bytes(toml)
            with _told_without(folder):
                config = load([path], env=_NO_ENV, overrides=overrides)
        settings = application_overrides(config)
        if caller.scope < TokenScope.ADMIN and (folders := settings.keys() & _FOLDERS):
            raise ChangeForbidden(
                f"{', '.join(sorted(folders))}: to name a folder of the cluster needs the scope "
                f"admin, and {caller.name} has {caller.scope.text}: leave it out"
            )
        return settings


def args_of(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"args: {error}") from error


@contextmanager
def _told_without(folder: Path) -> Iterator[None]:
    """Leave a folder of the services out of mistakes: it is nobody's business."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(*(each.replace(f"{folder}/", "") for each in error.mistakes)) from None
