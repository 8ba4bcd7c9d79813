"""Checks that the packages that a program needs are installed.

A program says so in a ``requirements.txt`` at its top (beside the file, or in the package that
was submitted), a wheel in its ``Requires-Dist``. Only the names and versions of packages are
compared, and only if the environment has `packaging`; without it a package must be there in any
version. Lines that are options, paths or URLs are passed over.
"""

import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from gearpy.distribution import DISTRIBUTION, OTHER
from gearpy.errors import ConfigError

_FILE: Final = "requirements.txt"
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class _Need(NamedTuple):
    text: str
    where: str


def check_requirements(folder: Path, module: str) -> None:
    mistakes = [
        f"{need.text} ({need.where}): {mistake}"
        for need in _needs(folder, module.partition(".")[0])
        if (mistake := missing(need.text))
    ]
    if mistakes:
        place = f"{platform.node()}, {sys.executable}"
        raise ConfigError(
            *(f"the program needs {each} in the environment of {place}" for each in mistakes),
            "install what is missing there, or submit with --no-requirements-check",
        )


def missing(requirement: str) -> str:
    try:
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - optional
    except ImportError:
        match = _NAME.match(requirement)
        if match is None or ";" in requirement or "/" in requirement:
            return ""
        return _absent(match[0]) if _version(match[0]) is None else ""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return ""
    if parsed.marker is not None and not parsed.marker.evaluate({"extra": ""}):
        return ""
    found = _version(parsed.name)
    if found is None or parsed.name.lower() == OTHER:
        return _absent(parsed.name)
    if not parsed.specifier.contains(found, prereleases=True):
        return f"version {found} is installed"
    return ""


def _absent(name: str) -> str:
    if name.lower() == OTHER:
        return f"{OTHER} is another project: this one is called {DISTRIBUTION}"
    return "" if name.lower() == DISTRIBUTION else "it is not installed"


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - hardly needed

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _needs(folder: Path, package: str) -> Iterator[_Need]:
    for path in dict.fromkeys((folder / _FILE, folder / package / _FILE)):
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            name = path.relative_to(folder).as_posix()
            for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
                need = re.split(r"(?:^|\s)#|\s--", line, maxsplit=1)[0].strip()
                if need and not need.startswith("-"):
                    yield _Need(need, f"{name} line {number}")
    for path in sorted(folder.glob("*.dist-info/METADATA")):
        from email.parser import HeaderParser  # noqa: PLC0415 - only for wheels

        headers = HeaderParser().parsestr(path.read_text(encoding="utf-8", errors="replace"))
        for text in headers.get_all("Requires-Dist", []):
            yield _Need(text, "Requires-Dist of the wheel")
