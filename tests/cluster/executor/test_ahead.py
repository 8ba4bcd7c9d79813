"""State that is read ahead, while more of it is stored: in the end it is what was stored last."""

from typing import Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.cluster.executor.ahead import StateAhead
from gearpy.cluster.executor.epochs import EpochFiles
from gearpy.cluster.executor.snapshot_writer import (
    DoneAhead,
    EpochSaved,
    SnapshotWriter,
    WriterAnswer,
)
from gearpy.core.base.stable_hash import KEY_GROUPS, key_group
from gearpy.ids import SessionId, TaskId
from gearpy.messages.app import (
    LaunchTasks,
    ReadAhead,
    SnapshotFile,
    TakenGroups,
    TaskLaunch,
    TaskOffsets,
)
from gearpy.state.keyed import KeyedState
from gearpy.state.open import heap_state
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.storage.held import HeldCheckpoints
from gearpy.storage.snapshot_files import TaskPart, save_snapshot, snapshot_chunks
from gearpy.task.api.snapshots import TaskResume, TaskSnapshot, encode_state

TASKS: Final = (TaskId(0, 0), TaskId(1, 0))
A, B = TASKS
#: By task and key what is kept from now on; None: nothing.
Changes: TypeAlias = dict[tuple[TaskId, str], int | None]


class Old:
    def __init__(self, files_max: int = 3) -> None:
        self.store = MemoryCheckpoints()
        HeldCheckpoints(self.store, "app1").begin(is_known=False)
        self.files: tuple[SnapshotFile, ...] = ()
        self.epoch = 0
        self.kept: dict[TaskId, dict[str, int]] = {task: {} for task in TASKS}
        self._states = {task: heap_state() for task in TASKS}
        self._answers: list[WriterAnswer] = []
        self._writer = SnapshotWriter(self, self.store, prefix="app1")  # type: ignore[arg-type] # takes answers
        self._epochs = EpochFiles(
            attempt=1,
            tasks=frozenset(TASKS),
            prefix="app1/epochs",
            suffix="1",
            chain=(),
            chain_files_max=files_max,
        )

    def tell(self, answer: WriterAnswer) -> None:
        self._answers.append(answer)

    def run(self, changes: Changes) -> None:
        self.epoch += 1
        for (task, key), number in changes.items():
            state = self._states[task]
            value = state.value("number", coder="int")
            state.key = key
            if number is None:
                value.clear()
                self.kept[task].pop(key, None)
            else:
                value.set(number)
                self.kept[task][key] = number
        for task, state in self._states.items():
            snapshot = TaskSnapshot(
                epoch=self.epoch, head=b"%d" % self.epoch, delta=state.snapshot()
            )
            self._epochs.on_snapshot(task, snapshot)
        job = self._epochs.next_job()
        assert job is not None
        self._writer.receive(job)
        saved = self._answers.pop()
        assert isinstance(saved, EpochSaved)
        self.files = tuple(self._epochs.on_stored(saved))


class New:
    def __init__(self, old: Old) -> None:
        self.old = old
        self.opened = 0
        self.ahead = StateAhead(old.store, self._open)

    def _open(self, _: TaskId) -> KeyedState:
        self.opened += 1
        return heap_state()

    def read(self) -> None:
        message = ReadAhead(
            version=1, region=0, epoch=self.old.epoch, tasks=TASKS, snapshots=self.old.files
        )
        self.ahead.read(message)

    def resume(self, *overrides: TaskOffsets) -> dict[TaskId, TaskResume] | None:
        launch = LaunchTasks(
            region=0,
            version=1,
            attempt=2,
            tasks=tuple(TaskLaunch(task_id=task, session=SessionId(1)) for task in TASKS),
            snapshots=self.old.files,
            overrides=overrides,
        )
        return self.ahead.resume(launch)


def resumed(new: New, epochs: list[tuple[Changes, bool]]) -> dict[TaskId, TaskResume] | None:
    for changes, is_read in epochs:
        new.old.run(changes)
        if is_read:
            new.read()
    resume = new.resume()
    assert (resume is not None) == any(is_read for _, is_read in epochs)
    return resume


def kept_in(resume: TaskResume) -> dict[str, int]:
    if resume.state is None:
        return {}
    value = resume.state.value("number", coder="int")
    found = {}
    for key in list(resume.state.keys("number")):
        resume.state.key = key
        found[key] = value.get()
    return found


