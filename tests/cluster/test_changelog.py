"""The changelog of a group of tasks: what is stored, and what is rebuilt when files are lost."""

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gearpy as gp
from gearpy.cluster.app.checkpoints import AppCheckpoints
from gearpy.cluster.executor.epochs import EpochFiles
from gearpy.cluster.executor.snapshot_writer import (
    EpochFailed,
    EpochSaved,
    SnapshotWriter,
    TasksLoaded,
    TasksUnloadable,
    WriterAnswer,
)
from gearpy.core.dag.graph import Dag
from gearpy.ids import SessionId, TaskId
from gearpy.messages.app import LaunchTasks, SnapshotFile, TaskLaunch
from gearpy.state.stores.store import Section
from gearpy.storage.changelog import Changelog, chain_of, changelog_of
from gearpy.storage.checkpoints import Checkpoints, MemoryCheckpoints, checkpoints_at
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.storage.held import HeldCheckpoints
from gearpy.task.api.snapshots import TaskSnapshot
from tests.connectors.kafka.writing.reading import read
from tests.servers.kafka import KafkaAddress

Cells = dict[bytes, bytes]
Changes = Mapping[bytes, bytes | None]

A, B = TaskId(0, 0), TaskId(1, 0)
TASKS = (A, B)
PREFIX = "k/app1"


class Delta:
    def __init__(self, changes: Changes) -> None:
        self._changes: Changes | None = dict(changes)

    def sections(self) -> Iterator[Section]:
        """Yield each change in a section of its own; the key is the key group."""
        assert self._changes is not None, "released"
        for key, value in self._changes.items():
            yield Section(key[0], msgspec.msgpack.encode({key: value}))

    def release(self) -> None:
        self._changes = None


@dataclass
class Answers:
    told: list[WriterAnswer] = field(default_factory=list)

    def tell(self, message: WriterAnswer) -> None:
        self.told.append(message)


class Group:
    """Tasks A and B of one executor, attempt after attempt, with the real writer."""

    def __init__(
        self, *, most: int = 4, has_changelog: bool = True, checkpoints: Checkpoints | None = None
    ) -> None:
        self.checkpoints: Checkpoints = checkpoints or MemoryCheckpoints()
        HeldCheckpoints(self.checkpoints, PREFIX).begin(is_known=False)
        CoordinatorLog(self.checkpoints, PREFIX, launch=1, source="test", wall_ms=lambda: 0)
        self.most = most
        self.has_changelog = has_changelog
        self.attempt = 0
        self.state: dict[TaskId, Cells] = {}
        self.start(())

    def start(self, files: tuple[SnapshotFile, ...]) -> TasksLoaded | TasksUnloadable:
        """Let an attempt go on from files; on success its state is what was read."""
        self.attempt += 1
        launch = LaunchTasks(
            region=0,
            version=1,
            attempt=self.attempt,
            tasks=tuple(
                TaskLaunch(
                    task_id=task, session=SessionId(1), partition=at if self.has_changelog else None
                )
                for at, task in enumerate(TASKS)
            ),
            snapshots=files,
        )
        loaded = self._ask(launch)
        if isinstance(loaded, TasksUnloadable):
            return loaded
        assert isinstance(loaded, TasksLoaded)
        self.files = self._epoch_files(loaded)
        self.state = {task: {} for task in TASKS}
        for task, resume in loaded.resume.items():
            for section in resume.sections:
                self._apply(task, msgspec.msgpack.decode(section.body))
        self.heads = {task: resume.head for task, resume in loaded.resume.items()}
        return loaded

    def end(
        self, epoch: int, changes: Mapping[TaskId, Changes], *, whole: Collection[TaskId] = ()
    ) -> None:
        """Let tasks end an epoch; some of them hand over all that they have."""
        for task in TASKS:
            those = changes.get(task, {})
            self._apply(task, those)
            told = self.state[task] if task in whole else those
            self.files.on_snapshot(
                task,
                TaskSnapshot(
                    epoch=epoch,
                    head=b"%d" % epoch,
                    delta=Delta(told) if told else None,
                    is_whole=task in whole,
                ),
            )

    def store(self) -> tuple[SnapshotFile, ...] | EpochFailed:
        job = self.files.next_job()
        assert job is not None
        saved = self._ask(job)
        if not isinstance(saved, EpochSaved):
            assert isinstance(saved, EpochFailed)
            self.files.on_failed(is_damage=bool(saved.damaged))
            return saved
        return tuple(self.files.on_stored(saved))

    def run(self, epoch: int, changes: Mapping[TaskId, Changes]) -> tuple[SnapshotFile, ...]:
        self.end(epoch, changes)
        files = self.store()
        assert isinstance(files, tuple), files.reason
        return files

    def _ask(self, message: object) -> WriterAnswer:
        answers = Answers()
        writer = SnapshotWriter(answers, self.checkpoints, prefix=PREFIX)  # type: ignore[arg-type]
        writer.receive(message)  # type: ignore[arg-type]
        (answer,) = answers.told
        return answer

    def _epoch_files(self, loaded: TasksLoaded) -> EpochFiles:
        suffix = f"attempt{self.attempt}-executor0"
        changelog = Changelog(
            partitions={task: at for at, task in enumerate(TASKS)},
            prefix=f"{PREFIX}/changelog",
            suffix=suffix,
            files=loaded.launch.snapshots,
            segments_max=self.most,
        )
        return EpochFiles(
            attempt=self.attempt,
            tasks=frozenset(TASKS),
            prefix=f"{PREFIX}/epochs/region0",
            suffix=suffix,
            chain=loaded.chain,
            chain_files_max=self.most,
            changelog=changelog if self.has_changelog else None,
            is_rebuilt=loaded.is_rebuilt,
        )

    def _apply(self, task: TaskId, changes: Changes) -> None:
        merged = {**self.state[task], **changes}
        self.state[task] = {key: value for key, value in merged.items() if value is not None}


