"""Logs are read by ids, from files that are set aside while they are read."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.host.log_reader import LogReader, log_folder_of, log_name_of
from gearpy.cluster.host.logs import LogFile, application_log
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId
from gearpy.messages.client import LogText, ReadLog, Refused


class Logs:
    def __init__(self, folder: Path, *, bytes_max: int = 1000) -> None:
        self.folder = folder
        self.reader = LogReader(folder, bytes_max=bytes_max)

    def path(self, executor: int = 0, launch: int = 1) -> Path:
        """Return the log file of an executor of application 3; makes its folder."""
        folder = log_folder_of(self.folder, 3)
        folder.mkdir(exist_ok=True)
        return folder / log_name_of(executor, launch)

    def set_aside(self, path: Path, *, files: int = 5) -> None:
        for number in range(files - 1, 0, -1):
            older = path.with_name(f"{path.name}.{number}")
            if older.exists():
                older.replace(path.with_name(f"{path.name}.{number + 1}"))
        path.replace(path.with_name(f"{path.name}.1"))

    def ask(
        self, executor: int = 0, *, lines: int = 10, launch: int = 0, after: str = ""
    ) -> LogText | Refused:
        return self.reader.answer(
            ReadLog(
                app_id=AppId(3),
                executor_id=ExecutorId(executor),
                lines=lines,
                launch=launch,
                after=after,
            )
        )

    def read(
        self, executor: int = 0, *, lines: int = 10, launch: int = 0, after: str = ""
    ) -> LogText:
        answer = self.ask(executor, lines=lines, launch=launch, after=after)
        assert isinstance(answer, LogText), answer
        return answer

    def refusal(self, executor: int = 0, *, launch: int = 0) -> str:
        answer = self.ask(executor, launch=launch)
        assert isinstance(answer, Refused), answer
        return answer.reason


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def test_the_newest_launch_is_read_unless_another_is_named(logs: Logs) -> None:
    for launch in (2, 10, 9):
        logs.path(launch=launch).write_text(f"{launch}\n")

    assert (logs.read().text, logs.read().launch) == ("10\n", 10)
    assert logs.read(launch=2).source == "app-3/executor-0-launch-2.log"


def test_what_is_not_there_is_refused_with_what_is(logs: Logs) -> None:
    assert logs.refusal(7) == "no log of executor 7 of application 3; logs there: none"
    logs.path(MASTER_EXECUTOR).write_text("")
    logs.path(2).write_text("")

    assert logs.refusal(7).endswith("; logs there: the app master, executor 2")
    assert logs.refusal(2, launch=5).startswith("no log of launch 5 of executor 2 of application 3")


def test_an_answer_is_bounded_and_begins_with_a_whole_line(tmp_path: Path) -> None:
    logs = Logs(tmp_path, bytes_max=105)
    logs.path().write_text("".join(f"line {number:04}\n" for number in range(1_000)))

    lines = logs.read(lines=1_000).text.splitlines()

    assert lines == [f"line {number:04}" for number in range(990, 1_000)]


def test_one_endless_line_is_cut(tmp_path: Path) -> None:
    logs = Logs(tmp_path, bytes_max=100)
    logs.path().write_text("x" * 1_000)

    assert logs.read().text == "x" * 100


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_not_read(kind: str, logs: Logs, tmp_path: Path) -> None:
    """An executor may write into its folder; that must not give it the worker's files."""
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    if kind == "link":
        logs.path().symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(logs.path())
    else:
        logs.path().mkdir()

    assert "no log of executor 0" in logs.refusal()


def test_after_a_position_comes_what_was_written_since(logs: Logs) -> None:
    logs.path().write_text("one\n")
    first = logs.read()
    assert logs.read(after=first.position).text == ""
    with logs.path().open("a") as log:
        log.write("one\n")

    second = logs.read(after=first.position)

    assert second.text == "one\n"
    assert logs.read(after=second.position).text == ""


def test_a_position_is_found_in_a_file_that_was_set_aside(logs: Logs) -> None:
    logs.path().write_text("one\n")
    position = logs.read().position
    with logs.path().open("a") as log:
        log.write("two\n")
    logs.set_aside(logs.path())
    logs.path().write_text("three\n")

    assert logs.read(after=position).text == "two\nthree\n"


def test_what_a_worker_writes_is_what_is_read(logs: Logs) -> None:
    log_folder_of(logs.folder, 3).mkdir()
    for executor in (-1, 0):
        path = logs.folder / application_log(AppId(3), ExecutorId(executor), 2)
        log = LogFile(path, bytes_max=20, files=3)
        for number in range(6):
            log.write(f"{executor} {number}\n".encode())
        log.close()

    assert logs.read(0, lines=4).text == "0 2\n0 3\n0 4\n0 5\n"
    assert logs.read(-1, lines=4).text == "-1 2\n-1 3\n-1 4\n-1 5\n"
    assert logs.read(0).source == application_log(AppId(3), ExecutorId(0), 2)


@given(
    pieces=st.lists(st.text(alphabet="ab\n€", max_size=40), max_size=12),
    set_aside_before=st.sets(st.integers(0, 11), max_size=5),
    asked_after=st.sets(st.integers(0, 11)),
    bytes_max=st.integers(4, 64),
)
def test_who_follows_a_log_reads_all_of_it(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[str],
    set_aside_before: set[int],
    asked_after: set[int],
    bytes_max: int,
) -> None:
    """Nothing is missing and nothing comes twice, however it was written and set aside."""
    logs = Logs(tmp_path_factory.mktemp("logs"), bytes_max=bytes_max)
    logs.path().write_text("")
    position, text = logs.read().position, ""

    for at, piece in enumerate(pieces):
        if at in set_aside_before:
            logs.set_aside(logs.path(), files=10)
        with logs.path().open("a", newline="") as log:
            log.write(piece)
        if at in asked_after:
            read = logs.read(after=position)
            position, text = read.position, text + read.text
    while (read := logs.read(after=position)).text:
        position, text = read.position, text + read.text

    assert text == "".join(pieces)