_CHANGES = st.dictionaries(
    st.tuples(st.sampled_from(TASKS), st.sampled_from("abcdef")),
    st.none() | st.integers(0, 99),
    max_size=6,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_CHANGES, st.booleans()), min_size=1, max_size=12), st.integers(1, 5))
def test_tasks_go_on_with_what_was_stored_last(
    epochs: list[tuple[Changes, bool]], files_max: int
) -> None:
    """Whenever it was read ahead, and however files were written anew meanwhile."""
    old = Old(files_max)

    resume = resumed(New(old), epochs)

    if resume is None:
        return
    assert {task: kept_in(each) for task, each in resume.items()} == old.kept
    assert {each.head for each in resume.values()} == {b"%d" % old.epoch}


class Taking(New):
    """An executor of a version with other tasks: one for all of A, and of B three."""

    TASKS = (TaskId(0, 0), TaskId(1, 0), TaskId(1, 1), TaskId(1, 2))

    def taken(self) -> tuple[SnapshotFile, ...]:
        """Return the files of the old tasks; B has another one for what it stores than A."""
        first, *others = self.TASKS
        groups = [
            TakenGroups(task=first, source=A, via=A, first=0, last=KEY_GROUPS),
            *(
                TakenGroups(task=task, source=B, via=B, first=at * 400, last=at * 400 + 399)
                for at, task in enumerate(others)
            ),
        ]
        found = []
        for source in (A, B):
            taken = tuple(each for each in groups if each.source == source)
            tasks = tuple(each.task for each in taken)
            found += [replace(each, tasks=tasks, taken=taken) for each in self.old.files]
        return tuple(found)

    def read(self) -> None:
        message = ReadAhead(
            version=1, region=0, epoch=self.old.epoch, tasks=self.TASKS, snapshots=self.taken()
        )
        self.ahead.read(message)

    def resume(self, *overrides: TaskOffsets) -> dict[TaskId, TaskResume] | None:
        parts = [TaskPart(task=task, head=b"%d" % self.old.epoch) for task in self.TASKS]
        heads = save_snapshot(self.old.store, "heads", self.TASKS, snapshot_chunks(parts))
        launch = LaunchTasks(
            region=0,
            version=1,
            attempt=2,
            tasks=tuple(TaskLaunch(task_id=task, session=SessionId(1)) for task in self.TASKS),
            snapshots=(*self.taken(), heads),
            overrides=overrides,
        )
        return self.ahead.resume(launch)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(_CHANGES, st.booleans()), min_size=1, max_size=12), st.integers(1, 5))
