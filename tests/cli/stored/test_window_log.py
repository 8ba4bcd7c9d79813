"""``gear window-log``: what people and programs see of a log."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.windowlog.log import ReaderReport, WindowLog
from tests.windowlog.log_build import a_lane, a_log_of, keys_in, shown

LANE = "windows-00000"


@pytest.fixture
def log(tmp_path: Path) -> WindowLog:
    made = a_log_of(tmp_path / "log", [[1], [2, 3], [4]])
    shown(a_lane(made, task=1), 1, 5)
    return made


def gear(*arguments: str, code: int = 0) -> str:
    answer = CliRunner().invoke(app, ["window-log", *arguments])
    assert answer.exit_code == code, answer.output
    return answer.output


def as_json(*arguments: str, code: int = 0) -> Any:
    return json.loads(gear(*arguments, "--json", code=code).splitlines()[0])


def test_files_are_listed_lane_by_lane(log: WindowLog) -> None:
    log.report(ReaderReport(name="spark", lanes={LANE: 1}, at_ms=1000, rows_per_s=12.5))

    listed = gear("list", log.place).splitlines()
    values = as_json("list", log.place)

    assert listed[1].split()[:6] == ["lane", "batches", "windows", "rows", "from", "to"]
    assert listed[3].split()[:4] == [LANE, "2", "2", "2"]
    assert listed[-1].split() == ["spark", "1970-01-01T00:00:01Z", "3", "4", "12"]
    assert [(each["lane"], each["first"], each["rows"]) for each in values["files"]] == [
        (LANE, 1, 1),
        (LANE, 2, 2),
        (LANE, 3, 1),
        ("windows-00001", 1, 1),
    ]
    assert values["readers"][0]["rows_left"] == 4
    assert values["columns"]["key"] == "int64"


def test_a_log_without_readers_lists_none(log: WindowLog) -> None:
    assert "\nreaders" not in gear("list", log.place)


def test_rows_of_a_batch_are_shown(log: WindowLog) -> None:
    assert "batch 3 of lane windows-00000: 1 row\n" in gear("show", log.place)
    chosen = gear("show", log.place, LANE, "2", "--rows", "1")
    assert "batch 2 of lane windows-00000: 2 rows" in chosen
    assert "these are 1; for more, --rows" in chosen
    assert as_json("show", log.place, LANE, "2", "--rows", "0")["shown"] == [
        {
            "window_start": f"1970-01-01T00:00:00.0{key}0000Z",
            "window_end": f"1970-01-01T00:00:00.0{key + 1}0000Z",
            "key": key,
        }
        for key in (2, 3)
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["x-00000"], 2, "has no lane 'x-00000': there are windows-00000, windows-00001"),
        ([LANE, "9"], 1, "lane windows-00000 has no batch 9 any more"),
    ],
)
def test_a_batch_that_is_not_there_is_told(
    log: WindowLog, arguments: list[str], code: int, error: str
) -> None:
    assert error in gear("show", log.place, *arguments, code=code)


def test_a_good_log_is_verified(log: WindowLog) -> None:
    assert gear("verify", log.place).splitlines() == [
        f"{log.place}: 4 files, 4 batches, 5 rows",
        "all batches are there, and each row once",
    ]
    assert as_json("verify", log.place)["findings"] == []


def test_what_is_wrong_is_an_exit_code(log: WindowLog) -> None:
    shown(a_lane(log, incarnation=2), 9, 1)
    second = sorted(log.segments())[1]
    log.store.remove(second.name)

    text = gear("verify", log.place, code=1)

    assert "error: windows-00000: batch 2 missing: a file was removed" in text
    assert "1 rows of batch 4 are there twice" in text
    assert "2 findings" in text
    assert len(as_json("verify", log.place, code=1)["findings"]) == 2


def test_many_files_become_few(log: WindowLog) -> None:
    assert gear("compact", log.place) == f"{log.place}: 4 files before, 2 now\n"
    assert as_json("compact", log.place) == {"path": log.place, "before": 2, "after": 2, "made": []}
    assert keys_in(WindowLog(log.place)) == [1, 2, 3, 4, 5]


def test_what_all_readers_have_read_is_removed(log: WindowLog) -> None:
    log.report(ReaderReport(name="fast", lanes={LANE: 3}, at_ms=1))
    log.report(ReaderReport(name="slow", lanes={LANE: 1}, at_ms=1))

    assert gear("purge", log.place) == f"{log.place}: 1 file removed\n"
    assert len(as_json("purge", log.place, "--reader", "fast")["removed"]) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], "has no reader that has reported, there are none"),
        (["--reader", "x"], "has no reader 'x', there are none"),
        (["--reader", "x", "--older-than", "1d"], "give --reader or --older-than, not both"),
    ],
)
def test_nothing_is_removed_by_guess(log: WindowLog, options: list[str], error: str) -> None:
    assert error in gear("purge", log.place, *options, code=2)
    assert len(log.segments()) == 4


def test_old_files_are_removed(log: WindowLog) -> None:
    assert as_json("purge", log.place, "--older-than", "1d")["removed"] == []


def test_a_folder_that_is_no_log_is_told(tmp_path: Path) -> None:
    assert "is no window log" in gear("list", str(tmp_path), code=2)
