"""Logs: what was appended is there after any crash, and damage is never taken for data."""

import errno
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import ConfigError, LogBroken, LogDamaged
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.storage.log import FileLog, Log, MemoryLog, Replay, mark_of

#: Opens the same log again, as the next process does.
Opener: TypeAlias = Callable[[], Log]


@pytest.fixture(params=["folder", "memory"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    if request.param == "folder":
        return lambda: FileLog(tmp_path / "log")
    folder = MemoryFolder()
    return lambda: MemoryLog(folder)


# -- the contract ----------------------------------------------------------------------------


def test_appending_nothing_changes_nothing(reopened: Opener) -> None:
    log = reopened()
    log.append([b"one"])

    assert log.append([]) == 1
    assert log.replay() == Replay(None, (b"one",))


def test_newest_snapshot_counts(reopened: Opener) -> None:
    log = reopened()
    for state in (b"first", b"second"):
        log.snapshot(state)
    assert log.replay() == Replay(b"second", ())

    log.append([b"one"])
    log.snapshot(b"")
    log.close()

    assert reopened().replay() == Replay(b"", ())


def test_a_log_is_open_once(reopened: Opener) -> None:
    """Two masters would write over each other; the folder is free again after the close."""
    log = reopened()
    with pytest.raises(ConfigError, match="is in use by"):
        reopened()

    log.close()
    log.close()
    reopened().close()


def test_a_closed_log_takes_nothing(reopened: Opener) -> None:
    log = reopened()
    log.close()

    with pytest.raises(LogBroken, match="it is closed"):
        log.append([b"one"])
    with pytest.raises(LogBroken, match="it is closed"):
        log.snapshot(b"state")


# -- files -----------------------------------------------------------------------------------


def test_lock_names_folder_and_process(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "log")
    (tmp_path / "log" / "lock").write_text("4711\n")

    with pytest.raises(ConfigError, match=rf"folder {tmp_path}/log is in use by process 4711"):
        FileLog(tmp_path / "log")
    log.close()


def test_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "a" / "log")
    log.append([b"one"])
    log.close()

    assert (tmp_path / "a" / "log").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "a" / "log").iterdir())


# -- damage ----------------------------------------------------------------------------------


def filled(folder: Path) -> Path:
    log = FileLog(folder)
    log.append([b"zero"])
    log.snapshot(b"state" * 3)
    for record in (b"one", b"two" * 5, b"three"):
        log.append([record])
    log.close()
    return folder / f"segment-{1:020d}"


RECORDS = (b"one", b"two" * 5, b"three")


def frame_ends(folder: Path) -> list[int]:
    """Return where the header and each append of `filled` end."""
    log, ends = FileLog(folder / "measured"), list[int]()
    segment = folder / "measured" / f"segment-{0:020d}"
    ends.append(segment.stat().st_size)
    for record in RECORDS:
        log.append([record])
        ends.append(segment.stat().st_size)
    log.close()
    return ends


def forget_the_last_mark(segment: Path) -> None:
    """Leave a head as a crash does before the last append is acknowledged."""
    head = segment.with_name(segment.name.replace("segment", "head"))
    marks = head.read_bytes()
    head.write_bytes(marks[: len(marks) - len(mark_of(0, 0))])


def test_an_append_that_a_crash_cut_off_at_any_byte_is_torn(tmp_path: Path) -> None:
    ends, whole = frame_ends(tmp_path), filled(tmp_path / "whole").read_bytes()
    assert len(whole) == ends[-1]

    for size in range(ends[-2], len(whole) + 1):
        segment = filled(tmp_path / f"{size}")
        segment.write_bytes(segment.read_bytes()[:size])
        forget_the_last_mark(segment)
        log = FileLog(segment.parent)
        kept = RECORDS if size == len(whole) else RECORDS[:-1]
        assert log.replay() == Replay(b"state" * 3, kept)
        assert segment.stat().st_size == ends[len(kept)]
        assert log.append([b"new"]) == 1 + len(kept) + 1
        log.close()
        again = FileLog(segment.parent)
        assert again.replay().records == (*kept, b"new")
        again.close()


def test_an_acknowledged_end_that_is_cut_is_damage(tmp_path: Path) -> None:
    ends, segment = frame_ends(tmp_path), filled(tmp_path / "log")
    whole = segment.read_bytes()

    for size in range(len(whole)):
        segment.write_bytes(whole[:size])
        with pytest.raises(LogDamaged) as damage:
            FileLog(tmp_path / "log")
        assert damage.value.file == str(segment)
        assert damage.value.offset == max((end for end in ends if end <= size), default=size)
        assert segment.read_bytes() == whole[:size]

    segment.write_bytes(whole)
    assert FileLog(tmp_path / "log").replay().records == RECORDS