def test_tasks_that_take_over_key_groups_go_on_with_what_was_stored_last(
    epochs: list[tuple[Changes, bool]], files_max: int
) -> None:
    old = Old(files_max)

    resume = resumed(Taking(old), epochs)

    if resume is None:
        return
    kept = {task: kept_in(each) for task, each in resume.items()}
    first, *others = Taking.TASKS
    assert kept.pop(first) == old.kept[A]
    assert {key: n for each in kept.values() for key, n in each.items()} == old.kept[B]
    for at, task in enumerate(others):
        assert all(key_group(key) // 400 == at for key in kept[task])
    assert {each.head for each in resume.values()} == {b"%d" % old.epoch}


def test_what_was_taken_over_before_is_one_chain_with_what_was_stored_since() -> None:
    old = Old()
    old.run({(A, "a"): 1, (A, "b"): 1})
    (first,) = old.files
    old.run({(A, "a"): 2})
    (_, second) = old.files
    old.run({(A, "b"): None})
    (_, _, third) = old.files
    merged = replace(third, tasks=(A,))
    for via in (None, A):

        def seen(file: SnapshotFile, source: TaskId, via: TaskId | None = via) -> SnapshotFile:
            if via is None and file is not first:
                return replace(file, tasks=(A,))
            each = TakenGroups(task=A, source=source, via=via or B, first=0, last=KEY_GROUPS)
            return replace(file, tasks=(A,), taken=(each,))

        new = New(old)
        before = (seen(first, A), seen(second, A))
        new.ahead.read(ReadAhead(version=1, region=0, epoch=1, tasks=(A,), snapshots=before))
        head = () if via is None else (replace(merged, taken=()),)
        launch = LaunchTasks(
            region=0,
            version=1,
            attempt=2,
            tasks=(TaskLaunch(task_id=A, session=SessionId(1)),),
            snapshots=(seen(first, A), seen(third, A), *head),
        )
        resume = new.ahead.resume(launch)

        assert resume is not None
        assert kept_in(resume[A]) == {"a": 2}
        assert new.opened == 1, "it was read only once"


def test_a_task_without_stored_state_begins_from_nothing() -> None:
    old = Old()
    new = New(old)
    old.run({(A, "a"): 1})
    other = TaskId(7, 0)
    file = replace(old.files[0], tasks=(A,))
    new.ahead.read(ReadAhead(version=1, region=0, epoch=1, tasks=(A, other), snapshots=(file,)))

    launch = LaunchTasks(
        region=0,
        version=1,
        attempt=2,
        tasks=tuple(TaskLaunch(task_id=task, session=SessionId(1)) for task in (A, other)),
        snapshots=(file,),
    )

    resume = new.ahead.resume(launch)
    assert resume is not None
    assert resume.keys() == {A}


def test_only_what_was_added_is_read_in_the_end() -> None:
    old = Old()
    new = New(old)
    old.run({(A, "a"): 1, (B, "b"): 1})
    new.read()
    (base,) = old.files
    old.run({(A, "a"): 2})
    old.store.drop(base.location)

    resume = new.resume()

    assert resume is not None
    assert kept_in(resume[A]) == {"a": 2}
    assert kept_in(resume[B]) == {"b": 1}
    assert new.opened == 2


def test_what_is_damaged_is_left_to_the_launch_itself() -> None:
    """It knows what to do: fall back, or read the changelog."""
    old = Old()
    new = New(old)
    old.run({(A, "a"): 1})
    new.read()
    old.run({(A, "a"): 2})
    old.store.drop(old.files[-1].location)

    assert new.resume() is None


def test_what_has_gone_meanwhile_is_not_read() -> None:
    old = Old()
    new = New(old)
    old.run({(A, "a"): 1})
    old.store.drop(old.files[0].location)

    new.read()

    assert new.resume() is None
    assert new.opened == 0


def test_it_is_used_once() -> None:
    old = Old()
    new = New(old)
    old.run({(A, "a"): 1})
    new.read()

    assert new.resume() is not None
    assert new.resume() is None


def test_places_of_sources_that_were_set_count() -> None:
    old = Old()
    new = New(old)
    old.run({})
    new.read()

    resume = new.resume(TaskOffsets(task_id=A, offsets={"0": encode_state("numbers", 7)}))

    assert resume is not None
    assert resume[A].offsets == {"0": 7}


@pytest.mark.parametrize("files_max", [1, 3])
def test_state_that_must_be_made_by_its_task_is_not_read_ahead(files_max: int) -> None:
    old = Old(files_max)
    ahead = StateAhead(old.store, lambda _: None)
    new = New(old)
    new.ahead = ahead
    old.run({(A, "a"): 1})

    new.read()

    assert new.resume() is None


def test_damage_is_told_with_its_file() -> None:
    old = Old()
    old.run({(A, "a"): 1})
    old.run({(A, "a"): 2})
    CoordinatorLog(old.store, "app1", launch=1, source="test", wall_ms=lambda: 0)
    message = ReadAhead(version=1, region=0, epoch=2, tasks=TASKS, snapshots=old.files)
    first, second = old.files

    whole, torn, missing = (
        answer_to(old.store, message),
        answer_to(old.store, replace(message, snapshots=(first, replace(second, size_bytes=9)))),
        answer_to(
            old.store, replace(message, snapshots=(replace(first, location="app1/no"), second))
        ),
    )

    assert (whole.damaged, whole.reason) == ("", "")
    assert torn.damaged == second.location
    assert "stored were 9" in torn.reason
    assert missing.damaged == "app1/no"


def test_a_store_that_is_away_is_not_damaged() -> None:
    old = Old()
    old.run({(A, "a"): 1})
    message = ReadAhead(version=1, region=0, epoch=1, tasks=TASKS, snapshots=old.files)

    answer = answer_to(MemoryCheckpoints(), message)

    assert (answer.damaged, answer.reason) == ("", "")


def answer_to(store: MemoryCheckpoints, message: ReadAhead) -> DoneAhead:
    answers: list[WriterAnswer] = []

    class Owner:
        def tell(self, answer: WriterAnswer) -> None:
            answers.append(answer)

    writer = SnapshotWriter(Owner(), store, prefix="app1")  # type: ignore[arg-type] # takes answers
    writer.receive(message)
    (answer,) = answers
    assert isinstance(answer, DoneAhead)
    return answer
