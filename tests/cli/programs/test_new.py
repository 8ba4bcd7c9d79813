"""``gear new`` makes a project whose program runs and whose test passes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app


def new(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["new", *words])
    return result.exit_code, result.output


def test_its_program_runs_and_its_test_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shop-totals"
    code, told = new(str(folder))
    assert code == 0
    assert f"next: cd {folder} && gear run flow.py" in told
    texts = [each.read_text("utf-8") for each in folder.rglob("*") if each.is_file()]
    assert not [text for text in texts if "PROJECT" in text]
    monkeypatch.chdir(folder)
    ran = CliRunner().invoke(app, ["run", "flow.py"])
    assert ran.exit_code == 0, ran.output
    assert "configuration: gear.toml" in ran.stderr
    lines = "".join(each.read_text("utf-8") for each in Path("totals").glob("*.jsonl")).split("\n")
    found = [(row["key"], row["value"]["total"]) for row in map(json.loads, filter(None, lines))]
    assert found == [("north", 7), ("south", 5), ("north", 6)]
    tested = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    assert subprocess.run(tested, cwd=folder, check=False).returncode == 0


@pytest.mark.parametrize("name", ["Bad", "1st", "a b", "-"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    code, told = new("--", str(tmp_path / name))
    assert code == 2
    assert "names no project: use small letters" in told


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine", "utf-8")
    code, told = new(str(folder))
    assert code == 2
    assert "the folder is not empty" in told
    assert [each.name for each in folder.iterdir()] == ["mine.txt"]
