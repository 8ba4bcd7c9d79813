"""Which tasks of another graph take over which key groups, in which files."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.stable_hash import KEY_GROUPS, task_of_group
from gearpy.core.dag.graph import Dag, EdgeSpec, ProcessorSpec, StepSpec
from gearpy.core.dag.state_moves import layout_of
from gearpy.core.dag.taken_state import TakenState
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import SnapshotFile

TASK_GROUP = KEY_GROUPS


def a_dag(*processors: str, parallelism: Sequence[int] = (), joined: bool = True) -> Dag:
    """Return processors with steps, such as ``"a b"``, which all keep something; one region."""
    specs = {
        ProcessorId(number): ProcessorSpec(
            id=ProcessorId(number),
            name=steps,
            parallelism=parallelism[number] if parallelism else 1,
            steps=tuple(StepSpec(id=name, keeps=name) for name in steps.split()),
        )
        for number, steps in enumerate(processors)
    }
    edges = tuple(
        EdgeSpec(source=ProcessorId(n), target=ProcessorId(n + 1))
        for n in range(len(processors) - 1)
    )
    return Dag(0, specs, edges if joined else ())


def a_file(name: str, *tasks: TaskId) -> SnapshotFile:
    return SnapshotFile(location=name, sha256="", tasks=tasks)


def a_manifest(*files: SnapshotFile, region: int = 0, epoch: int = 5) -> Manifest:
    return Manifest(region=region, epoch=epoch, attempt=1, clock_ms=0, snapshots=files)


def tasks(dag: Dag, processor: int = 0) -> tuple[TaskId, ...]:
    return dag.tasks_of(ProcessorId(processor))


def all_files(taken: TakenState, dag: Dag) -> tuple[SnapshotFile, ...]:
    return taken.files(dag.order)


def owners(file: SnapshotFile, source: TaskId, group: int) -> list[TaskId]:
    return [
        each.task
        for each in file.taken
        if each.source == source and each.first <= group <= each.last and each.task in file.tasks
    ]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_each_key_group_goes_to_the_task_that_it_is_dealt_to(parallelism: list[int]) -> None:
    """However often the number of tasks has changed since the file was stored."""
    dags = [a_dag("a", parallelism=[each]) for each in parallelism]
    raw = tasks(dags[0])
    file = a_file("f", *raw)
    for before, after in pairwise(dags):
        (file,) = all_files(TakenState([a_manifest(file)], layout_of(before), after), after)

    if len(set(parallelism)) == 1:
        assert {each: owners(file, each, TASK_GROUP) for each in raw} == {e: [e] for e in raw}
    for group in range(0, KEY_GROUPS, 7):
        source = TaskId(0, task_of_group(group, parallelism=parallelism[0]))
        owner = TaskId(0, task_of_group(group, parallelism=parallelism[-1]))
        assert owners(file, source, group) == [owner]


def test_cells_without_a_key_stay_with_their_task_or_go_to_none() -> None:
    two, three = a_dag("a", parallelism=[2]), a_dag("a", parallelism=[3])
    manifest = a_manifest(a_file("f", *tasks(two)))

    (same,) = all_files(TakenState([manifest], layout_of(two), two), two)
    (spread,) = all_files(TakenState([manifest], layout_of(two), three), three)

    assert owners(same, TaskId(0, 1), TASK_GROUP) == [TaskId(0, 1)]
    assert owners(spread, TaskId(0, 1), TASK_GROUP) == []


def test_a_file_lists_only_the_tasks_that_have_something_in_it() -> None:
    four, eight = a_dag("a", parallelism=[4]), a_dag("a", parallelism=[8])
    files = [a_file(f"f{task.task_index}", task) for task in tasks(four)]
    taken = TakenState([a_manifest(*files)], layout_of(four), eight)

    dealt = taken.files(eight.order)
    stored = taken.files(eight.order, lambda task: [1023] if task == TaskId(0, 0) else [])

    assert [[task.task_index for task in file.tasks] for file in dealt] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
    ]
    assert [(file.location, file.tasks) for file in stored] == [("f0", (TaskId(0, 7),))]


def test_what_did_not_count_is_not_taken() -> None:
    two, three = a_dag("a", parallelism=[2]), a_dag("a", parallelism=[3])
    files = [a_file("both", TaskId(0, 0)), a_file("newer", TaskId(0, 1))]

    both, newer = all_files(TakenState([a_manifest(*files)], layout_of(two), three), three)

    assert {each.source for each in both.taken} == {TaskId(0, 0)}
    assert {each.source for each in newer.taken} == {TaskId(0, 1)}


def test_the_oldest_files_of_all_tasks_come_first() -> None:
    dag = a_dag("a", parallelism=[2])
    one, two = tasks(dag)
    files = [a_file("one", one), a_file("one+", one), a_file("two", two), a_file("both", one, two)]

    found = all_files(TakenState([a_manifest(*files)], layout_of(dag), dag), dag)

    assert [each.location for each in found] == ["one", "two", "one+", "both"]


def test_a_task_that_leaves_something_behind_is_copied() -> None:
    before = a_dag("a b")
    manifest = a_manifest(a_file("f", TaskId(0, 0)))
    for after in (a_dag("a"), a_dag("a", "b"), a_dag("a", "b", joined=False)):
        taken = TakenState([manifest], layout_of(before), after)

        (source,) = taken.sources(TaskId(0, 0))
        assert (source.task, source.as_stored) == (TaskId(0, 0), False)
        assert all_files(taken, after) == ()


def test_the_files_of_a_region_that_is_divided_are_copied() -> None:
    before, after = a_dag("a", "b"), a_dag("a", "b", joined=False)
    manifest = a_manifest(a_file("f", TaskId(0, 0), TaskId(1, 0)))

    joined = TakenState([manifest], layout_of(before), before)
    divided = TakenState([manifest], layout_of(before), after)

    assert [each.location for each in all_files(joined, before)] == ["f"]
    assert all_files(divided, after) == ()


def test_a_processor_without_an_epoch_gives_nothing() -> None:
    dag = a_dag("a", "b")
    taken = TakenState([a_manifest(a_file("f", TaskId(0, 0)))], layout_of(dag), dag)

    assert taken.old_tasks(ProcessorId(1)) == []
    assert [each.tasks for each in all_files(taken, dag)] == [(TaskId(0, 0),)]


def test_regions_that_are_joined_take_the_files_of_both() -> None:
    before, after = a_dag("a", "b", joined=False), a_dag("a", "b")
    manifests = [
        a_manifest(a_file("f", TaskId(0, 0)), region=0, epoch=5),
        a_manifest(a_file("g", TaskId(1, 0)), region=1, epoch=7),
    ]

    files = all_files(TakenState(manifests, layout_of(before), after), after)

    assert [each.location for each in files] == ["f", "g"]
