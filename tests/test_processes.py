"""`--processes`: what is reported is what pytest reports, whatever becomes of a process."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.eventually import take_time

_ROOT: Final = Path(__file__).parents[1]
_TIMEOUT_S: Final = 300

_SUITE: Final = {
    "conftest.py": """
        import os
        from pathlib import Path
        import pytest

        @pytest.fixture(autouse=True, scope="session")
        def _session(request):
            (request.config.rootpath / f"session-{os.getpid()}").touch()
            yield
            (request.config.rootpath / f"session-{os.getpid()}").write_text("ended")
    """,
    "test_each.py": """
        import os, sys, warnings
        import pytest

        warnings.warn("while it is collected", UserWarning)

        COLLECTED = os.getpid()

        @pytest.fixture(scope="module")
        def shared():
            yield os.getpid()
            print("what the teardown prints")
            raise OSError("teardown")

        def test_passes(shared):
            assert shared == os.getpid() != COLLECTED == os.getppid()

        def test_fails(tmp_path, shared):
            print("what it prints")
            left = [os.environ["PYTEST_XDIST_WORKER"]]
            assert tmp_path.parent.name == f"popen-{left[0]}"
            assert left == ["right"]

        @pytest.mark.skip(reason="reason of the skip")
        def test_skipped(): ...

        @pytest.mark.xfail(reason="reason of the xfail")
        def test_expected(): assert not 1

        def test_warns(): warnings.warn("a warning", UserWarning)

        def test_last(shared): ...
    """,
    "test_crash.py": """
        import os, signal
        def test_before(): ...
        def test_killed(): os.kill(os.getpid(), signal.SIGKILL)
        def test_between(): ...
        def test_exits(): os._exit(3)
        def test_interrupted(): raise KeyboardInterrupt
        def test_after(): ...
    """,
}


def _run(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    take_time(_TIMEOUT_S)
    (folder / "pytest.ini").write_text("[pytest]")
    plugins = ("-p", "xdist.plugin", "-p", "tests.processes", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, f"--basetemp={folder / 'temp'}", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text.replace("\n        ", "\n"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("suite"), _SUITE)


@pytest.fixture(scope="module")
def said(folder: Path) -> str:
    done = _run(folder, "--processes=2", "-rA", "--junitxml=out.xml")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    return done.stdout


def test_results_are_counted_as_ever(said: str) -> None:
    counts = "= 4 failed, 6 passed, 1 skipped, 1 xfailed, 2 warnings, 1 error in "
    assert counts in said, said


def test_a_failure_is_told_with_its_text(said: str) -> None:
    for line in (
        "what it prints",
        "what the teardown prints",
        "FAILED test_each.py::test_fails - ",
        "ERROR test_each.py::test_last - OSError: teardown",
        "XFAIL test_each.py::test_expected - reason of the xfail",
        "UserWarning: a warning",
    ):
        assert line in said
    assert "reason of the skip" in said
    assert re.search(r"^\[gw\d\]$", said, re.MULTILINE)
    assert re.search(r"^E .*assert \['gw\d'\] == \['right'\]$", said, re.MULTILINE)


def test_a_process_that_ends_is_told_with_its_test_and_replaced(said: str) -> None:
    for test, how in (
        ("killed", "SIGKILL"),
        ("exits", "exit code 3"),
        ("interrupted", "exit code"),
    ):
        nodeid = f"test_crash.py::test_{test}"
        assert re.search(rf"process gw\d ended by {how}.* when it ran {nodeid}", said), test
    for test in ("before", "between", "after"):
        assert f"PASSED test_crash.py::test_{test}" in said


def test_fixtures_of_a_session_are_made_and_ended_in_each_process(said: str, folder: Path) -> None:
    ends = [each.read_text() for each in folder.glob("session-*")]
    assert (ends.count(""), set(ends)) == (2, {"", "ended"})
    assert said


def test_junit_has_all_tests(said: str, folder: Path) -> None:
    assert said
    names = re.findall(r'<testcase classname="\w+" name="(\w+)"', (folder / "out.xml").read_text())
    assert len(set(names)) == 12


def test_a_run_ends_with_the_first_failure_if_that_is_asked_for(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "test_one.py": """
        import time
        from pathlib import Path
        import pytest

        @pytest.fixture
        def started():
            yield
            Path("ended").touch()

        def test_long(started):
            Path("started").touch()
            time.sleep(600)

        def test_never(): Path("never").touch()
    """,
            "test_two.py": """
        import time
        from pathlib import Path
        def test_fails():
            while not Path("started").exists(): time.sleep(0.01)
            assert False
        def test_never(): Path("never").touch()
    """,
        },
    )
    done = _run(tmp_path, "--processes=2", "-x")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "stopping after 1 failures" in done.stdout
    assert (tmp_path / "ended").exists()
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("args", "code", "line"),
    [
        (("-n1",), pytest.ExitCode.OK, "1 worker"),
        (("--collect-only",), pytest.ExitCode.OK, "1 test collected"),
        (("-k", "nothing"), pytest.ExitCode.NO_TESTS_COLLECTED, "1 deselected"),
    ],
)
def test_other_ways_to_run_go_first(
    tmp_path: Path, args: tuple[str, ...], code: int, line: str
) -> None:
    _write(tmp_path, {"test_it.py": "def test_it(): ..."})
    done = _run(tmp_path, "--processes=2", *args)
    assert done.returncode == code, done.stdout + done.stderr
    assert line in done.stdout
