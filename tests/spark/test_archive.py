"""The archive of loaded classes: where it is, and which arguments make and use it.

That it makes a start quicker is measured, not tested: to make one takes half a minute.
"""

import logging
from pathlib import Path

import pytest

from gearpy.errors import ConfigError
from gearpy.spark.archive import archive_file, make_archive, options, recording, replaying
from gearpy.spark.java import Java

_JDK_17 = 17
_JDK_25 = 25


def a_java(home: Path, version: int, *, has_base: bool = False) -> Java:
    """A Java in a folder, with or without the archive of Java's own classes."""
    server = home / "lib" / "server"
    server.mkdir(parents=True)
    (home / "bin").mkdir()
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\necho no Java, really >&2\nexit 3\n")
    program.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    if has_base:
        (server / "classes.jsa").touch()
    return Java(home, "JAVA_HOME", version)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for the test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gearpy" / "spark"


def test_each_java_has_its_own_archive(tmp_path: Path, cache: Path) -> None:
    """One made by another Java would not be read."""
    old = archive_file(a_java(tmp_path / "a", _JDK_17))
    new = archive_file(a_java(tmp_path / "b", _JDK_25))

    assert old.parent == new.parent == cache
    assert (old.suffix, new.suffix) == (".jsa", ".aot")
    assert old.stem != new.stem


def test_from_java_25_on_it_is_an_aot_cache(tmp_path: Path) -> None:
    """It needs no base archive, which cut-down runtimes lack."""
    old, new = a_java(tmp_path / "a", _JDK_17), a_java(tmp_path / "b", _JDK_25)
    file = Path("/x/classes")

    assert recording(old, file)[0] == "-XX:ArchiveClassesAtExit=/x/classes"
    assert recording(new, file)[0] == "-XX:AOTCacheOutput=/x/classes"
    assert replaying(old, file)[0] == "-XX:SharedArchiveFile=/x/classes"
    assert replaying(new, file)[0] == "-XX:AOTCache=/x/classes"


def test_an_archive_that_is_there_is_used(tmp_path: Path, cache: Path) -> None:
    """And not made again."""
    java = a_java(tmp_path / "java", _JDK_25)
    cache.mkdir(parents=True)
    archive_file(java).touch()

    assert options(java, make=True) == replaying(java, archive_file(java))


def test_without_an_archive_spark_starts_as_ever(tmp_path: Path) -> None:
    """It is only quicker with one."""
    assert options(a_java(tmp_path / "java", _JDK_25), make=False) == []


def test_a_java_that_cannot_is_said_and_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`archive=True` is a wish for speed; Spark works without."""
    java = a_java(tmp_path / "java", _JDK_17)

    with caplog.at_level(logging.WARNING, "gearpy"):
        assert options(java, make=True) == []

    assert "cannot make an archive" in caplog.text


def test_to_make_one_with_a_java_that_cannot_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for it outright is told why not."""
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "java", _JDK_17).home))

    with pytest.raises(ConfigError, match="has no base archive to build on: use a JDK"):
        make_archive()


def test_an_archive_that_was_not_made_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has the words of the program that failed."""
    java = a_java(tmp_path / "java", _JDK_17, has_base=True)
    monkeypatch.setenv("JAVA_HOME", str(java.home))

    with pytest.raises(
        ConfigError, match=r"no archive of classes was made: [\s\S]*no Java, really"
    ):
        make_archive()

    assert list(cache.iterdir()) == []
