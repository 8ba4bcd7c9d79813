"""``gear quarantine --run``: records of runs that have ended."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gearpy as gp
from gearpy.cli.main import app as commands
from gearpy.cluster.embedded.run_folder import RunFolder
from gearpy.config.load import load
from gearpy.config.schema import Config
from tests.eventually import eventually


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("GEARPY_CHECKPOINT_RUNS_FOLDER", str(tmp_path / "runs"))
    settings = {"application.on-error": "quarantine", "checkpoint.interval-ms": "100"}
    return load(overrides=settings)


def gear(*words: str) -> tuple[int, str]:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(commands, ["quarantine", *words])
    return result.exit_code, result.output


def an_app(bad: int, *, extra: bool = False) -> gp.StreamApp:
    def check(number: int) -> int:
        if number == bad:
            raise ValueError(f"{number} is bad")
        return number

    def numbers() -> Iterator[int]:
        return count()

    app = gp.StreamApp("numbers")
    checked = app.read(gp.generate(numbers, rate=200), name="numbers").map(check, name="check")
    (checked.filter(lambda _: True) if extra else checked).write(gp.to_list([]))
    return app


def test_records_are_listed_and_given_back_by_the_next_start(
    tmp_path: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs" / "first"
    run = gp.start(an_app(bad=7), checkpoint=folder, config=config)
    eventually(lambda: run.summary.progress.quarantined_records)
    run.stop()
    assert (
        "1 record in quarantine: 'gear quarantine list --run first' shows why"
        in capsys.readouterr().err
    )

    code, listed = gear("list", "--run", "first")
    assert code == 0
    assert listed.splitlines()[0] == "records of run first in quarantine"
    assert "ValueError: 7 is bad" in listed
    code, shown = gear("show", "--run", "first", "1")
    assert "raise ValueError" in shown
    assert "gear debug" not in shown
    assert gear("replay", "--run", "first", "2") == (
        2,
        "error: no record 2 of run first is in quarantine; there: 1\n",
    )
    given = "run first: 1 record given back by the next 'gear run --resume first': 1\n"
    assert gear("replay", "--run", "first") == (0, given)

    run = gp.start(an_app(bad=-1), checkpoint=folder, config=config)
    eventually(lambda: run.summary.progress.epoch > 3)
    run.stop()
    assert gear("list", "--run", "first") == (0, "run first has no record in quarantine\n")


def test_records_are_there_before_another_program_has_begun(tmp_path: Path, config: Config) -> None:
    """It was killed just after it had found what the one before has stored."""
    folder = tmp_path / "runs" / "first"
    run = gp.start(an_app(bad=7), checkpoint=folder, config=config)
    eventually(lambda: run.summary.progress.quarantined_records)
    run.stop()
    with RunFolder(folder, an_app(bad=-1, extra=True).build()) as opened:
        assert opened.resume_from

    assert "ValueError: 7 is bad" in gear("list", "--run", "first")[1]
    assert gear("replay", "--run", "first")[0] == 0
    run = gp.start(an_app(bad=-1, extra=True), checkpoint=folder, config=config)
    eventually(lambda: run.summary.progress.epoch > 3)
    run.stop()
    told = gear("list", "--run", "first")[1]
    assert told == "run first has no record in quarantine\n"


def test_a_finished_run_keeps_its_records_and_takes_none(
    tmp_path: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(number: int) -> int:
        return 1 // number

    app = gp.StreamApp("numbers")
    app.read(gp.collection([0, 1, 0])).map(check).write(gp.to_list([]))
    gp.run(app, checkpoint=tmp_path / "runs" / "batch", config=config)
    capsys.readouterr()

    listed = json.loads(gear("list", "--run", "batch", "--json")[1])
    assert [each["number"] for each in listed["records"]] == [1, 2]
    code, told = gear("replay", "--run", "batch")
    assert code == 2
    assert told == (
        "error: run batch has finished, and its steps take nothing more: correct the program, and "
        "run it once more under another name\n"
    )


def test_wrong_use_is_told(config: Config) -> None:
    assert gear("list", "--run", "none")[1].endswith(
        "/runs/none is no folder of a run: 'gear run --resume NAME' makes one, and the summary of "
        "a run without a name tells where its records are\n"
    )
    assert gear("list", "--set", "cluster.masters=127.0.0.1:9")[0] == 3
    assert gear("show", "--run", "none", "x") == (
        2,
        "error: 'x' is no number of a record: see 'gear quarantine list'\n",
    )
