"""Programs from registries, in a cache that all test runs of a user share."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

from gearpy.spark.sessions.java import cache_folder

#: In a test, below the 240 s after which pytest takes it for hanging.
_RUN_IN_TEST_S: Final = 200
_RUN_S: Final = 600
_SAID_CHARACTERS: Final = 500
_CACHE: Final = cache_folder(os.environ) / "servers"
_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>gearpy.tests</groupId><artifactId>servers</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies>{}</dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)

#: Lists of packages may be old, or missing; only root can bring new ones.
_UNPACK: Final = """cd "$0" || exit
apt-get -q download "$1" || { apt-get -q update && apt-get -q download "$1"; } || exit
dpkg -x ./*.deb "$2"
"""
#: Where Go is on machines that did not get it as a package.
_GO: Final = "/usr/local/go/bin"
_BUILD_IN_GO: Final = (
    'cd "$0" && GOTOOLCHAIN=local "$1" build -mod=readonly -buildvcs=false -o "$2" .'
)


class Unavailable(Exception):
    """A server that cannot be had on this machine; the text names it and what is missing."""


def cached(name: str, recipe: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, filled by the first process that asks for it."""
    folder = _CACHE / f"{name}-{blake2b(recipe.encode(), digest_size=6).hexdigest()}"
    if folder.is_dir():
        return folder
    _CACHE.mkdir(parents=True, exist_ok=True)
    with locked(_CACHE / f"{name}.lock"):
        if not folder.is_dir():
            part = Path(tempfile.mkdtemp(dir=_CACHE, prefix=f".{name}-"))
            try:
                fill(part)
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return folder


def jars(name: str, artifacts: Sequence[str]) -> Path:
    parts = "".join(_DEPENDENCY.format(*each.split(":")) for each in artifacts)
    pom = _POM.format(parts)

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as work:
            (Path(work) / "pom.xml").write_text(pom)
            _download(
                f"{name} ({', '.join(artifacts)}) by Maven",
                [
                    *(program("mvn", package="maven"), "-q", "-B", "-f", f"{work}/pom.xml"),
                    "dependency:copy-dependencies",
                    *(f"-DoutputDirectory={folder}", "-DincludeScope=runtime"),
                ],
            )

    return cached(name, pom, fill)


def unpacked_artifact(name: str, artifact: str) -> Path:
    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as work:
            copy = [program("mvn", package="maven"), "-q", "-B", "dependency:copy"]
            options = [f"-Dartifact={artifact}", f"-DoutputDirectory={work}"]
            _download(f"{name} ({artifact}) by Maven", [*copy, *options])
            (archive,) = Path(work).iterdir()
            shutil.unpack_archive(archive, folder, filter="data")

    return cached(name, artifact, fill)


def packages(name: str, requirements: Sequence[str]) -> Path:
    """Return a folder for ``PYTHONPATH`` with packages of PyPI, apart from those of the tests."""

    def fill(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder)]
        # What has to be compiled is there sooner, and need not be quick.
        install = ["env", "CFLAGS=-O0", *pip, *requirements]
        _download(f"{name} ({', '.join(requirements)}) by pip", install)

    return cached(name, f"{sys.version} {requirements}", fill)


def built_in_go(name: str, source: Path) -> Path:
    files = sorted(
        each for each in source.iterdir() if each.name.startswith("go.") or each.suffix == ".go"
    )
    recipe = "".join(each.read_text(encoding="utf-8") for each in files)

    def fill(folder: Path) -> None:
        build = ["sh", "-c", _BUILD_IN_GO, str(source), _go(), str(folder / name)]
        _download(f"what {name} needs, by Go", build)

    return cached(name, recipe, fill) / name


def node_packages(name: str, requirements: Sequence[str]) -> Path:
    """Return a folder with packages of npm, in its `node_modules`."""

    def fill(folder: Path) -> None:
        install = [program("npm", package="npm"), "install", "--prefix", str(folder)]
        quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        _download(f"{name} ({', '.join(requirements)}) by npm", [*install, *quiet, *requirements])

    return cached(name, f"npm {requirements}", fill)


def go_program(name: str, module: str) -> Path:
    def fill(folder: Path) -> None:
        install = ["env", f"GOBIN={folder}", _go(), "install", module]
        _download(f"{name} ({module}) by Go", install)

    return cached(name, f"go {module}", fill) / name


def _go() -> str:
    return program("go", package="golang-go", path=lambda: f"{os.environ['PATH']}:{_GO}")


def program(name: str, *, package: str, path: Callable[[], str | None] = lambda: None) -> str:
    """Return the path of a program; root installs the Debian package that has it.

    Args:
        path: returns folders to look into; by default those of the environment.
    """
    if found := shutil.which(name, path=path()):
        return found
    if os.geteuid() or not shutil.which("apt-get"):
        raise Unavailable(f"{name} is not installed: install the Debian package {package}")
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    with locked(Path(tempfile.gettempdir()) / "gearpy-tests-apt.lock"):
        _download("lists of Debian's packages", [*apt, "update"])
        install = [*apt, "install", "-y", "--no-install-recommends", package]
        _download(f"the Debian package {package}", install)
    if found := shutil.which(name, path=path()):
        return found
    raise Unavailable(f"the Debian package {package} has no {name}")


def unpacked(package: str) -> Path:
    """Return a folder with the files of a Debian package, which takes no root to unpack."""

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as work:
            _download(
                f"the Debian package {package}", ["sh", "-c", _UNPACK, work, package, str(folder)]
            )

    return cached(package, _UNPACK, fill)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(what: str, command: Sequence[str]) -> None:
    timeout_s = _RUN_IN_TEST_S if "PYTEST_CURRENT_TEST" in os.environ else _RUN_S
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: not done within {timeout_s} s") from None
    if done.returncode:
        raise Unavailable(f"{what} failed: {(done.stdout + done.stderr)[-_SAID_CHARACTERS:]}")


def _download(what: str, command: Sequence[str]) -> None:
    sys.stderr.write(f"tests: downloading {what} ...\n")
    sys.stderr.flush()
    run(f"downloading {what}", command)
