"""Epochs of one attempt: begun, complete, given up, committed; and what is stored of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.epoch.epochs import (
    CommitRound,
    EpochCoordinator,
    Manifest,
    decode_manifest,
    encode_manifest,
    merged,
)
from gearpy.core.epoch.pace import EpochPace
from gearpy.errors import ProtocolError
from gearpy.ids import ExecutorId, TaskId
from gearpy.messages.app import EpochStored, SnapshotFile, TaskOffsets

INTERVAL_MS, TIMEOUT_MS = 100, 5000
ONE, TWO = ExecutorId(1), ExecutorId(2)
A, B = TaskId(0, 0), TaskId(1, 0)
PLACEMENT = {A: ONE, B: TWO}


def a_file(name: str = "a", *tasks: TaskId, size_bytes: int = 5) -> SnapshotFile:
    return SnapshotFile(location=name, sha256="0f", tasks=tasks or (A,), size_bytes=size_bytes)


def a_manifest(epoch: int, *names: str) -> Manifest:
    files = tuple(map(a_file, names or (f"e{epoch}",)))
    return Manifest(region=0, epoch=epoch, attempt=1, clock_ms=epoch * 10, snapshots=files)


def a_coordinator(*base: SnapshotFile, epoch: int = 1) -> EpochCoordinator:
    pace = EpochPace(interval_ms=INTERVAL_MS, max_overhead_percent=100)
    return EpochCoordinator(
        region=3,
        attempt=7,
        epoch=epoch,
        placement=PLACEMENT,
        base=base,
        pace=pace,
        timeout_ms=TIMEOUT_MS,
        now_ms=0,
    )


def a_begun(*base: SnapshotFile, cut_time_ms: int | None = None) -> EpochCoordinator:
    coordinator = a_coordinator(*base)
    coordinator.begin(100, clock_ms=5, cut_time_ms=cut_time_ms)
    return coordinator


def stored(
    executor: ExecutorId,
    *before: SnapshotFile,
    epoch: int = 1,
    attempt: int = 7,
    has_missed_cut: bool = False,
) -> EpochStored:
    task = A if executor == ONE else B
    return EpochStored(
        executor_id=executor,
        attempt=attempt,
        epoch=epoch,
        snapshots=(*before, a_file(f"{epoch}-{executor}", task)),
        offsets=(TaskOffsets(task_id=task, offsets={"p": b"9"}),),
        has_missed_cut=has_missed_cut,
    )


# -- one epoch after the other -------------------------------------------------------------


def test_an_epoch_is_complete_when_all_have_stored_it() -> None:
    coordinator = a_begun()

    first = coordinator.on_stored(stored(TWO), 110)
    assert coordinator.missing == [ONE]
    manifest = coordinator.on_stored(stored(ONE), 120)

    assert first is None
    assert manifest == Manifest(
        region=3,
        epoch=1,
        attempt=7,
        clock_ms=5,
        snapshots=(a_file("1-1", A), a_file("1-2", B)),
        offsets=(*stored(ONE).offsets, *stored(TWO).offsets),
    )
    assert (coordinator.epoch, coordinator.is_ending) == (2, False)
    assert coordinator.missing == [ONE, TWO]
    assert not coordinator.is_due(199)
    assert coordinator.is_due(200)


def test_an_epoch_that_takes_too_long_is_given_up() -> None:
    coordinator = a_begun(cut_time_ms=77)
    coordinator.on_stored(stored(TWO), 110)
    assert not coordinator.is_late(99 + TIMEOUT_MS)
    assert coordinator.is_late(100 + TIMEOUT_MS)

    coordinator.abort(6000)

    assert (coordinator.epoch, coordinator.cut_time_ms) == (2, None)
    assert coordinator.is_due(6000)
    assert not coordinator.is_late(10**6)
    assert coordinator.missing == [ONE, TWO]
    coordinator.begin(6000, clock_ms=6, cut_time_ms=None)
    assert not coordinator.awaits(stored(ONE))


def test_epochs_have_more_time_when_none_is_complete_in_time() -> None:
    coordinator, now_ms, times = a_coordinator(), 100, []
    for _ in range(9):
        coordinator.begin(now_ms, clock_ms=5, cut_time_ms=None)
        now_ms += coordinator.timeout_ms
        assert not coordinator.is_late(now_ms - 1)
        assert coordinator.is_late(now_ms)
        times.append(coordinator.timeout_ms // TIMEOUT_MS)
        coordinator.abort(now_ms)
    assert times == [1, 1, 1, 2, 4, 8, 16, 16, 16]

    for took_ms, times_the_usual in ((TIMEOUT_MS, 16), (TIMEOUT_MS - 1, 1)):
        epoch = coordinator.epoch
        coordinator.begin(now_ms, clock_ms=5, cut_time_ms=None)
        now_ms += took_ms
        for executor in (ONE, TWO):
            coordinator.on_stored(stored(executor, epoch=epoch), now_ms)
        assert coordinator.timeout_ms == times_the_usual * TIMEOUT_MS


@pytest.mark.parametrize(
    "message",
    [stored(ONE, attempt=6), stored(ONE, epoch=0), stored(ONE, epoch=2), stored(ExecutorId(3))],
    ids=["attempt", "past", "future", "stranger"],
)
def test_what_belongs_elsewhere_does_not_count(message: EpochStored) -> None:
    """An older attempt's file would not fit the others."""
    coordinator = a_begun()

    assert not coordinator.awaits(message)
    assert coordinator.on_stored(message, 110) is None
    assert coordinator.missing == [ONE, TWO]