def two_epochs(group: Group) -> tuple[SnapshotFile, ...]:
    group.run(1, {A: {b"x": b"1", b"y": b"1"}, B: {b"z": b"1"}})
    return group.run(2, {A: {b"y": None}})


AFTER_TWO = {A: {b"x": b"1"}, B: {b"z": b"1"}}


@pytest.mark.parametrize("harm", ["drop", "overwrite"])
def test_older_files_are_not_needed(harm: str, caplog: pytest.LogCaptureFixture) -> None:
    group = Group()
    files = two_epochs(group)
    if harm == "drop":
        group.checkpoints.drop(files[0].location)
    else:
        group.checkpoints.save(files[0].location, [b"something else"])

    loaded = group.start(files)

    assert isinstance(loaded, TasksLoaded)
    assert loaded.is_rebuilt
    assert group.state == AFTER_TWO
    assert group.heads == {A: b"2", B: b"2"}
    assert "keyed state is rebuilt from 3 segments of the changelog" in caplog.text
    assert files[0].location in caplog.text


def test_state_is_rebuilt_from_the_topic_of_the_changelog(
    kafka: KafkaAddress, caplog: pytest.LogCaptureFixture
) -> None:
    store = uuid4().hex
    group = Group(checkpoints=checkpoints_at(f"kafka://{kafka.plain}/{store}"))
    files = two_epochs(group)
    group.checkpoints.drop(files[0].location)
    elsewhere = Group(checkpoints=checkpoints_at(f"kafka://{kafka.plain}/{store}"))

    loaded = elsewhere.start(files)

    assert isinstance(loaded, TasksLoaded)
    assert elsewhere.state == AFTER_TWO
    assert "keyed state is rebuilt from 3 segments of the changelog" in caplog.text
    records = read(kafka.plain, f"{store}.{PREFIX.replace('/', '.')}.changelog")
    paths = sorted((each.partition(), (each.key() or b"").decode()) for each in records)
    assert [(at, path.split("/")[4:]) for at, path in paths] == [
        (0, ["partition-0", "epoch1-attempt1-executor0"]),
        (0, ["partition-0", "epoch2-attempt1-executor0"]),
        (1, ["partition-1", "epoch1-attempt1-executor0"]),
    ]


def test_without_the_newest_file_an_older_epoch_must_do() -> None:
    group = Group()
    files = two_epochs(group)
    newest = chain_of(files)[-1]
    group.checkpoints.drop(newest.location)

    loaded = group.start(files)

    assert isinstance(loaded, TasksUnloadable)
    assert loaded.location == newest.location


def test_option_may_be_switched_on_later_and_off_again() -> None:
    """The first epoch with it puts everything into the changelog; one without forgets it."""
    group = Group(has_changelog=False)
    files = two_epochs(group)
    group.has_changelog = True
    group.start(files)

    on = group.run(3, {B: {b"n": b"3"}})
    group.checkpoints.drop(chain_of(on)[0].location)
    group.start(on)
    rebuilt = group.state
    group.has_changelog = False
    group.start(on)
    off = group.run(4, {B: {b"n": None}})

    assert rebuilt == {A: {b"x": b"1"}, B: {b"z": b"1", b"n": b"3"}}
    assert changelog_of(off) == ()
    assert isinstance(group.start(off), TasksLoaded)
    assert group.state == AFTER_TWO


