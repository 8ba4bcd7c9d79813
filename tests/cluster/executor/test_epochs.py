"""What an executor stores of epochs, and which files an epoch needs."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.executor.epochs import EpochFiles
from gearpy.cluster.executor.snapshot_writer import EpochSaved, StoreEpoch
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TakenGroups
from gearpy.state.stores.store import Section
from gearpy.task.api.snapshots import TaskSnapshot

A, B = TaskId(0, 0), TaskId(1, 0)


class Delta:
    def __init__(self, name: str) -> None:
        self.name = name
        self.released = 0

    def sections(self) -> Iterator[Section]:
        yield Section(0, self.name.encode())

    def release(self) -> None:
        self.released += 1


def a_snapshot(epoch: int, delta: Delta | None = None) -> TaskSnapshot:
    return TaskSnapshot(epoch=epoch, head=b"%d" % epoch, delta=delta)


def some_files(*tasks: TaskId, chain: tuple[SnapshotFile, ...] = (), most: int = 4) -> EpochFiles:
    return EpochFiles(
        attempt=7,
        tasks=frozenset(tasks or (A,)),
        prefix="k/app1/epochs/region0",
        suffix="attempt7-executor2",
        chain=chain,
        chain_files_max=most,
    )


def stored(job: StoreEpoch, size_bytes: int = 10) -> EpochSaved:
    tasks = tuple(sorted(job.snapshots))
    file = SnapshotFile(location=job.name, sha256="sha", size_bytes=size_bytes, tasks=tasks)
    return EpochSaved(job=job, file=file)


def names(files: list[SnapshotFile]) -> list[str]:
    return [each.location.rpartition("/")[2].partition("-")[0] for each in files]


def run_epoch(files: EpochFiles, epoch: int, delta: Delta | None = None) -> list[str]:
    """Let one task end an epoch and store it; return the files that it needs."""
    files.on_snapshot(A, a_snapshot(epoch, delta))
    job = files.next_job()
    assert job is not None
    return names(files.on_stored(stored(job)))


def test_epoch_is_stored_when_all_tasks_have_ended_it() -> None:
    files = some_files(A, B)

    files.on_snapshot(A, a_snapshot(1))
    early = files.next_job()
    files.on_snapshot(B, a_snapshot(1))
    job = files.next_job()

    assert early is None
    assert job is not None
    assert job.name == "k/app1/epochs/region0/epoch1-attempt7-executor2"
    assert [(part.task, part.head) for part in job.parts()] == [(A, b"1"), (B, b"1")]


def test_what_was_not_stored_is_part_of_the_next_epoch() -> None:
    """Its changes are there, oldest first; the head is that of the newest."""
    one, two = Delta("one"), Delta("two")
    files = some_files()
    files.on_snapshot(A, a_snapshot(1, one))
    assert files.next_job() is not None

    files.on_failed()
    files.on_snapshot(A, a_snapshot(2, two))
    job = files.next_job()
    assert job is not None
    (part,) = job.parts()

    assert job.epoch == 2
    assert part.head == b"2"
    assert [body for delta in part.deltas for _, body in delta()] == [b"one", b"two"]
    assert one.released == 0
    files.on_stored(stored(job))
    assert (one.released, two.released) == (1, 1)


def test_a_chain_that_was_taken_over_may_be_longer_for_a_while() -> None:
    """It has the files of several executors; a first epoch that wrote them anew would take long."""
    taken = (TakenGroups(task=A, source=B, via=B, first=0, last=9),)
    chain = tuple(
        SnapshotFile(location=f"old{n}-", sha256="", size_bytes=10, tasks=(A,), taken=taken)
        for n in range(6)
    )
    files = some_files(chain=chain, most=4)

    needed = [run_epoch(files, epoch, Delta("x")) for epoch in range(1, 5)]

    assert [len(each) for each in needed] == [7, 8, 1, 2]


def test_no_file_is_written_anew_while_somebody_waits_for_the_next_ones() -> None:
    files = some_files(most=2)
    files.keeps_all = True
    kept = [run_epoch(files, epoch, Delta("x")) for epoch in range(1, 10)]
    files.keeps_all = False
    again = [run_epoch(files, epoch, Delta("x")) for epoch in range(10, 13)]

    assert [len(each) for each in kept] == [1, 2, 3, 4, 5, 6, 7, 8, 1], "but there is a limit"
    assert max(map(len, again)) == 2


def test_chain_is_written_anew_when_it_is_long() -> None:
    files = some_files(most=2)
    run_epoch(files, 1, Delta("one"))
    run_epoch(files, 2, Delta("two"))

    files.on_snapshot(A, a_snapshot(3))
    job = files.next_job()
    assert job is not None
    after = files.on_stored(stored(job))

    assert names(list(job.rebased)) == ["epoch1", "epoch2"]
    assert names(after) == ["epoch3"]
    assert run_epoch(files, 4, Delta("four")) == ["epoch3", "epoch4"]


@given(
    st.lists(st.sampled_from(["change", "same", "fail", "give up"]), max_size=30), st.integers(1, 5)
)
def test_files_of_an_epoch_hold_all_changes_in_order(steps: list[str], most: int) -> None:
    files = some_files(most=most)
    content: dict[str, list[str]] = {}
    made: list[str] = []
    for epoch, step in enumerate(steps, start=1):
        delta = None if step == "same" else Delta(f"change {epoch}")
        made += [] if delta is None else [delta.name]
        files.on_snapshot(A, a_snapshot(epoch, delta))
        if step == "give up":
            continue  # Nobody stores it.
        job = files.next_job()
        assert job is not None
        if step == "fail":
            files.on_failed()
            continue
        (part,) = job.parts()
        new = [body.decode() for more in part.deltas for _, body in more()]
        old = [name for file in job.rebased for name in content[file.location]]
        content[job.name] = old + new
        needed = files.on_stored(stored(job, len(content[job.name])))

        assert [name for file in needed for name in content[file.location]] == made
        assert len(needed) <= most + 1
