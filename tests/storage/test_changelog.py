"""The changelog: which segments are stored, what they say, and what is rebuilt from them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import BinaryIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.errors import SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.storage.changelog import (
    Changelog,
    NextSegment,
    RecordedDelta,
    chain_of,
    changelog_of,
    kept_segments,
    rebuilt,
    store_segment,
)
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.snapshot_files import SnapshotChain, TaskPart, snapshot_chunks

Cells = Mapping[bytes, bytes | None]

A, B = TaskId(0, 0), TaskId(1, 0)
PREFIX = "k/app1/changelog"


def a_changelog(
    *tasks: TaskId, files: Sequence[SnapshotFile] = (), most: int = 4, suffix: str = "attempt1"
) -> Changelog:
    return Changelog(
        partitions={task: 3 + at for at, task in enumerate(tasks or (A,))},
        prefix=PREFIX,
        suffix=suffix,
        files=files,
        segments_max=most,
    )


def a_part(task: TaskId, cells: Cells | None, head: bytes = b"") -> TaskPart:
    """Return the changes of a task, all in key group 0."""

    def sections() -> Iterator[tuple[int, bytes]]:
        if cells:
            yield 0, msgspec.msgpack.encode(cells)

    return TaskPart(task=task, head=head, deltas=[sections])


def a_file(checkpoints: MemoryCheckpoints, name: str, **parts: Cells) -> SnapshotFile:
    """Store a file of an epoch with tasks A and B, whose heads are its name."""
    tasks = {"a": A, "b": B}
    chunks = snapshot_chunks(a_part(tasks[each], parts[each], name.encode()) for each in parts)
    stored = checkpoints.save(name, chunks)
    return SnapshotFile(
        location=stored.location,
        sha256=stored.sha256,
        tasks=tuple(tasks[each] for each in parts),
        size_bytes=stored.size_bytes,
    )


def store(
    checkpoints: MemoryCheckpoints,
    changelog: Changelog,
    epoch: int,
    *,
    chain: Sequence[SnapshotFile] = (),
    **changes: Cells,
) -> list[NextSegment]:
    changed = {{"a": A, "b": B}[name]: cells for name, cells in changes.items()}
    segments = changelog.next_segments(epoch, changed.keys())
    changelog.on_stored(
        {
            each.task: store_segment(
                checkpoints, each, a_part(each.task, changed.get(each.task), b"head"), chain=chain
            )
            for each in segments
        }
    )
    return [*segments]


def cells_of(checkpoints: MemoryCheckpoints, files: Sequence[SnapshotFile], task: TaskId) -> Cells:
    with SnapshotChain(checkpoints, files) as chain:
        return chain.cells(task, 0)


def harm(checkpoints: MemoryCheckpoints, file: SnapshotFile) -> None:
    checkpoints.save(file.location, [b"something else"])


def test_every_task_has_a_segment_from_its_first_epoch_on() -> None:
    checkpoints, changelog = MemoryCheckpoints(), a_changelog(A, B)
    was_complete = changelog.is_complete

    first = store(checkpoints, changelog, 1, a={b"x": b"1"})
    second = store(checkpoints, changelog, 2, a={b"x": b"2"})
    third = store(checkpoints, changelog, 3)

    assert [[each.task for each in segments] for segments in (first, second, third)] == [
        [A, B],
        [A],
        [],
    ]
    assert (was_complete, changelog.is_complete) == (False, True)
    assert cells_of(checkpoints, changelog.files, B) == {}


def test_segments_are_merged_when_they_are_many() -> None:
    """The merged one has each cell once; a large one before it stays."""
    checkpoints, changelog = MemoryCheckpoints(), a_changelog(most=4)
    large = {b"%d" % n: b"x" * 100 for n in range(100)}
    store(checkpoints, changelog, 1, a=large)
    for epoch in (2, 3, 4):
        store(checkpoints, changelog, epoch, a={b"0": b"%d" % epoch})

    (segment,) = store(checkpoints, changelog, 5, a={b"1": None})

    assert [each.name.rpartition("/")[2] for each in [segment]] == ["epoch5-attempt1"]
    assert (len(segment.kept), len(segment.merged)) == (1, 3)
    assert len(changelog.files) == 2
    assert cells_of(checkpoints, changelog.files[1:], A) == {b"0": b"4"}
    assert cells_of(checkpoints, changelog.files, A) == {
        **{key: value for key, value in large.items() if key != b"1"},
        b"0": b"4",
    }


def test_changelog_goes_on_from_the_segments_of_an_attempt_before() -> None:
    checkpoints = MemoryCheckpoints()
    before, other = a_changelog(A), a_changelog(B)
    store(checkpoints, before, 1, a={b"x": b"1"})
    store(checkpoints, other, 1, b={b"x": b"1"})
    listed = [a_file(checkpoints, "one", a={}), *before.files, *other.files]

    changelog = a_changelog(A, files=listed, suffix="attempt2")
    store(checkpoints, changelog, 2, a={b"y": b"2"})

    assert [file.location.rpartition("/")[2] for file in changelog.files] == [
        "epoch1-attempt1",
        "epoch2-attempt2",
    ]
    assert chain_of(listed) == (listed[0],)
    assert changelog_of(listed) == tuple(listed[1:])


def test_damaged_segment_is_written_anew_from_the_files_of_epochs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checkpoints, changelog = MemoryCheckpoints(), a_changelog(most=1)
    store(checkpoints, changelog, 1, a={b"x": b"1"})
    chain = [a_file(checkpoints, "one", a={b"x": b"1"})]
    harm(checkpoints, changelog.files[0])

    store(checkpoints, changelog, 2, chain=chain, a={b"y": b"2"})

    assert len(changelog.files) == 1
    assert cells_of(checkpoints, changelog.files, A) == {b"x": b"1", b"y": b"2"}
    assert "the changelog of task 0.0 begins anew" in caplog.text


def test_segment_cannot_be_stored_when_all_is_damaged() -> None:
    checkpoints, changelog = MemoryCheckpoints(), a_changelog(most=1)
    store(checkpoints, changelog, 1, a={b"x": b"1"})
    chain = [a_file(checkpoints, "one", a={b"x": b"1"})]
    harm(checkpoints, changelog.files[0])
    harm(checkpoints, chain[0])

    with pytest.raises(SnapshotDamaged, match="one"):
        store(checkpoints, changelog, 2, chain=chain, a={b"y": b"2"})


MB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([100 * MB, 100 * MB], 2),
        ([100 * MB, 60 * MB, 41 * MB], 0),
        ([100 * MB, *[9 * MB] * 11], 12),
        ([1, 8 * MB, 8 * MB], 3),
        ([1, 8 * MB, 9 * MB], 0),
        ([20 * MB], 1),
        ([], 0),
    ],
)
def test_segments_are_merged_when_they_are_large(sizes: list[int], kept: int) -> None:
    assert kept_segments(sizes, 16) == kept


@given(st.lists(st.integers(1, 200 * MB), max_size=40))
def test_bytes_on_disk_follow_those_of_the_state(changes: list[int]) -> None:
    """A merged file is as large as the largest state: a chain is three times that at most."""
    state, sizes = 0, list[int]()
    for changed in changes:
        state = max(state, changed)
        kept = kept_segments(sizes, 16)
        sizes = [*sizes, changed] if kept == len(sizes) else [*sizes[:kept], state]

        assert sum(sizes) <= 3 * state + 16 * MB


@given(st.lists(st.integers(1, 1000), max_size=40), st.integers(1, 10))
def test_so_many_segments_at_most(sizes: list[int], most: int) -> None:
    kept = kept_segments(sizes, most)

    assert kept + 1 <= most
    assert kept == len(sizes) or len(sizes) >= most


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=9)), max_size=9), st.integers(0, 9))
def test_changes_are_made_into_bytes_once(sections: list[tuple[int, bytes]], stop: int) -> None:
    """However often they are read; a reading that was broken off does not count."""
    made = []

    def delta() -> Iterator[tuple[int, bytes]]:
        made.append(1)
        yield from sections

    recorded = RecordedDelta(delta)
    with closing(recorded):
        broken_off = [*islice(recorded(), min(stop, len(sections)))]
        readings = [[*recorded()] for _ in range(3)]

    assert broken_off == sections[:stop]
    assert readings == [sections] * 3
    assert len(made) <= 2


# -- rebuilding ------------------------------------------------------------------------------


@pytest.fixture
def lost() -> tuple[MemoryCheckpoints, list[SnapshotFile]]:
    """Return two epochs of A and B, stored both ways; the first file of the chain is gone."""
    checkpoints, changelog = MemoryCheckpoints(), a_changelog(A, B)
    one = a_file(checkpoints, "one", a={b"x": b"1"}, b={b"x": b"1"})
    store(checkpoints, changelog, 1, a={b"x": b"1"}, b={b"x": b"1"})
    first = changelog.files
    two = a_file(checkpoints, "two", a={b"y": b"2"}, b={b"x": None})
    store(checkpoints, changelog, 2, a={b"y": b"2"}, b={b"x": None})
    checkpoints.drop("one")
    later = [file for file in changelog.files if file not in first]
    return checkpoints, [one, *first, two, *later]


GONE = SnapshotDamaged(location="one", reason="it is not there")


def test_head_of_a_task_may_be_in_an_older_file(
    lost: tuple[MemoryCheckpoints, list[SnapshotFile]],
) -> None:
    checkpoints, files = lost
    three = a_file(checkpoints, "three", a={})
    only_b = [replace(each, tasks=(B,)) if each.location == "two" else each for each in files]

    heads, _ = rebuilt(checkpoints, [*only_b, three], {A, B}, GONE)

    assert (heads.head(A), heads.head(B)) == (b"three", b"two")


def test_without_a_head_nothing_can_be_rebuilt(
    lost: tuple[MemoryCheckpoints, list[SnapshotFile]],
) -> None:
    checkpoints, files = lost
    checkpoints.drop("two")

    with pytest.raises(SnapshotDamaged) as caught:
        rebuilt(checkpoints, files, {A, B}, GONE)

    assert caught.value.location == "two"


def test_without_a_segment_nothing_can_be_rebuilt(
    lost: tuple[MemoryCheckpoints, list[SnapshotFile]],
) -> None:
    """The newer one of the two damaged files is named: older epochs may do without it."""
    checkpoints, files = lost
    newest = files[-1]
    harm(checkpoints, newest)

    with pytest.raises(SnapshotDamaged, match="one: it is not there; nor can it") as caught:
        rebuilt(checkpoints, files, {A, B}, GONE)

    assert caught.value.location == newest.location


def test_newer_one_may_be_the_file_of_the_epoch(
    lost: tuple[MemoryCheckpoints, list[SnapshotFile]],
) -> None:
    checkpoints, files = lost
    oldest = files[1]
    harm(checkpoints, oldest)
    late = a_file(checkpoints, "late", a={b"z": b"3"})
    chain = [files[1], late, a_file(checkpoints, "three", a={})]

    with pytest.raises(SnapshotDamaged) as caught:
        rebuilt(checkpoints, chain, {A}, replace_location(GONE, "late"))

    assert caught.value.location == "late"


def test_task_without_segments_cannot_be_rebuilt(
    lost: tuple[MemoryCheckpoints, list[SnapshotFile]],
) -> None:
    """The option was off then: no segments do not mean no state."""
    checkpoints, files = lost
    without = [file for file in files if file.partition != 4]

    with pytest.raises(SnapshotDamaged, match=r"the changelog lacks task 1\.0") as caught:
        rebuilt(checkpoints, without, {A, B}, GONE)

    assert caught.value.location == "one"


def test_without_a_changelog_only_the_damage_is_told(
    lost: tuple[MemoryCheckpoints, list[SnapshotFile]],
) -> None:
    checkpoints, files = lost

    with pytest.raises(SnapshotDamaged) as caught:
        rebuilt(checkpoints, chain_of(files), {A, B}, GONE)

    assert caught.value is GONE


def test_store_out_of_reach_is_no_damage(
    lost: tuple[MemoryCheckpoints, list[SnapshotFile]],
) -> None:
    """Nobody can tell now; the files of heads are closed."""
    checkpoints, files = lost

    class OutOfReach(MemoryCheckpoints):
        def open(self, location: str) -> BinaryIO:
            if "changelog" in location:
                raise OSError("no route")
            return checkpoints.open(location)

    with pytest.raises(OSError, match="no route"):
        rebuilt(OutOfReach(), files, {A}, GONE)


def replace_location(damage: SnapshotDamaged, location: str) -> SnapshotDamaged:
    return SnapshotDamaged(location=location, reason=damage.reason)


# -- whatever happens ------------------------------------------------------------------------

KEYS = st.sampled_from([b"a", b"b", b"c"])
CHANGES = st.dictionaries(KEYS, st.one_of(st.none(), st.binary(max_size=40)), max_size=3)


@given(
    st.lists(st.tuples(st.sampled_from(["stored", "failed", "restart"]), CHANGES), max_size=25),
    st.integers(1, 4),
)
def test_segments_of_an_epoch_say_what_the_state_was(
    steps: list[tuple[str, dict[bytes, bytes | None]]], most: int
) -> None:
    """Of each epoch that was complete, also after others were merged; and of none else.

    What was stored behind the epoch that a restart goes back to is still there, and ignored.
    """
    checkpoints, changelog = MemoryCheckpoints(), a_changelog(most=most)
    states: list[tuple[tuple[SnapshotFile, ...], dict[bytes, bytes]]] = [((), {})]
    state, waiting = dict[bytes, bytes](), dict[bytes, bytes | None]()
    for epoch, (step, changes) in enumerate(steps, start=1):
        if step == "restart":
            files, old = states[len(changes) % len(states)]
            changelog = a_changelog(most=most, files=files, suffix=f"attempt{epoch}")
            state, waiting = dict(old), {}
            continue
        waiting |= changes
        state = {k: v for k, v in {**state, **changes}.items() if v is not None}
        if step == "stored":
            store(checkpoints, changelog, epoch, a=waiting)
            waiting = {}
            states.append((changelog.files, state))
            assert len(changelog.files) <= most

    for files, expected in states:
        assert (cells_of(checkpoints, files, A) if files else {}) == expected
