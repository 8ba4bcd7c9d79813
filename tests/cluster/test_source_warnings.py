"""Warnings of sources, in a program that sets up no log and in one that does."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.cluster.embedded.output import NO_READER
from gearpy.cluster.embedded.source_warnings import show_source_warnings


def without_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the handlers of the test run, which a fixture is too early for."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("gearpy"), "handlers", [logging.NullHandler()])
    monkeypatch.setattr(logging.getLogger("gearpy.connectors"), "handlers", [])
    show_source_warnings()


def warn() -> None:
    logging.getLogger("gearpy.connectors.files").warning("%s, left out", "line 7")


def test_warnings_of_sources_show_without_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, however many runs there were; what is no warning does not show."""
    without_log(monkeypatch)
    show_source_warnings()
    warn()
    logging.getLogger("gearpy.connectors.files").info("read")

    assert capsys.readouterr().err == "warning: line 7, left out\n"


@pytest.mark.parametrize("name", ["", "gearpy"])
def test_a_log_that_is_set_up_has_them_alone(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_log(monkeypatch)
    monkeypatch.setattr(logging.getLogger(name), "handlers", [logging.StreamHandler()])
    warn()

    assert capsys.readouterr().err == "line 7, left out\n"


def test_lines_of_a_program_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_log(monkeypatch)
    app = gp.StreamApp("logged")
    app.read(gp.collection([1, 2])).log(name="seen").write(gp.to_list([]))
    gp.run(app)

    assert [line[:8] for line in capsys.readouterr().err.splitlines()] == ["seen: 1 ", "seen: 2 "]


def test_a_run_says_that_it_adds_to_results_of_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for overwrite in (False, False, True):
        app = gp.StreamApp("twice")
        sink = gp.jsonl_folder(tmp_path / "out", overwrite=overwrite)
        app.read(gp.collection([1])).write(sink)
        gp.run(app)

    assert capsys.readouterr().err == (
        f"{tmp_path / 'out'} has results of an earlier run, and this one adds its own: "
        "overwrite=True removes those first, --resume NAME goes on with a run\n"
    )


def test_a_program_whose_reader_leaves_ends_in_silence(tmp_path: Path) -> None:
    program = (
        "import itertools, gearpy as gp\n"
        "app = gp.StreamApp('endless')\n"
        "app.read(gp.generate(itertools.count)).write(gp.console())\n"
        "gp.run(app)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert process.returncode == NO_READER
    assert b"rror" not in said


def test_seconds_in_the_place_of_milliseconds_are_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_log(monkeypatch)
    app = gp.StreamApp("seconds")
    app.read(gp.rows([{"at": 1772355600}], time="at")).write(gp.to_list([]))
    gp.run(app)

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "warning: rows(1): its first event time, 1772355600, is of the year 1970"
    )
    assert "give time_unit='s', or multiply by 1,000" in line
