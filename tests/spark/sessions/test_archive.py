"""The archive of loaded classes: where it is, and which arguments make and use it.

That it makes a start quicker is measured, not tested: to make one takes half a minute.
"""

import logging
import os
from pathlib import Path

import pytest

from gearpy.errors import ConfigError
from gearpy.spark.sessions.archive import (
    archive_file,
    discard,
    make_archive,
    ready,
    recording,
    replaying,
    unused_because,
    warn_if_unused,
)
from gearpy.spark.sessions.java import Java

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

    assert ready(java, {}) == archive_file(java)


def test_what_makes_another_archive_is_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java reads past an archive of other classes, or worse: takes classes from it."""
    java, spark = a_java(tmp_path / "java", _JDK_17, has_base=True), tmp_path / "spark"
    (spark / "jars").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(spark)
    monkeypatch.setenv("SPARK_HOME", str(spark))
    names = [archive_file(java), archive_file(java, {"spark.driver.extraClassPath": "/x.jar"})]

    jar = spark / "jars" / "spark-core.jar"
    jar.touch()
    names.append(archive_file(java))
    os.utime(jar, ns=(1, 1))
    names.append(archive_file(java))
    os.utime(java.home / "lib" / "server" / "classes.jsa", ns=(1, 1))
    names.append(archive_file(java))
    monkeypatch.setenv("SPARK_HOME", str(link))
    names.append(archive_file(java))

    assert len(set(names)) == len(names)


def test_what_is_behind_the_jars_makes_no_other_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hides none of their classes, and may be a folder with files."""
    java = a_java(tmp_path / "java", _JDK_17, has_base=True)
    before = archive_file(java)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

    assert archive_file(java) == before


def test_without_an_archive_spark_starts_as_ever(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is only quicker with one; that it could not be made is said once."""
    with caplog.at_level(logging.WARNING, "gearpy"):
        assert ready(a_java(tmp_path / "java", _JDK_17, has_base=True), {}) is None

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no archive of classes was made" in caplog.text
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The session comes up without an archive."""
    cache.parent.mkdir(parents=True)
    cache.touch()  # Where the folder would be.

    with caplog.at_level(logging.WARNING, "gearpy"):
        assert ready(a_java(tmp_path / "java", _JDK_25), {}) is None

    assert "Spark starts without" in caplog.text


def test_a_java_that_cannot_is_said_and_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`archive=True` is a wish for speed; Spark works without."""
    java = a_java(tmp_path / "java", _JDK_17)

    with caplog.at_level(logging.WARNING, "gearpy"):
        assert ready(java, {}) is None

    assert "cannot make an archive" in caplog.text


def test_a_folder_with_files_before_the_jars_is_said_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Java would work half a minute, and then refuse."""
    (tmp_path / "log4j2.properties").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    with caplog.at_level(logging.WARNING, "gearpy"):
        assert ready(a_java(tmp_path / "java", _JDK_25), {}) is None

    assert f"{tmp_path} on the class path has files" in caplog.text


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("[info   ] Mapped dynamic region #0\n[warning] Failed to link one thing\n", None),
        (
            (
                "[info   ] Opened archive\n"
                "[info   ] UseSharedSpaces: shared class paths mismatch (hint: enable a log)\n"
                "[warning] Unable to use shared archive. The top archive failed to load: /x.jsa\n"
            ),
            (
                "shared class paths mismatch (hint: enable a log) - "
                "Unable to use shared archive. The top archive failed to load: /x.jsa"
            ),
        ),
        (
            (
                "[info   ] UseSharedSpaces: Unable to use shared archive.\n"
                "The saved state is different from runtime\n"
                "[info   ] optimized module handling: disabled\n"
            ),
            "Unable to use shared archive. - The saved state is different from runtime",
        ),
        (
            (
                "[warning] Unable to use AOT cache.\n"
                "[       ] The saved state is different from runtime\n"
                "[error  ] Loading static archive failed.\n"
            ),
            (
                "Unable to use AOT cache. - The saved state is different from runtime - "
                "Loading static archive failed."
            ),
        ),
    ],
)
def test_a_jvm_tells_why_it_does_not_use_its_archive(report: str, reason: str | None) -> None:
    """As Java 17 and Java 25 put it; nothing else that they say is an alarm."""
    assert unused_because(report) == reason


def test_an_archive_that_is_not_used_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would notice but for the time it takes."""
    option = replaying(a_java(tmp_path / "java", _JDK_17), tmp_path / "x.jsa")[-1]
    report = Path(option.split('"')[1].replace("%p", "123"))
    report.write_text("[info   ] UseSharedSpaces: Unable to map shared spaces\n")

    with caplog.at_level(logging.WARNING, "gearpy"):
        warn_if_unused()
        warn_if_unused()

    assert [record.getMessage() for record in caplog.records] == [
        "Java does not use the archive of classes: Unable to map shared spaces"
    ]


def test_an_archive_that_ends_a_jvm_is_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """So that the next start makes another."""
    file = tmp_path / "classes.jsa"
    file.touch()

    with caplog.at_level(logging.WARNING, "gearpy"):
        discard(file)

    assert not file.exists()
    assert str(file) in caplog.text


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


def test_the_error_tells_how_a_silent_program_ended(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "java", _JDK_25).home))

    with pytest.raises(ConfigError, match="program ended with status -9 and printed nothing"):
        make_archive()

    assert list(cache.iterdir()) == []