def test_a_damaged_end_can_be_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    segment = filled(tmp_path)
    segment.write_bytes(segment.read_bytes()[:-1])
    head = tmp_path / f"head-{1:020d}"
    with pytest.raises(LogDamaged, match=f"or, to go on without .* remove {head}$"):
        FileLog(tmp_path)
    head.unlink()

    with caplog.at_level(logging.WARNING):
        log = FileLog(tmp_path)

    assert log.replay().records == RECORDS[:-1]
    assert f"{head} does not say how much of {segment.name} was acknowledged" in caplog.text
    assert f"{segment}: cut off" in caplog.text


def test_a_flipped_bit_anywhere_is_never_data(tmp_path: Path) -> None:
    ends = frame_ends(tmp_path)
    segment = filled(tmp_path / "log")
    whole, head = segment.read_bytes(), segment.with_name(f"head-{1:020d}")

    for at in range(len(whole)):
        segment.write_bytes(flipped(whole, at))
        with pytest.raises(LogDamaged) as damage:
            FileLog(tmp_path / "log")
        assert damage.value.file == str(segment)
        assert damage.value.offset <= at
    segment.write_bytes(whole)
    marks = head.read_bytes()
    assert len(marks) == len(ends) * len(mark_of(0, 0))
    for at in range(len(marks)):
        head.write_bytes(flipped(marks, at))
        log = FileLog(tmp_path / "log")
        assert log.replay().records == RECORDS
        log.close()


def flipped(data: bytes, at: int) -> bytes:
    """Return the same with a bit changed, each time another one of the byte."""
    return bytes([*data[:at], data[at] ^ 1 << at % 8, *data[at + 1 :]])


@pytest.mark.parametrize("gone", [["segment"], ["segment", "snapshot"]])
def test_a_log_that_lost_its_newest_files_is_not_a_new_one(tmp_path: Path, gone: list[str]) -> None:
    filled(tmp_path)
    for kind in gone:
        (tmp_path / f"{kind}-{1:020d}").unlink()

    with pytest.raises(LogDamaged, match=f"segment-{1:020d} is damaged .* the file is missing"):
        FileLog(tmp_path)


def test_a_snapshot_that_is_not_whole_is_damage(tmp_path: Path) -> None:
    filled(tmp_path)
    snapshot = tmp_path / f"snapshot-{1:020d}"
    whole = snapshot.read_bytes()
    others = [bytes([*whole[:at], whole[at] ^ 1, *whole[at + 1 :]]) for at in range(len(whole))]

    for data in [*(whole[:size] for size in range(len(whole))), whole + b"x", *others]:
        snapshot.write_bytes(data)
        with pytest.raises(LogDamaged, match=f"snapshot-{1:020d} is damaged at byte"):
            FileLog(tmp_path)

    snapshot.write_bytes(whole)
    assert FileLog(tmp_path).replay() == Replay(b"state" * 3, RECORDS)


@pytest.mark.parametrize("kind", ["segment", "snapshot"])
def test_a_missing_file_is_damage(tmp_path: Path, kind: str) -> None:
    filled(tmp_path)
    (tmp_path / f"{kind}-{1:020d}").unlink()

    with pytest.raises(LogDamaged, match=f"{kind}-{1:020d} is damaged at byte 0: .* missing"):
        FileLog(tmp_path)


def test_a_record_cannot_look_like_a_frame(tmp_path: Path) -> None:
    segment = filled(tmp_path / "log")
    log = FileLog(tmp_path / "other")
    log.append([segment.read_bytes()])
    log.close()
    other = tmp_path / "other" / f"segment-{0:020d}"
    other.write_bytes(other.read_bytes()[:-1])
    forget_the_last_mark(other)

    log = FileLog(tmp_path / "other")

    assert log.replay() == Replay(None, ())
    log.close()


# -- crashes ---------------------------------------------------------------------------------


class Crash(BaseException):
    """The power is gone."""


def script(log: Log, acknowledged: list[bytes], asked: list[bytes]) -> None:
    """Append and take snapshots of all records; note what was promised."""
    for number in range(6):
        records = [b"%d.%d" % (number, each) for each in range(number % 3 + 1)]
        asked += records
        log.append(records)
        acknowledged += records
        if number % 2:
            log.snapshot(b",".join(acknowledged))


class StepsUntilACrash:
    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __call__(self, _: str) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Crash


def crash_at(step: int, rng: random.Random | None) -> bool:
    """Lose power at a step; check what is there afterwards. False: there was no such step."""
    folder = MemoryFolder(StepsUntilACrash(step))
    acknowledged, asked = list[bytes](), list[bytes]()
    try:
        script(MemoryLog(folder), acknowledged, asked)
    except Crash:
        folder.on_step = lambda _: None
        folder.crash(rng)
        check(MemoryLog(folder), acknowledged, asked)
        return True
    return False


def check(log: MemoryLog, acknowledged: list[bytes], asked: list[bytes]) -> None:
    """All that was promised is there, the rest whole or not at all; and the log goes on."""
    found = records_of(log)
    assert found in (acknowledged, asked)
    log.append([b"new"])
    log = log.crash()
    assert records_of(log) == [*found, b"new"]
    log.snapshot(b",".join([*found, b"new"]))
    log.append([b"newer"])
    assert records_of(log.crash()) == [*found, b"new", b"newer"]


