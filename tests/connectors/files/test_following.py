"""Files that are followed: each is found once, also those that come while it runs."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.connectors.files.following import FollowedFile, FollowedFiles
from gearpy.connectors.files.lines import Decoder
from gearpy.connectors.files.lines_files import FileSource
from gearpy.errors import ConfigError
from gearpy.messages.data import Batch
from gearpy.task.sources.share import Share
from tests.connectors.failing import Failing
from tests.eventually import eventually

MINUTE_MS = 60_000


class Opened(FollowedFile):
    def __init__(self, place: Any) -> None:
        self.place = place

    def read_batch(self, max_records: int) -> Batch | None:
        return None

    def snapshot(self) -> Any:
        return self.place

    def let_end(self) -> None:
        self.finished = True


class Folder:
    def __init__(self, *there: str, share: Share | None = None) -> None:
        self.there = list(there)
        self.now_ms = 0
        self.looks = 0
        self.finder = FollowedFiles(
            "*.txt",
            self._look,
            lambda _, place: Opened(place),
            share or Share(0, 1),
            poll_ms=1000,
            now_ms=lambda: self.now_ms,
        )

    def _look(self) -> list[str]:
        self.looks += 1
        return self.there

    def found(self, *, after_ms: int = 1000) -> list[str]:
        self.now_ms += after_ms
        found = self.finder.find()
        for name, place in found.items():
            self.finder.open(name, place)
        return list(found)


def test_files_are_found_as_they_come() -> None:
    """Each once, at an interval; those of a snapshot are not found again."""
    folder = Folder("a", "b")
    folder.finder.open("b", {"offset": 3})

    assert folder.found() == ["a"]
    folder.there.append("c")
    assert folder.found(after_ms=999) == []
    assert folder.found(after_ms=1) == ["c"]
    assert folder.found() == []
    assert folder.looks == 3


def test_a_clock_that_was_set_back_stops_no_look() -> None:
    folder = Folder()
    folder.found(after_ms=MINUTE_MS)
    folder.there.append("a")
    assert folder.found(after_ms=-MINUTE_MS) == ["a"]


def test_a_file_that_was_removed_is_done_with_and_may_come_back() -> None:
    folder = Folder("a", "b")
    folder.found()
    folder.there.remove("a")
    for _ in range(60):
        assert folder.found() == []
    folder.there.append("a")
    assert folder.found() == []  # It has come back in time.
    folder.there.remove("a")
    folder.found()
    folder.found(after_ms=MINUTE_MS)
    folder.there.append("a")
    assert folder.found() == ["a"]


def test_a_folder_that_is_away_ends_no_file() -> None:
    folder = Folder("a")
    folder.found()
    folder.there.clear()
    for _ in range(3):
        folder.found(after_ms=MINUTE_MS)
    folder.there.append("a")
    assert folder.found() == []


def test_what_is_missing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    folder = Folder()
    assert not folder.finder.has_looked
    folder.found()
    assert (folder.finder.has_looked, folder.finder.finished) == (True, False)
    assert folder.finder.waits_for == "a file that fits *.txt"
    folder.found()
    assert caplog.messages.count("files: waits for a file that fits *.txt") == 1
    folder.there.append("a")
    folder.found()
    assert folder.finder.waits_for == ""


def test_each_file_is_read_by_one_task() -> None:
    names = [f"{number}.txt" for number in range(20)]
    found = [name for at in range(3) for name in Folder(*names, share=Share(at, 3)).found()]
    assert sorted(found) == sorted(names)


def test_a_removed_file_is_read_to_its_end(tmp_path: Path) -> None:
    """Whoever still writes to it may have added lines since."""
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    source = FileSource(
        [tmp_path / "*.txt"],
        timestamp=None,
        bound_ms=0,
        follow=True,
        decoder=Decoder("utf-8", "strict"),
    )
    reader = source.open(str(path), None)
    assert (reader.read_batch(10) or Batch([], [])).values == ["one"]
    with path.open("a") as file:
        path.unlink()
        file.write("two\nhalf")
    before = reader.finished
    reader.let_end()

    assert (reader.read_batch(10) or Batch([], [])).values == ["two"]
    assert (before, reader.finished) == (False, True)
    reader.close()
    gone = source.open(str(path), {"offset": 4, "watermark_ms": 0})  # After a restart.
    assert (gone.read_batch(10), gone.idle) == (None, True)
    gone.close()


def test_a_folder_is_no_pattern(tmp_path: Path) -> None:
    """Told before anything runs; a file that is not there yet is waited for."""
    with pytest.raises(ConfigError, match=r"is a folder: write .*\*"):
        gp.files(tmp_path, follow=True).partitions()
    assert gp.files(tmp_path / "not-yet.txt", follow=True).partitions() == ()


def numbers_in(folder: Path) -> Iterator[int]:
    for path in folder.glob("*.jsonl"):
        yield from (json.loads(line)["n"] for line in path.read_text().splitlines())


@pytest.mark.parametrize("parallelism", [1, 3])
def test_files_that_come_while_it_runs_are_read_once(tmp_path: Path, parallelism: int) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    step = Failing(3, 12, 25)
    app = gp.StreamApp("followed", parallelism=parallelism)
    lines = app.read(gp.files(logs / "*.txt", follow=True, poll="20ms"))
    lines.map(int).map(step).map(lambda n: {"n": n}).write(gp.jsonl_folder(out))
    config = {"checkpoint.interval-ms": "50", "application.backoff-base-ms": "1"}

    def shown(count: int) -> bool:
        return sum(1 for _ in numbers_in(out)) >= count

    with LocalCluster(load(env={})) as cluster:
        running = cluster.client.submit("followed", embed(app.build()), config=config)
        for number in range(3):  # The first comes to an application that waits for it.
            path = logs / f"{number}.txt"
            path.write_text("".join(f"{n}\n" for n in range(10 * number, 10 * number + 5)))
            eventually(partial(shown, 10 * number + 5), "lines")
            with path.open("a") as file:
                file.writelines(f"{n}\n" for n in range(10 * number + 5, 10 * number + 10))
            eventually(partial(shown, 10 * number + 10), "more lines")
        running.drain()
        running.wait(60)

    assert step.left == set()
    assert Counter(numbers_in(out)) == Counter(range(30))
