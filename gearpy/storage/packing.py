"""Packs a program into a zip file: the same files give the same bytes, and so the same SHA-256."""

import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gearpy.errors import ConfigError
from gearpy.storage.archives import ArtifactLimits

#: These are no part of a program, nor are hidden files and virtual environments.
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})
_LEFT_OUT_SUFFIXES: Final = (".pyc", ".pyo", ".egg-info")
_ENVIRONMENT: Final = "pyvenv.cfg"

#: The earliest time that the format has.
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_CHUNK_BYTES: Final = 64 * 1024


def files_in(folder: Path, limits: ArtifactLimits) -> dict[str, Path]:
    """Return the files of a program by their path in the folder, sorted.

    Links to files count as the files; links to folders are refused, as they may lead anywhere.

    Raises:
        ConfigError: there are too many, or one is no plain file.
    """
    found: dict[str, Path] = {}
    for path in _walk(folder):
        found[path.relative_to(folder).as_posix()] = path
        if len(found) > limits.files_max:
            raise ConfigError(
                f"{folder} has more than {limits.files_max} files: submit a smaller folder, "
                "or raise artifact.max-bytes"
            )
    return dict(sorted(found.items()))


def pack(files: Mapping[str, Path], target: Path, limits: ArtifactLimits) -> None:
    """Write a zip file with these files by their names in it."""
    total = sum(path.stat().st_size for path in files.values())
    if total > limits.unpacked_bytes_max:
        raise ConfigError(
            f"the program has {total} bytes, at most {limits.unpacked_bytes_max} are taken: "
            "leave data out, or raise artifact.max-bytes"
        )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = (stat.S_IFREG | 0o600) << 16
            with path.open("rb") as source, archive.open(entry, "w") as packed:
                while chunk := source.read(_CHUNK_BYTES):
                    packed.write(chunk)


def _walk(folder: Path) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        name = path.name
        is_left_out = (
            name.startswith(".")
            or name in _LEFT_OUT
            or name.endswith(_LEFT_OUT_SUFFIXES)
            or (path / _ENVIRONMENT).exists()
        )
        if is_left_out:
            continue
        if entry.is_dir():
            if entry.is_symlink():
                raise ConfigError(f"{path} is a link to a folder: put the folder itself there")
            yield from _walk(path)
        elif entry.is_file():
            yield path
        else:
            raise ConfigError(f"{path} is no plain file, or a link to nothing: remove it")
