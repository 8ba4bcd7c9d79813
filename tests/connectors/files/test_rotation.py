"""Logs that are rotated while nothing reads them: no line is lost, or it is said."""

import logging
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.files.bytes import OnLost
from gearpy.connectors.files.lines import Decoder
from gearpy.connectors.files.lines_files import FilePlace, FileReader, FileSource
from gearpy.errors import ConfigError, GearpyError, OperatorError

_LINE_BYTES = 40


class Log:
    def __init__(self, folder: Path, *, on_lost: OnLost = "fail") -> None:
        self.path = folder / "app.log"
        self._ticks = 0
        self._begin()
        self.source = FileSource(
            [self.path],
            timestamp=None,
            bound_ms=0,
            follow=True,
            on_lost=on_lost,
            decoder=Decoder("utf-8", "strict"),
            now_ms=lambda: 0,
        )
        self.lines: list[str] = []

    def _begin(self) -> None:
        self.path.touch()
        self._tick(self.path)

    def _tick(self, path: Path) -> None:
        self._ticks += 1  # A later time than that of any file before.
        os.utime(path, ns=(0, self._ticks))

    def write(self, count: int, path: Path | None = None) -> None:
        new = [f"{len(self.lines) + at:0{_LINE_BYTES}}" for at in range(count)]
        self.lines += new
        with (path or self.path).open("a") as file:
            file.write("".join(f"{line}\n" for line in new))
        self._tick(path or self.path)

    def rotate(self, name: str = "app.log.1") -> None:
        for number in range(8, 0, -1):
            older = self.path.with_name(f"app.log.{number}")
            if older.exists():
                older.rename(self.path.with_name(f"app.log.{number + 1}"))
        self.path.rename(self.path.with_name(name))
        self._begin()

    def reader(self, place: FilePlace | None = None) -> FileReader:
        return self.source.open(str(self.path), place)

    def begun(self, *, written: int, read_lines: int) -> tuple[list[str], FilePlace]:
        """Write lines and read some; return those, and the place where the reader has stopped."""
        self.write(written)
        reader = self.reader()
        return read(reader, read_lines), stopped(reader)


def read(reader: FileReader, lines: int = 10_000) -> list[str]:
    found: list[str] = []
    idle = 0
    while len(found) < lines and idle < 16:  # Empty files may be between.
        batch = reader.read_batch(lines - len(found))
        idle = 0 if batch else idle + 1
        found += batch.values if batch else []
    return found


def rest_of(reader: FileReader) -> list[str]:
    with closing(reader):
        return read(reader)


def stopped(reader: FileReader) -> FilePlace:
    place = reader.snapshot()
    reader.close()
    return place


def test_a_log_that_was_rotated_meanwhile_is_read_to_its_end_first(tmp_path: Path) -> None:
    """Its new name does not matter, nor what else is in the folder."""
    log = Log(tmp_path)
    log.write(5)
    (tmp_path / "other.log").write_text("something else\n" * 50)
    first = log.reader()
    before = read(first, 3)
    place = stopped(first)
    log.write(2)
    log.rotate("old")
    log.write(2)

    after = rest_of(log.reader(place))

    assert before + after == log.lines


def test_all_files_that_came_meanwhile_are_read_in_their_order(tmp_path: Path) -> None:
    log = Log(tmp_path)
    before, place = log.begun(written=3, read_lines=2)
    for _ in range(3):
        log.rotate()
        log.write(2)
    (tmp_path / "app.log.err").write_text("not of this log\n")

    after = rest_of(log.reader(place))

    assert before + after == log.lines