def test_damage_found_when_files_are_rewritten_is_healed(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(most=2)
    files = two_epochs(group)
    group.checkpoints.drop(chain_of(files)[-1].location)

    third = group.run(3, {A: {b"w": b"3"}})

    assert len(chain_of(third)) == 1
    assert isinstance(group.start(third), TasksLoaded)
    assert group.state == {A: {b"x": b"1", b"w": b"3"}, B: {b"z": b"1"}}
    assert "epoch 3 is written from the changelog" in caplog.text


def test_damage_is_healed_by_what_tasks_have_in_memory() -> None:
    """The epoch is not stored; the next one is when all tasks have handed over all they have."""
    group = Group(most=2, has_changelog=False)
    newest = chain_of(two_epochs(group))[-1].location
    group.checkpoints.drop(newest)
    group.end(3, {A: {b"w": b"3"}})

    failed = group.store()
    group.end(4, {B: {b"z": None, b"v": b"4"}}, whole=[A])
    too_early = group.files.next_job()
    group.end(5, {A: {b"x": None}}, whole=[B])
    fifth = group.store()
    healed = group.start(fifth) if isinstance(fifth, tuple) else fifth

    assert isinstance(failed, EpochFailed)
    assert failed.damaged == newest
    assert too_early is None
    assert isinstance(healed, TasksLoaded)
    assert [file.location.rpartition("/")[2] for file in healed.chain] == [
        "epoch5-attempt1-executor0"
    ]
    assert group.state == {A: {b"w": b"3"}, B: {b"v": b"4"}}


def test_a_store_that_is_away_is_no_damage() -> None:
    """Nothing of the application is there: the folder is not mounted, and what it has is whole."""
    group = Group(most=2, has_changelog=False)
    two_epochs(group)
    there, group.checkpoints = group.checkpoints, MemoryCheckpoints()
    group.end(3, {A: {b"w": b"3"}})

    failed = group.store()
    group.checkpoints = there
    third = group.store()

    assert isinstance(failed, EpochFailed)
    assert not failed.damaged
    assert isinstance(third, tuple)
    assert isinstance(group.start(third), TasksLoaded)
    assert group.state == {A: {b"x": b"1", b"w": b"3"}, B: {b"z": b"1"}}


def test_segments_of_an_attempt_that_is_over_do_not_count() -> None:
    """A zombie goes on and stores the same epoch; nobody lists what it stores."""
    group = Group()
    files = two_epochs(group)
    zombie = group.files
    group.start(files)
    living, group.files = group.files, zombie
    group.run(3, {A: {b"x": b"zombie"}})
    group.files = living
    group.state = {task: dict(cells) for task, cells in AFTER_TWO.items()}

    third = group.run(3, {A: {b"x": b"living"}})
    group.checkpoints.drop(files[0].location)
    loaded = group.start(third)

    assert isinstance(loaded, TasksLoaded)
    assert loaded.is_rebuilt
    assert group.state == {A: {b"x": b"living"}, B: {b"z": b"1"}}


# -- whatever happens ------------------------------------------------------------------------

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
CHANGES = st.dictionaries(KEYS, st.one_of(st.none(), st.binary(max_size=30)), max_size=3)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["stored", "stored", "stored", "given up", "restart", "lost", "switch"]),
        CHANGES,
        CHANGES,
        st.integers(0, 1 << 30),
    ),
    max_size=20,
)


def lose(group: Group, files: tuple[SnapshotFile, ...], seed: int) -> None:
    rng = random.Random(seed)
    for file in chain_of(files)[:-1]:
        harms: list[Callable[[], object]] = [
            lambda: None,
            lambda at=file.location: group.checkpoints.drop(at),  # type: ignore[misc]
            lambda at=file.location: group.checkpoints.save(at, [b"x"]),  # type: ignore[misc]
        ]
        rng.choice(harms)()


@settings(max_examples=100)
@given(STEPS, st.integers(1, 4))
def test_state_is_exact_whatever_is_lost_but_heads(
    steps: list[tuple[str, Changes, Changes, int]], most: int
) -> None:
    """After any epochs, aborts, compactions and restarts; also twice in a row."""
    group = Group(most=most)
    complete: list[tuple[tuple[SnapshotFile, ...], dict[TaskId, Cells]]] = [
        ((), {task: {} for task in TASKS})
    ]
    for epoch, (step, of_a, of_b, seed) in enumerate(steps, start=1):
        files, expected = complete[-1]
        if step in ("restart", "lost"):
            if step == "lost":
                lose(group, files, seed)
            assert isinstance(group.start(files), TasksLoaded)
            assert group.state == expected
            continue
        group.end(epoch, {A: of_a, B: of_b})
        if step == "given up":
            continue
        stored = group.store()
        assert isinstance(stored, tuple), stored.reason
        if step == "stored":  # Otherwise another executor was too late: the epoch is given up.
            complete.append((stored, {task: dict(cells) for task, cells in group.state.items()}))
        assert len(changelog_of(stored)) <= most * len(TASKS)


