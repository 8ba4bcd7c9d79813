"""Options as Gearpump spells them."""

import subprocess
import sys
from pathlib import Path

import pytest

from gearpy import distribution
from gearpy.cli.main import today
from gearpy.cli.terminal.exits import WRONG_USE


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("kill -appid 3", "the number alone"),
        ("info -appid=3", "the number alone"),
        ("app -jar wordcount.jar Main", "the program alone"),
        ("app submit shop.py -namePrefix x", "--name-prefix"),
        ("app submit shop.py -executors 2", "--executors"),
        ("master -ip 10.0.0.1 -port 3000", "--host"),
        ("master --host 10.0.0.1 -port 3000", "--port"),
        ("local -workernum 3", "--workers"),
        ("local -sameprocess", "--executors thread"),
        ("services -master 10.0.0.1:3000", "--master"),
        ("services -supervisor x", "nothing: there is no supervisor"),
        ("info -conf gear.toml", "--conf"),
        ("info -verbose", "--verbose"),
        ("main -jar x.jar Main", "the program alone"),
    ],
)
def test_an_earlier_option_is_answered_by_that_of_today(line: str, written: str) -> None:
    assert f"is Gearpump's: write {written}" in today(line.split())


@pytest.mark.parametrize(
    "line",
    ["kill 3", "local --workers 3", "main tool.py -port 3", "run a.py -- -port 3", "", "run -h"],
)
def test_other_words_are_left_alone(line: str) -> None:
    assert today(line.split()) == ""


def test_the_example_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert today(["kill", "-appid", "3"]).endswith(" here, as in bin/gear kill 3")
    monkeypatch.setattr(distribution, "_FOLDER", tmp_path / "site-packages" / "gearpy")
    assert today(["kill", "-appid", "3"]).endswith(" here, as in gear kill 3")


def test_it_is_wrong_use() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gearpy", "kill", "-appid", "3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == WRONG_USE
    assert done.stderr.startswith("error: -appid is Gearpump's: write the number alone here, as in")
    assert done.stderr.endswith("gear kill 3\n")
