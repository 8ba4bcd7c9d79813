"""The coordinator log over a checkpoint store: on a disk, in memory, and when that fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gearpy.core.coordinator.log import CoordinatorMessage, draft
from gearpy.errors import ConfigError, LogBroken, LogDamaged, LogSuperseded
from gearpy.storage.checkpoints import (
    Checkpoints,
    FolderCheckpoints,
    MemoryCheckpoints,
    checkpoints_at,
)
from gearpy.storage.coordinator_log import CoordinatorLog, newest_launch, read_log, survey_log
from tests.storage.folder_build import real_folder

PREFIX = "k3f9a1c2/app3"


@pytest.fixture(params=["folder", "url", "memory", "kafka"])
def checkpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Checkpoints:
    if request.param == "folder":
        return checkpoints_at(tmp_path)
    if request.param == "url":
        return checkpoints_at(f"memory:/{tmp_path}")
    if request.param == "kafka":
        return FolderCheckpoints(real_folder("kafka", request))
    return MemoryCheckpoints()


def a_log(checkpoints: Checkpoints, launch: int | None = 1, **settings: Any) -> CoordinatorLog:
    given = {"source": "app master", "wall_ms": lambda: 7, "host": "one", "username": "ada"}
    return CoordinatorLog(checkpoints, PREFIX, launch=launch, **{**given, **settings})


def a_draft(key: str = "k", value: str = "v") -> CoordinatorMessage:
    return draft("set-config", key, {"value": value})


def keys(log: CoordinatorLog) -> list[str]:
    return [each.key for each in log.state.messages()]


def test_who_appends_is_this_user_on_this_machine() -> None:
    """Unless it is told otherwise."""
    log = a_log(MemoryCheckpoints(), host=None, username=None)

    log.append([a_draft()])

    (message,) = log.state.messages()
    assert message.host
    assert isinstance(message.username, str)


def test_a_later_launch_fences_an_earlier_one(checkpoints: Checkpoints) -> None:
    """Across processes: they share nothing but the store."""
    first, _ = a_log(checkpoints, 1), a_log(checkpoints, 2)

    for _ in range(2):
        with pytest.raises(LogSuperseded) as refusal:
            first.append([a_draft()])
    assert refusal.value.log == f"{PREFIX}/coordinator"
    assert "launch 1" in refusal.value.opening
    assert "launch 2" in refusal.value.newer
    with pytest.raises(LogSuperseded):
        a_log(checkpoints, 1)
    assert keys(a_log(checkpoints, None)) == []


def test_logs_of_applications_do_not_meet(checkpoints: Checkpoints) -> None:
    a_log(checkpoints).append([a_draft()])
    other = CoordinatorLog(
        checkpoints, f"{PREFIX}0", launch=1, source="app master", wall_ms=lambda: 0
    )
    checkpoints.save(f"{PREFIX}/epochs/region0/base-1", [b""])

    assert keys(other) == []
    assert keys(a_log(checkpoints, None)) == ["k"]


def test_the_newest_launch_is_known(checkpoints: Checkpoints) -> None:
    assert newest_launch(checkpoints, PREFIX) == 0
    a_log(checkpoints, 4)
    assert newest_launch(checkpoints, PREFIX) == 4


def test_values_that_cannot_be_stored_are_refused() -> None:
    log = a_log(MemoryCheckpoints())

    with pytest.raises(ConfigError, match=r"message set-config k holds '\(1, 2\)' \(tuple\)"):
        log.append([a_draft("a"), draft("set-config", "k", {"value": (1, 2)})])

    log.append([])
    assert keys(log) == []


def test_who_only_reads_does_not_append() -> None:
    """That would be our bug."""
    with pytest.raises(AssertionError, match="only to read"):
        a_log(MemoryCheckpoints(), None).append([])


class Failing(MemoryCheckpoints):
    def __init__(self) -> None:
        super().__init__()
        self.broken = ""

    def save(self, name: str, chunks: Any) -> Any:
        self._fail("save")
        return super().save(name, chunks)

    def names(self, prefix: str) -> list[str]:
        self._fail("names")
        return super().names(prefix)

    def open(self, location: str) -> Any:
        self._fail("open")
        return super().open(location)

    def drop(self, location: str) -> None:
        self._fail("drop")
        super().drop(location)

    def _fail(self, what: str) -> None:
        if what == self.broken:
            raise OSError(f"{what}: the bucket is away")


@pytest.mark.parametrize("broken", ["save", "names", "open"])
def test_a_store_that_cannot_be_used_is_told(broken: str) -> None:
    checkpoints = Failing()
    a_log(checkpoints).append([a_draft("a")])
    checkpoints.broken = broken

    with pytest.raises(LogBroken, match=f"{PREFIX}/coordinator: {broken}: the bucket is away"):
        a_log(checkpoints, 2)

    checkpoints.broken = ""
    assert keys(a_log(checkpoints, 2)) == ["a"]


@pytest.mark.parametrize("use", [newest_launch, read_log, survey_log])
def test_a_store_that_cannot_be_listed_is_told(use: Callable[..., object]) -> None:
    checkpoints = Failing()
    checkpoints.broken = "names"

    with pytest.raises(LogBroken, match="the bucket is away"):
        use(checkpoints, PREFIX)


def test_what_cannot_be_dropped_hurts_nobody() -> None:
    checkpoints = Failing()
    checkpoints.broken = "drop"
    log = a_log(checkpoints, segments_max=1)

    for key in "abc":
        log.append([a_draft(key)])

    assert keys(log) == keys(a_log(checkpoints, 2)) == ["a", "b", "c"]


def a_damaged_log(folder: Path) -> tuple[Checkpoints, list[str]]:
    """Return a store with a log of four files, of which the third is cut, and their names."""
    checkpoints = checkpoints_at(folder)
    log = a_log(checkpoints, nonce="00000000")
    for key in "abc":
        log.append([a_draft(key)])
    names = [each.name for each in survey_log(checkpoints, PREFIX)]
    path = folder / PREFIX / "coordinator" / names[2]
    path.write_bytes(path.read_bytes()[:-5])
    return checkpoints, names


def test_a_damaged_log_is_not_opened(tmp_path: Path) -> None:
    checkpoints, names = a_damaged_log(tmp_path)

    for open_it in (a_log, lambda it: a_log(it, None), lambda it: read_log(it, PREFIX)):
        with pytest.raises(LogDamaged, match=r"it ends within message 1 of 1; bring") as e:
            open_it(checkpoints)
        assert e.value.file == f"{PREFIX}/coordinator/{names[2]}"


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """The file before the last would be missed by nobody but us."""
    checkpoints, names = a_damaged_log(tmp_path)
    (tmp_path / PREFIX / "coordinator" / names[2]).unlink()

    with pytest.raises(LogDamaged, match=rf"{names[2]} is damaged .* and {names[3]} is"):
        a_log(checkpoints, 2)
    assert [each.counts for each in survey_log(checkpoints, PREFIX)] == [None, None, None]


def test_what_is_readable_of_a_damaged_log_is_shown(tmp_path: Path) -> None:
    checkpoints, names = a_damaged_log(tmp_path)

    reports = survey_log(checkpoints, PREFIX)

    assert [each.name for each in reports] == names
    assert [[it.key for it in each.messages] for each in reports] == [[], ["a"], [], ["c"]]
    assert [bool(each.problem) for each in reports] == [False, False, True, False]
    assert all(each.counts for each in reports)