@settings(max_examples=80)
@given(STEPS, st.integers(1, 4), st.integers(0, 1 << 30))
def test_each_epoch_can_be_gone_back_to_from_either(
    steps: list[tuple[str, Changes, Changes, int]], most: int, seed: int
) -> None:
    group = Group(most=most)
    complete: list[tuple[tuple[SnapshotFile, ...], dict[TaskId, Cells]]] = []
    for epoch, (step, of_a, of_b, _) in enumerate(steps, start=1):
        group.end(epoch, {A: of_a, B: of_b})
        if step == "given up":
            continue
        stored = group.store()
        assert isinstance(stored, tuple), stored.reason
        complete.append((stored, {task: dict(cells) for task, cells in group.state.items()}))
    rng = random.Random(seed)
    for files, expected in complete:
        bad = changelog_of(files) if rng.random() < 0.5 else chain_of(files)[:-1]
        whole = {each.location: group.checkpoints.load(each.location) for each in bad}
        for each in bad:
            group.checkpoints.drop(each.location)
        loaded = group.start(files)
        assert isinstance(loaded, TasksLoaded)
        assert group.state == expected
        for name, data in whole.items():
            group.checkpoints.save(name, [data])


@settings(max_examples=200)
@given(STEPS, st.integers(1, 4), st.booleans())
def test_state_is_exact_after_any_damage(
    steps: list[tuple[str, Changes, Changes, int]],
    most: int,
    has_changelog: bool,  # noqa: FBT001 -- drawn
) -> None:
    """Files, segments and heads: tasks go on, and what they store next can be gone back to."""
    group = Group(most=most, has_changelog=has_changelog)
    whole = list[TaskId]()
    for epoch, (step, of_a, of_b, seed) in enumerate(steps, start=1):
        rng = random.Random(seed)
        if step == "lost":
            for name in group.checkpoints.names(f"{PREFIX}/epochs") + group.checkpoints.names(
                f"{PREFIX}/changelog"
            ):
                if rng.random() < 0.5:
                    group.checkpoints.save(name, [b"x"])
        group.end(epoch, {A: of_a, B: of_b}, whole=whole)
        if step == "given up":
            continue
        if (job := group.files.next_job()) is None:
            assert whole == []
            whole = list(TASKS)
            continue
        group.files.on_failed()
        stored = group.store()
        assert isinstance(stored, tuple) or stored.damaged
        whole = [] if isinstance(stored, tuple) else list(TASKS)
        expected = {task: dict(cells) for task, cells in group.state.items()}
        if job.rebased or job.kept or not isinstance(stored, tuple):
            continue  # Files that were there before may be damaged.
        assert isinstance(group.start(stored), TasksLoaded)
        assert group.state == expected


# -- partitions ------------------------------------------------------------------------------


def an_app_master(
    checkpoints: MemoryCheckpoints, launch: int, dag: Dag, *, is_on: bool
) -> AppCheckpoints:
    made = AppCheckpoints(
        checkpoints, prefix=PREFIX, launch=launch, segments_max=8, wall_ms=lambda: 0
    )
    made.open(dag, {})
    if is_on:
        made.give_partitions(dag)
    return made


def a_dag(parallelism: int) -> Dag:
    app = gp.StreamApp("one", parallelism=parallelism)
    app.read(gp.collection([1], partitions=parallelism)).write(gp.to_list([]))
    return app.build().dag


def partitions_in(master: AppCheckpoints, dag: Dag) -> list[int | None]:
    launch = LaunchTasks(
        region=0,
        version=1,
        attempt=1,
        tasks=tuple(TaskLaunch(task_id=task, session=SessionId(1)) for task in dag.tasks()),
    )
    return [each.partition for each in master.with_partitions(launch).tasks]


def test_executors_are_told_the_partitions_in_the_coordinator_log() -> None:
    """Each task has one of its own, and keeps it; with the option off there is none."""
    checkpoints, dag = MemoryCheckpoints(), a_dag(3)
    first = an_app_master(checkpoints, 1, dag, is_on=True)
    off = an_app_master(checkpoints, 2, dag, is_on=False)
    again = an_app_master(checkpoints, 3, dag, is_on=True)

    told = partitions_in(first, dag)

    assert sorted(map(str, told)) == [str(at) for at in range(len(told))]
    assert partitions_in(again, dag) == told
    assert set(partitions_in(off, dag)) == {None}
