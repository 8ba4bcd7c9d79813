"""Log files: lines stay whole, sizes stay bounded, both forms can be read."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gearpy.cluster.host.audit import audit_log
from gearpy.cluster.host.folders import Claim, WorkFolders, private_folder
from gearpy.cluster.host.log_home import LogHome
from gearpy.cluster.host.log_reader import LogReader
from gearpy.cluster.host.logs import (
    LogFile,
    LogHandler,
    LogSettings,
    StreamLog,
    application_log,
    formatter,
    log_to,
)
from gearpy.config.schema import Config
from gearpy.errors import ConfigError
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId
from gearpy.messages.client import LogText, ReadLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


def a_log(path: Path, *, bytes_max: int = 100, files: int = 2) -> LogFile:
    return LogFile(path, bytes_max=bytes_max, files=files)


def contents(path: Path) -> list[bytes]:
    found = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, 9))]
    return [each.read_bytes() for each in found if each.exists()]


# -- files ---------------------------------------------------------------------------------------


def test_much_at_once_is_spread_over_files(path: Path) -> None:
    """No file is larger than allowed; lines stay whole where they can."""
    log = a_log(path, bytes_max=10, files=9)

    log.write(b"123\n456\n789\n" + b"x" * 15 + b"\n")

    assert b"".join(reversed(contents(path))) == b"123\n456\n789\n" + b"x" * 15 + b"\n"
    assert all(len(each) <= 10 for each in contents(path))
    assert contents(path)[-1] == b"123\n456\n"


def test_only_its_user_may_read_a_log(tmp_path: Path, configured: Callable[..., Config]) -> None:
    settings = LogSettings.of(configured(log__folder=tmp_path / "deep" / "logs"))

    log = settings.open("app-1/executor-0-launch-1.log")
    log.write(b"x\n")

    assert log.path.stat().st_mode & 0o777 == 0o600
    assert log.path.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "deep").stat().st_mode & 0o777 == 0o700


def test_a_log_that_cannot_be_written_ends_nobody(tmp_path: Path) -> None:
    log = a_log(tmp_path / "gone" / "a.log")
    log.write(b"12345\n")

    (tmp_path / "gone").mkdir()
    log.write(b"67\n")

    assert contents(tmp_path / "gone" / "a.log") == [b"67\n"]


def test_a_link_in_the_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    """Else who may write the folder could have any file of ours written."""
    target = tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / "a.log").symlink_to(target)

    a_log(tmp_path / "a.log").write(b"x\n")

    assert target.read_bytes() == b""


def test_names_are_those_that_the_reader_looks_for(
    tmp_path: Path, configured: Callable[..., Config]
) -> None:
    settings = LogSettings.of(configured(log__folder=tmp_path))
    settings.open(application_log(AppId(1), MASTER_EXECUTOR, 2)).write(b"hello\n")

    question = ReadLog(app_id=AppId(1), executor_id=MASTER_EXECUTOR, lines=1)
    answer = LogReader(tmp_path).answer(question)

    assert isinstance(answer, LogText)
    assert (answer.text, answer.launch) == ("hello\n", 2)
    assert application_log(AppId(1), ExecutorId(3), 4) == "app-1/executor-3-launch-4.log"


def test_logs_of_an_application_with_the_same_number_are_set_aside(
    tmp_path: Path, configured: Callable[..., Config]
) -> None:
    """A local cluster numbers from 1 again; what the last one wrote is not news of this one."""
    settings = LogSettings.of(configured(log__folder=tmp_path))

    for text in (b"first\n", b"second\n", b"third\n"):
        settings.set_aside(AppId(1))
        settings.open(application_log(AppId(1), ExecutorId(0), 1)).write(text)

    name = "executor-0-launch-1.log"
    assert (tmp_path / "app-1" / name).read_text() == "third\n"
    assert (tmp_path / "app-1.old" / name).read_text() == "second\n"


def test_clusters_that_share_a_folder_keep_their_logs_apart(
    tmp_path: Path, configured: Callable[..., Config]
) -> None:
    """Both have an application 1, and workers that are there at the same time."""
    settings = LogSettings.of(configured(log__folder=tmp_path))
    first, same, other = (LogHome(settings) for _ in range(3))

    assert first.of("one").folder == same.of("one").folder == tmp_path
    for place, cluster in ((first, "one"), (other, "two")):
        log = place.of(cluster).open(application_log(AppId(1), ExecutorId(0), 1))
        log.write(cluster.encode())
        log.close()
    question = ReadLog(app_id=AppId(1), executor_id=ExecutorId(0), lines=9)
    for place, cluster in ((first, "one"), (same, "one"), (other, "two")):
        answer = place.answer(question)
        assert isinstance(answer, LogText)
        assert answer.text == cluster

    first.close()
    assert LogHome(settings).of("three").folder == tmp_path / "three"
    same.close()
    assert LogHome(settings).of("three").folder == tmp_path


# -- output of processes -------------------------------------------------------------------------


def test_a_line_without_end_is_cut(path: Path) -> None:
    log = a_log(path, bytes_max=1 << 20)
    out = StreamLog(log, "stdout", "text")

    for _ in range(3):
        out.feed(b"x" * 40_000)
    out.end()

    assert [len(line) for line in contents(path)[0].splitlines()] == [80_000, 40_000]


def test_what_is_printed_becomes_json_and_json_stays(path: Path) -> None:
    log = a_log(path, bytes_max=1 << 20)
    out = StreamLog(log, "stdout", "json")

    out.feed(b'{"message": "a"}\nplain "text"\n{broken\n[1]\n\xff\n' + b'{"a":' * 5000 + b"\n")

    objects = [json.loads(line) for line in contents(path)[0].splitlines()]
    assert len(objects) == 6
    assert objects[0] == {"message": "a"}
    assert [each["message"] for each in objects[1:5]] == [
        'plain "text"',
        "{broken",
        "[1]",
        "\ufffd",
    ]
    assert objects[1]["logger"] == "stdout"
    assert objects[1]["time"].endswith("Z")


# -- records -------------------------------------------------------------------------------------


def a_record(message: str, *args: object, error: BaseException | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("gearpy.x", logging.WARNING, "f", 1, message, args, info)
    record.created = 1_700_000_000.25
    return record


def test_text_is_a_line_for_people() -> None:
    line = formatter("text").format(a_record("lost %s", "a"))

    assert line == "2023-11-14T22:13:20.250Z WARNING gearpy.x: lost a"


def test_a_message_cannot_look_like_another_line() -> None:
    """It may hold what users, or strangers, have sent; a traceback has its lines."""
    line = formatter("text").format(a_record("lost %s", "a\r\nb", error=ValueError("why")))

    assert line.splitlines()[0].endswith("lost a\\r\\nb")
    assert line.splitlines()[-1] == "ValueError: why"


def test_json_is_an_object_for_programs() -> None:
    fields = json.loads(formatter("json").format(a_record("lost\n%s", "a", error=ValueError("x"))))

    assert fields.pop("traceback").endswith("ValueError: x")
    assert fields == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "gearpy.x",
        "thread": "MainThread",
        "message": "lost\na",
    }


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    level, handlers = logger.level, list(logger.handlers)
    yield logger
    logger.setLevel(level)
    logger.handlers = handlers


def test_the_level_of_the_configuration_counts(
    path: Path, configured: Callable[..., Config], root: logging.Logger
) -> None:
    handler = LogHandler(a_log(path))
    log_to(handler, configured(log__level="warning").log)

    logging.getLogger("gearpy.x").info("small")
    logging.getLogger("user").warning("large")
    handler.close()

    assert [line.split(b" ", 1)[1] for line in contents(path)[0].splitlines()] == [
        b"WARNING user: large"
    ]


def test_a_wrong_log_call_harms_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = LogHandler(a_log(path))
    handler.setFormatter(formatter("text"))

    handler.emit(a_record("%d", "no number"))

    assert contents(path) == []
    assert "no number" in capsys.readouterr().err
    assert sys.stderr is not None


# -- folders -------------------------------------------------------------------------------------


def test_daemons_on_one_machine_have_numbers_of_their_own(tmp_path: Path) -> None:
    """The lowest that is free, so that few files are used for long."""
    first, second = Claim(tmp_path, "worker"), Claim(tmp_path, "worker")
    other = Claim(tmp_path, "other")
    first.release()

    third = Claim(tmp_path, "worker")

    assert [each.number for each in (first, second, third, other)] == [0, 1, 0, 0]
    for each in (second, third, other):
        each.release()


def test_a_folder_that_cannot_be_made_names_its_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=r"log\.folder .*/file/logs cannot be made: "):
        private_folder(tmp_path / "file" / "logs", "log.folder")


def test_a_log_that_cannot_be_written_is_told_at_the_start(
    tmp_path: Path, configured: Callable[..., Config]
) -> None:
    """By whoever begins one: else all that happens would be lost without a word."""
    config = configured(log__folder=tmp_path / "log")
    (tmp_path / "log" / "audit.log").mkdir(parents=True)  # As one that is read-only, also for root.

    with (
        pytest.raises(ConfigError, match=r"log.folder .*/log cannot be used: audit.log cannot be"),
        audit_log(config),
    ):
        pass


def test_a_folder_in_use_is_not_removed(tmp_path: Path) -> None:
    """However many have failed since."""
    folders = WorkFolders(tmp_path / "work")
    used = folders.make("used")

    for number in range(20):
        folders.release(folders.make(f"failed-{number}"), failed=True)
    folders.release(folders.make("well"), failed=False)

    names = sorted(each.name.rpartition("-")[0] for each in (tmp_path / "work").iterdir())
    assert len(names) == 11
    assert "used" in names
    assert "well" not in names
    assert used.is_dir()


def test_a_folder_with_files_is_kept_for_a_while(tmp_path: Path) -> None:
    folders = WorkFolders(tmp_path / "work")
    made = [folders.make(f"well-{number}") for number in range(12)]

    for folder in made:
        (folder / "out.txt").write_text("")
        folders.release(folder, failed=False)

    assert sum(each.exists() for each in made) == 10
