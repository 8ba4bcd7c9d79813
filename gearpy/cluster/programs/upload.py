"""Packs a program and uploads it to the master; `targets` lists the allowed targets.

What goes with a ``.py`` file are the modules beside it that it imports (and those that they
import), found by reading the code; data files do not. If none are, the file goes as it is.
A folder goes as a whole, without what is hidden, caches and virtual environments. Zip files and
wheels go as they are.
"""

import ast
import hashlib
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from gearpy.cluster.programs.targets import Entry, Target, entry_of, split_path, tops_of
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, ConnectionLost, SubmitRefused
from gearpy.messages.client import (
    Artifact,
    ArtifactMissing,
    ArtifactStored,
    HasArtifact,
    Refused,
    UploadArtifact,
)
from gearpy.messages.summaries import Until
from gearpy.storage.archives import DAMAGED, ArtifactLimits, check_filename, check_listing
from gearpy.storage.artifacts import PART_BYTES
from gearpy.storage.packing import files_in, pack

#: Called with the bytes that the master has, and all bytes.
Progress = Callable[[int, int], None]

_REQUIREMENTS: Final = "requirements.txt"
#: Parts that bring an upload no further, as when the master was started again in between.
_SETBACKS_MAX: Final = 5
_LISTED_BYTES_MAX: Final = 64 * 1024
_NOT_PACKED: Final = frozenset({"gearpy"})  # Every executor has its own.


class Uploadable(Struct, frozen=True, kw_only=True):
    """A program ready to be uploaded: its bytes in a file, and how to load it.

    ``origin`` is where the user has what is at the top of it.
    """

    artifact: Artifact
    path: Path
    size: int
    origin: Path


def upload(
    ask: Callable[[Any], Any],
    target: str,
    config: Config,
    *,
    args: Sequence[str] = (),
    check_requirements: bool = True,
    on_progress: Progress | None = None,
) -> Artifact:
    with packed(target, config, args=args, check_requirements=check_requirements) as program:
        send(ask, program, on_progress=on_progress)
        return program.artifact


@contextmanager
def packed(
    target: str,
    config: Config,
    *,
    args: Sequence[str] = (),
    check_requirements: bool = True,
    until: Until = "end",
) -> Iterator[Uploadable]:
    limits = ArtifactLimits.of(config.artifact)
    given = split_path(target)
    with tempfile.TemporaryDirectory(prefix="gearpy-upload-") as folder:
        path, filename, entry, origin = _packed(given, Path(folder), limits)
        check_filename(filename)
        size = path.stat().st_size
        if size > limits.bytes_max:
            raise ConfigError(
                f"{given.path} has {size} bytes when packed, at most {limits.bytes_max} are taken: "
                "leave data out, or raise artifact.max-bytes"
            )
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        artifact = Artifact(
            kind="stored",
            location=sha256,
            filename=filename,
            module=entry.module,
            attr=entry.attr,
            args=tuple(args),
            check_requirements=check_requirements,
            until=until,
        )
        yield Uploadable(artifact=artifact, path=path, size=size, origin=origin)


def send(
    ask: Callable[[Any], Any], program: Uploadable, *, on_progress: Progress | None = None
) -> None:
    sha256, setbacks, before = program.artifact.location, 0, -1
    answer = ask(HasArtifact(sha256=sha256))
    with program.path.open("rb") as file:
        while isinstance(answer, ArtifactMissing):
            setbacks += answer.received <= before
            if setbacks > _SETBACKS_MAX:
                raise ConnectionLost("the upload does not get on: the master keeps nothing of it")
            before = answer.received
            if on_progress is not None:
                on_progress(min(before, program.size), program.size)
            offset = min(before, program.size)
            file.seek(offset)
            data = file.read(PART_BYTES)
            last = offset + len(data) >= program.size
            answer = ask(UploadArtifact(sha256=sha256, offset=offset, data=data, last=last))
    if isinstance(answer, Refused):
        raise SubmitRefused(answer.reason)
    assert isinstance(answer, ArtifactStored), answer
    if on_progress is not None:
        on_progress(program.size, program.size)


# -- packing ---------------------------------------------------------------------------------


def _packed(given: Target, folder: Path, limits: ArtifactLimits) -> tuple[Path, str, Entry, Path]:
    path, target = given.path.resolve(), folder / "packed.zip"
    if path.is_dir():
        files, origin = files_in(path, limits), path
        if "__init__.py" in files:
            files, origin = {f"{path.name}/{n}": each for n, each in files.items()}, path.parent
        entry = entry_of(files, given.names, tops=tops_of(files), shown=str(given.path))
        pack(files, target, limits)
        return target, f"{path.name}.zip", entry, origin
    if path.suffix == ".py":
        if len(given.names) > 1:
            raise ConfigError(f"{given.path} is one module: give {given.path}:ATTR")
        attr = given.names[0] if given.names else ""
        files = _with_siblings(path, limits)
        if len(files) == 1:
            return path, path.name, Entry("", attr), path.parent
        if not path.stem.isidentifier():
            raise ConfigError(
                f"{given.path} goes with other files and so must have the name of a module: "
                "rename it"
            )
        pack(files, target, limits)
        return target, f"{path.stem}.zip", Entry(path.stem, attr), path.parent
    if path.suffix == ".sql":
        return path, path.name, Entry("", ""), path.parent
    if path.suffix in {".zip", ".whl"}:
        try:
            with path.open("rb") as file:
                check_listing(file, str(given.path), limits)
            with zipfile.ZipFile(path) as archive:
                names = {name: "" for name in archive.namelist() if not name.endswith("/")}
                listed = [name for name in names if name.endswith(".dist-info/top_level.txt")]
                named = list[str]()
                if listed:
                    with archive.open(listed[0]) as top_level:  # It may unpack to any size.
                        named = top_level.read(_LISTED_BYTES_MAX).decode().split()
        except DAMAGED as error:
            raise ConfigError(f"{given.path} is damaged: {error}") from error
        tops = tuple(named) or tops_of(names)
        entry = entry_of(names, given.names, tops=tops, shown=str(given.path))
        return path, path.name, entry, given.path
    raise ConfigError(
        f"{given.path} is not a program: give a .py or .sql file, a package folder, a .zip or "
        "a .whl"
    )


# -- what a file imports ---------------------------------------------------------------------


def _with_siblings(path: Path, limits: ArtifactLimits) -> dict[str, Path]:
    folder, files, waiting = path.parent, {path.name: path}, [path]
    known = set[str]()
    while waiting:
        for name in _imported(waiting.pop()) - known:
            known.add(name)
            package, module = folder / name, folder / f"{name}.py"
            if name in _NOT_PACKED:
                found = {}
            elif (package / "__init__.py").is_file() or (
                package.is_dir() and not module.is_file() and not _is_installed(name)
            ):
                found = {f"{name}/{key}": each for key, each in files_in(package, limits).items()}
            else:
                found = {module.name: module} if module.is_file() else {}
            waiting += [each for key, each in found.items() if key not in files]
            files.update(found)
    requirements = folder / _REQUIREMENTS
    if requirements.is_file():
        files[_REQUIREMENTS] = requirements
    return files


def _is_installed(name: str) -> bool:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None


def _imported(path: Path) -> set[str]:
    if path.suffix != ".py":
        return set()
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # Told when it is loaded.
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return names
