"""What an executor stores of epochs, and which files an epoch needs."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.executor.epochs import EpochFiles, epoch_stored
from gearpy.cluster.executor.snapshot_writer import EpochSaved, StoreEpoch
from gearpy.ids import ExecutorId, TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.state.stores.store import Section
from gearpy.task.api.snapshots import TaskSnapshot

A, B = TaskId(0, 0), TaskId(1, 0)


class Delta:
    """Changes that know whether they were released."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.released = 0

    def sections(self) -> Iterator[Section]:
        """Yield the name."""
        yield Section(0, self.name.encode())

    def release(self) -> None:
        """Count it."""
        self.released += 1


def a_snapshot(epoch: int, delta: Delta | None = None) -> TaskSnapshot:
    """Return a snapshot whose head is its epoch."""
    return TaskSnapshot(epoch=epoch, head=b"%d" % epoch, delta=delta)


def some_files(*tasks: TaskId, chain: tuple[SnapshotFile, ...] = (), most: int = 4) -> EpochFiles:
    """Return the files of an attempt."""
    return EpochFiles(
        attempt=7,
        tasks=frozenset(tasks or (A,)),
        prefix="k/app1/epochs/region0",
        suffix="attempt7-executor2",
        chain=chain,
        chain_files_max=most,
    )


def stored(job: StoreEpoch, size_bytes: int = 10) -> EpochSaved:
    """Return what the writer answers when it has done a job."""
    tasks = tuple(sorted(job.snapshots))
    file = SnapshotFile(location=job.name, sha256="sha", size_bytes=size_bytes, tasks=tasks)
    return EpochSaved(job=job, file=file)


def names(files: list[SnapshotFile]) -> list[str]:
    """Return the epochs in the names of files."""
    return [each.location.rpartition("/")[2].partition("-")[0] for each in files]


def run_epoch(files: EpochFiles, epoch: int, delta: Delta | None = None) -> list[str]:
    """Let one task end an epoch and store it; return the files that it needs."""
    files.on_snapshot(A, a_snapshot(epoch, delta))
    job = files.next_job()
    assert job is not None
    return names(files.on_stored(stored(job)))


def test_epoch_is_stored_when_all_tasks_have_ended_it() -> None:
    """Not before, and under a name that no other executor or attempt has."""
    files = some_files(A, B)

    files.on_snapshot(A, a_snapshot(1))
    early = files.next_job()
    files.on_snapshot(B, a_snapshot(1))
    job = files.next_job()

    assert early is None
    assert job is not None
    assert job.name == "k/app1/epochs/region0/epoch1-attempt7-executor2"
    assert [(part.task, part.head) for part in job.parts()] == [(A, b"1"), (B, b"1")]


def test_only_one_epoch_is_being_stored() -> None:
    """The next one has to wait, and gets what has come meanwhile."""
    files = some_files()
    files.on_snapshot(A, a_snapshot(1))
    first = files.next_job()
    files.on_snapshot(A, a_snapshot(2))
    waiting = files.next_job()
    assert first is not None

    files.on_stored(stored(first))
    second = files.next_job()

    assert waiting is None
    assert second is not None
    assert [each.epoch for each in second.snapshots[A]] == [2]


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


def test_epoch_that_a_task_has_skipped_is_not_stored_for_itself() -> None:
    """A link may go from epoch 1 to epoch 3, then there is no snapshot of epoch 2."""
    files = some_files(A, B)
    files.on_snapshot(A, a_snapshot(1, Delta("a1")))
    files.on_snapshot(A, a_snapshot(2, Delta("a2")))
    files.on_snapshot(B, a_snapshot(2, Delta("b2")))

    job = files.next_job()

    assert job is not None
    assert job.epoch == 2
    assert [each.epoch for each in job.snapshots[A]] == [1, 2]
    assert [each.epoch for each in job.snapshots[B]] == [2]


def test_files_without_keyed_state_are_needed_by_one_epoch_only() -> None:
    """Each holds all there is."""
    files = some_files()

    assert run_epoch(files, 1) == ["epoch1"]
    assert run_epoch(files, 2) == ["epoch2"]


def test_files_with_keyed_state_make_a_chain() -> None:
    """Those without any among them are left out, as their heads are out of date."""
    files = some_files()

    assert run_epoch(files, 1, Delta("one")) == ["epoch1"]
    assert run_epoch(files, 2) == ["epoch1", "epoch2"]
    assert run_epoch(files, 3, Delta("three")) == ["epoch1", "epoch3"]


def test_chain_is_written_anew_when_it_is_long() -> None:
    """The new file takes the place of all before, and the next chain begins with it."""
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


def test_large_file_is_not_rewritten_for_small_ones() -> None:
    """Only the newer half of the chain is, unless that has grown as large as what is before."""
    large = SnapshotFile(location="x/epoch1-attempt1", sha256="s", tasks=(A,), size_bytes=1000)
    files = some_files(chain=(large,), most=4)
    for epoch in (2, 3, 4):
        run_epoch(files, epoch, Delta("more"))

    files.on_snapshot(A, a_snapshot(5, Delta("five")))
    job = files.next_job()
    assert job is not None
    after = files.on_stored(stored(job))

    assert names(list(job.kept)) == ["epoch1"]
    assert names(list(job.rebased)) == ["epoch2", "epoch3", "epoch4"]
    assert names(after) == ["epoch1", "epoch5"]


def test_chain_goes_on_from_what_was_restored() -> None:
    """The files that a restart has read are part of the epochs that follow."""
    old = SnapshotFile(location="x/epoch9-attempt1", sha256="s", tasks=(A,))
    files = some_files(chain=(old,))

    assert run_epoch(files, 10, Delta("ten")) == ["epoch9", "epoch10"]


def test_app_master_is_told_where_sources_are() -> None:
    """By the newest snapshots, and whether one of them has missed the cut."""
    files = some_files(A, B)
    files.on_snapshot(A, a_snapshot(1))
    files.on_snapshot(
        B,
        TaskSnapshot(epoch=1, head=b"", offsets={"p": b"5"}, has_missed_cut=True),
    )
    job = files.next_job()
    assert job is not None
    needed = files.on_stored(stored(job))

    told = epoch_stored(ExecutorId(2), job, needed)

    assert (told.executor_id, told.attempt, told.epoch) == (2, 7, 1)
    assert [(each.task_id, each.offsets) for each in told.offsets] == [(B, {"p": b"5"})]
    assert told.has_missed_cut
    assert told.snapshots == (
        SnapshotFile(
            location="k/app1/epochs/region0/epoch1-attempt7-executor2",
            sha256="sha",
            size_bytes=10,
            tasks=(A, B),
        ),
    )


@given(
    st.lists(st.sampled_from(["change", "same", "fail", "give up"]), max_size=30),
    st.integers(1, 5),
)
def test_files_of_an_epoch_hold_all_changes_in_order(steps: list[str], most: int) -> None:
    """Whatever fails or is given up: read in order, they tell each change once."""
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