def test_a_reader_may_stop_in_a_file_that_was_put_aside(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(3)
    found: list[str] = []
    place: FilePlace | None = None
    for _ in range(4):
        reader = log.reader(place)
        found += read(reader, 2)
        place = stopped(reader)
        log.rotate()
        log.write(3)

    assert found + rest_of(log.reader(place)) == log.lines


@pytest.mark.parametrize("name", ["app.log.1", "app.log-20261122", "app.2026-11-22.log"])
def test_a_log_that_was_copied_and_cut_goes_on_in_its_copy(tmp_path: Path, name: str) -> None:
    log = Log(tmp_path)
    before, place = log.begun(written=5, read_lines=3)
    shutil.copy2(log.path, tmp_path / name)
    log.path.write_text("")
    log.write(2)

    assert before + rest_of(log.reader(place)) == log.lines


def test_a_copy_on_another_machine_is_the_same_file(tmp_path: Path) -> None:
    """It has another number there; more lines may have come."""
    log = Log(tmp_path)
    before, place = log.begun(written=3, read_lines=3)
    shutil.copy(log.path, tmp_path / "copy")
    (tmp_path / "copy").rename(log.path)
    log.write(2)

    assert before + rest_of(log.reader(place)) == log.lines


def test_a_log_of_which_nothing_was_read_is_found_again(tmp_path: Path) -> None:
    log = Log(tmp_path)
    first = log.reader()
    assert read(first) == []
    place = stopped(first)
    log.write(2)
    log.rotate()
    log.write(2)

    assert rest_of(log.reader(place)) == log.lines


@pytest.mark.parametrize("is_cut", [False, True])
def test_lines_that_are_gone_end_the_application(tmp_path: Path, *, is_cut: bool) -> None:
    log = Log(tmp_path)
    before, place = log.begun(written=5, read_lines=3)
    shutil.copy(log.path, tmp_path / "saved")
    if not is_cut:
        log.path.unlink()
    log.path.write_text("")
    log.write(9)

    with pytest.raises(
        OperatorError, match=r"up to byte 123, .* as .*app\.log\.1, or .*skip"
    ) as caught:
        rest_of(log.reader(place))
    (tmp_path / "saved").rename(tmp_path / "app.log.1")

    assert caught.value.is_final
    assert before + rest_of(log.reader(place)) == log.lines


def test_lines_that_are_gone_can_be_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log(tmp_path, on_lost="skip")
    _, place = log.begun(written=5, read_lines=3)
    log.path.unlink()
    log.path.touch()
    log.lines.clear()
    log.write(2)

    with caplog.at_level(logging.WARNING):
        assert rest_of(log.reader(place)) == log.lines
    assert "not the file that was read up to byte 123, which is gone" in caplog.text


def test_a_file_that_is_not_back_yet_is_waited_for(tmp_path: Path) -> None:
    log = Log(tmp_path)
    before, place = log.begun(written=5, read_lines=3)
    log.path.rename(tmp_path.with_suffix(".away"))

    again = log.reader(place)
    assert read(again) == []
    assert again.snapshot() == place
    tmp_path.with_suffix(".away").rename(log.path)

    assert before + rest_of(again) == log.lines


def test_copies_that_cannot_be_told_apart_are_named(tmp_path: Path) -> None:
    log = Log(tmp_path)
    _, place = log.begun(written=2, read_lines=2)
    for name in ("app.log.1", "app.log.2"):
        shutil.copy(log.path, tmp_path / name)
    log.path.write_text("")

    with pytest.raises(GearpyError, match=r"app\.log\.1, .*app\.log\.2 all have the 82 bytes"):
        rest_of(log.reader(place))


def test_a_packed_file_between_is_asked_for(tmp_path: Path) -> None:
    log = Log(tmp_path)
    _, place = log.begun(written=2, read_lines=2)
    log.rotate()
    log.write(2)
    log.path.rename(tmp_path / "app.log.1.gz")
    log.path.touch()

    with pytest.raises(GearpyError, match=r"app\.log\.1\.gz is packed, .*unpack it there"):
        rest_of(log.reader(place))


def test_files_that_a_running_reader_missed_are_read(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(2)
    reader = log.reader()
    found = read(reader)
    for _ in range(2):
        log.rotate()
        log.write(2)

    assert found + rest_of(reader) == log.lines


def test_places_without_a_mark_are_gone_on_from(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(3)
    assert rest_of(log.reader({"offset": 41, "watermark_ms": 0})) == log.lines[1:]


def test_another_policy_is_refused(tmp_path: Path) -> None:
    wrong: Any = "ignore"
    with pytest.raises(ConfigError, match=r"on_lost is 'ignore', must be \"fail\" or \"skip\""):
        Log(tmp_path, on_lost=wrong)


_STEPS: dict[str, Callable[[Log], object]] = {
    "write": lambda log: log.write(2),
    "rotate": Log.rotate,
}


@given(steps=st.lists(st.sampled_from([*_STEPS, "read", "restart"]), max_size=14))
def test_each_line_is_read_once_however_a_log_is_rotated(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Property: files are put aside and begun at any time, and readers end at any place."""
    log = Log(tmp_path_factory.mktemp("log"))
    reader = log.reader()
    found = read(reader)  # It was seen before anything happens to it.
    for step in steps:
        if step == "read":
            found += read(reader, 3)
        elif step == "restart":
            reader = log.reader(stopped(reader))
        else:
            _STEPS[step](log)

    assert found + rest_of(reader) == log.lines