def records_of(log: Log) -> list[bytes]:
    snapshot, records = log.replay()
    return [*(snapshot.split(b",") if snapshot else []), *records]


def test_a_crash_at_any_step_loses_nothing_that_was_promised() -> None:
    steps = 0
    while crash_at(steps, None):
        steps += 1
    assert steps > 40


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_that_keeps_some_of_what_was_not_synced_is_harmless(seed: int) -> None:
    steps = 0
    while crash_at(steps, random.Random(f"{seed}.{steps}")):
        steps += 1


def test_a_crash_during_recovery_is_harmless() -> None:
    """Opening changes files, too: it removes, cuts off, and begins a segment."""
    for first in range(120):
        for second in range(8):
            crash_twice(first, second)


def crash_twice(first: int, second: int) -> None:
    rng = random.Random(f"{first}.{second}")
    left = StepsUntilACrash(first)
    folder = MemoryFolder(left)
    acknowledged, asked = list[bytes](), list[bytes]()
    try:
        script(MemoryLog(folder), acknowledged, asked)
    except Crash:
        folder.crash(rng)
        left.steps = second
        try:
            MemoryLog(folder)
        except Crash:
            folder.crash(rng)
        folder.on_step = lambda _: None
        folder.crash(rng)
        check(MemoryLog(folder), acknowledged, asked)


def test_what_a_process_found_survives_a_power_cut() -> None:
    """A process was killed at some step; the next one relies on what it sees, synced or not."""
    for step in range(120):
        kill_then_lose_power(step, is_used=False)
        kill_then_lose_power(step, is_used=True)


def kill_then_lose_power(step: int, *, is_used: bool) -> None:
    """Kill a process at a step, have another go on, lose power, and look."""
    folder = MemoryFolder(StepsUntilACrash(step))
    acknowledged, asked = list[bytes](), list[bytes]()
    try:
        script(MemoryLog(folder), acknowledged, asked)
    except Crash:
        folder.on_step = lambda _: None
        folder.unlock()  # The process is gone, all that it has written can be seen.
        log = MemoryLog(folder)
        found = records_of(log)
        assert found in (acknowledged, asked)
        if is_used:
            log.append([b"new"])
            found.append(b"new")
        assert records_of(log.crash()) == found


def test_an_append_costs_one_sync() -> None:
    steps = list[str]()
    folder = MemoryFolder(steps.append)
    log = MemoryLog(folder)
    steps.clear()

    for _ in range(99):
        log.append([b"one", b"two"])
    assert steps.count("sync") == 99
    log.append([b"one"])
    assert steps.count("sync") == 99 + 2
    log.append([b"one"])
    assert steps.count("sync") == 99 + 3


def test_an_acknowledged_end_that_is_cut_after_a_kill_is_damage(tmp_path: Path) -> None:
    """A process that is killed syncs no marks; the system has them."""
    log = FileLog(tmp_path)
    log.append([b"one"])
    log.append([b"two"])
    log.abandon()
    segment = tmp_path / f"segment-{0:020d}"
    segment.write_bytes(segment.read_bytes()[:-1])

    with pytest.raises(LogDamaged, match="were acknowledged"):
        FileLog(tmp_path)


@pytest.mark.parametrize("failing", ["write", "sync", "move", "sync_names", "remove"])
def test_after_an_error_the_log_takes_nothing_more(failing: str) -> None:
    """After a failed fsync nobody knows what is on folder; what was promised before is there."""
    folder = MemoryFolder()
    log = MemoryLog(folder)
    log.append([b"one"])

    def fail(step: str) -> None:
        if step == failing:
            raise OSError(errno.EIO, "Input/output error")

    folder.on_step = fail
    with pytest.raises(LogBroken, match="Input/output error"):
        log.snapshot(b"one")
    folder.on_step = lambda _: None

    with pytest.raises(LogBroken, match="takes nothing more"):
        log.append([b"two"])
    assert records_of(log.crash()) == [b"one"]


@given(
    st.lists(
        st.one_of(
            st.lists(st.binary(max_size=20), min_size=1, max_size=3),
            st.just("snapshot"),
            st.just("crash"),
        ),
        max_size=20,
    )
)
def test_a_log_is_a_list_that_survives(steps: list[list[bytes] | str]) -> None:
    log, taken, since = MemoryLog(), list[bytes](), list[bytes]()
    for step in steps:
        if isinstance(step, list):
            since += step
            assert log.append(step) == len(taken) + len(since)
        elif step == "snapshot":
            taken, since = taken + since, []
            log.snapshot(repr(taken).encode())
        else:
            log = log.crash()
        assert log.replay().records == tuple(since)
        assert log.replay().snapshot in (None, repr(taken).encode())


# -- disks -----------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(OSError, match="file"):
        LocalFolder(tmp_path / "file" / "log").make()