def test_one_executor_twice_is_not_two() -> None:
    coordinator = a_begun()
    coordinator.on_stored(stored(ONE), 110)

    assert coordinator.on_stored(stored(ONE, a_file("other")), 111) is None
    manifest = coordinator.on_stored(stored(TWO), 112)
    assert manifest is not None
    assert [file.location for file in manifest.snapshots] == ["1-1", "1-2"]


def test_what_is_under_way_does_not_begin_again() -> None:
    with pytest.raises(AssertionError):
        a_begun().begin(200, clock_ms=0, cut_time_ms=None)
    with pytest.raises(AssertionError):
        a_coordinator().abort(0)


# -- files of several executors ------------------------------------------------------------


def test_chains_follow_each_other_each_in_its_order() -> None:
    coordinator = a_begun()
    for each in (ONE, TWO):
        coordinator.on_stored(stored(each), 110)
    coordinator.begin(200, clock_ms=0, cut_time_ms=None)
    one, two = a_file("1-1", A), a_file("1-2", B)

    coordinator.on_stored(stored(TWO, two, epoch=2), 210)
    manifest = coordinator.on_stored(stored(ONE, one, epoch=2), 210)

    assert manifest is not None
    assert [each.location for each in manifest.snapshots] == ["1-1", "1-2", "2-1", "2-2"]
    assert manifest.total_bytes == 20


def test_a_file_counts_only_for_tasks_whose_executor_lists_it() -> None:
    """What another executor has written anew lacks what was deleted since; it must stay so."""
    base = a_file("base", A, B)
    coordinator = a_begun(base)
    coordinator.on_stored(stored(ONE), 110)

    manifest = coordinator.on_stored(stored(TWO, base), 110)

    assert manifest is not None
    assert manifest.snapshots == (replace(base, tasks=(B,)), a_file("1-1", A), a_file("1-2", B))


TASKS = [TaskId(0, index) for index in range(4)]
executors = st.sampled_from([ExecutorId(number) for number in range(3)])
attempts = st.lists(
    st.tuples(
        st.tuples(*[executors] * 4),
        st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=4),
    ),
    max_size=5,
)


@given(attempts)
def test_every_task_finds_what_it_was_wherever_it_has_run(
    attempts: list[tuple[tuple[ExecutorId, ...], list[tuple[bool, ...]]]],
) -> None:
    """Tasks move between attempts; executors store what has changed, or all anew.

    At the end of epoch n a task holds the cell ``n % 3`` alone, so that a file too much, or in
    the wrong place, brings back one that was deleted.
    """
    contents: dict[str, dict[TaskId, dict[int, int | None]]] = {}
    manifest: tuple[SnapshotFile, ...] = ()
    epoch = 0
    for number, (homes, epochs) in enumerate(attempts):
        placement = dict(zip(TASKS, homes, strict=True))
        chains = {
            home: [file for file in manifest if any(placement[t] == home for t in file.tasks)]
            for home in set(homes)
        }
        for rebased in epochs:
            epoch += 1
            for home, chain in chains.items():
                tasks = tuple(task for task in TASKS if placement[task] == home)
                new: dict[int, int | None] = {epoch % 3: epoch}
                if rebased[home]:
                    chain.clear()
                else:
                    new = {(epoch - 1) % 3: None, **new}
                name = f"{number}-{epoch}-{home}"
                contents[name] = dict.fromkeys(tasks, new)
                chain.append(a_file(name, *tasks))
            manifest = merged(manifest, chains, placement)
            for task in TASKS:
                cells: dict[int, int | None] = {}
                for file in manifest:
                    if task in file.tasks:
                        cells |= contents[file.location][task]
                left = {key: value for key, value in cells.items() if value is not None}
                assert left == {epoch % 3: epoch}


# -- commits -------------------------------------------------------------------------------


def test_an_answer_about_an_older_epoch_is_none() -> None:
    commits = CommitRound(4, [ONE], 100)

    commits.on_committed(ONE, 3)
    assert not commits.is_done
    commits.on_committed(TWO, 4)
    assert not commits.is_done


# -- what is stored ------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01", encode_manifest(a_manifest(1))[:-3]])
def test_other_bytes_are_no_manifest(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed manifest"):
        decode_manifest(data)


def test_segments_of_the_changelog_stand_beside_the_files() -> None:
    """A manifest keeps both, in their order; a restart reads the files."""
    file = SnapshotFile(location="file", sha256="s", tasks=(TaskId(0, 0),), size_bytes=10)
    segment = replace(file, location="segment", partition=0)

    manifest = Manifest(region=0, epoch=1, attempt=1, clock_ms=0, snapshots=(segment, file))

    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert (manifest.chain, manifest.changelog) == ((file,), (segment,))
    assert manifest.total_bytes == 10
