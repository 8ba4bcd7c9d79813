"""Deaths at one place of the input, as an app master sees them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gearpy.core.app.decisions import Ended, StoreManifest, Survived
from gearpy.core.app.deployment import Send
from gearpy.core.dag.graph import Dag
from gearpy.ids import ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import EpochStored, LaunchTasks, SnapshotFile, SourceProbe, TaskOffsets
from tests.core.manager_bench import A, B, Bench, a_dag, only

CRASH = "killed by signal 11 (SIGSEGV)\nFatal Python error"


def a_bench(*regions: tuple[int, int], steps_over: bool = False) -> Bench:
    plain = a_dag(*regions or [(1, 1)])
    sources = {ProcessorId(2 * at) for at in range(len(regions) or 1)}
    processors = {
        pid: replace(each, replays=pid in sources, partitions='["day.jsonl"]')
        for pid, each in plain.processors.items()
    }
    dag = Dag(plain.version, processors, plain.edges)
    return Bench(dag=dag, executors=1 if not regions else 2, steps_over=steps_over)


def end_epoch_at(bench: Bench, place: bytes, *, region: int = 0) -> None:
    """Let an epoch be complete with the source of a region at a place."""
    bench.tick(500)
    of = bench.manager.regions[region]
    begin = bench.announced(of)
    for executor_id in sorted(of.executors):
        tasks = tuple(task for task, at in of.placement.items() if at == executor_id)
        offsets = [
            TaskOffsets(task_id=task, offsets={"day.jsonl": place})
            for task in tasks
            if task in bench.manager.regions.sources
        ]
        message = EpochStored(
            executor_id=executor_id,
            attempt=begin.attempt,
            epoch=begin.epoch,
            snapshots=(SnapshotFile(location=f"{begin.attempt}", sha256="", tasks=tasks),),
            offsets=tuple(offsets),
        )
        bench.obey(bench.manager.on_epoch_stored(message, bench.now_ms))


def die(bench: Bench, executor_id: ExecutorId = A, cause: str = CRASH) -> list[object]:
    """Let a process end; return what follows until another one runs."""
    return [*bench.lose(executor_id, cause), *bench.tick(3_000)]


def probes(commands: Sequence[object]) -> list[SourceProbe]:
    sent = [each.message for each in commands if isinstance(each, Send)]
    return [p for each in sent if isinstance(each, LaunchTasks) for p in each.probes]


def test_the_second_death_at_a_place_names_it_and_is_the_last() -> None:
    bench = a_bench()
    end_epoch_at(bench, b"line 7")
    end_epoch_at(bench, b"line 8")

    first = die(bench)
    second = die(bench)

    (survived,) = [each for each in first if isinstance(each, Survived)]
    assert survived.error.cause == f"executor 0 lost: {CRASH}"
    (ended,) = [each for each in second if isinstance(each, Ended)]
    assert ended.cause is not None
    assert ended.cause.cause == (
        "executor 0 lost: killed by signal 11 (SIGSEGV), again at one place of its input: p0 "
        "reads on from day.jsonl; another restart would not help: set application.on-error to "
        "'quarantine', to have the record found and put aside\nFatal Python error"
    )
    assert bench.manager.restarts == 1


def test_before_the_first_epoch_the_place_is_the_beginning() -> None:
    bench = a_bench()
    die(bench)

    (ended,) = [each for each in die(bench) if isinstance(each, Ended)]

    assert ended.cause is not None
    assert "p0 reads on from the beginning of day.jsonl; another" in ended.cause.cause


def test_what_has_moved_on_has_its_restarts() -> None:
    """Two epochs, or a long time, between two deaths: they need not be of one cause."""
    bench = a_bench()
    for number in range(4):
        end_epoch_at(bench, b"a%d" % number)
        end_epoch_at(bench, b"b%d" % number)
        assert not only(die(bench), Ended)  # type: ignore[arg-type] # of all commands

    assert bench.manager.restarts == 4


def test_a_process_that_somebody_kills_says_nothing_of_the_input() -> None:
    bench = a_bench(steps_over=True)
    for _ in range(3):
        told = die(bench, cause="killed by signal 9 (SIGKILL)")
        assert probes(told) == []

    assert bench.manager.restarts == 3


def test_a_search_reads_less_each_time_and_costs_no_restart() -> None:
    bench = a_bench(steps_over=True)
    die(bench)
    sizes = []
    for _ in range(4):
        (probe,) = probes(die(bench))
        sizes.append((probe.records, probe.partitions, probe.leaves_out))
        end_epoch_at(bench, b"7")
    (alone,) = probes(die(bench))
    end_epoch_at(bench, b"7")
    (left_out,) = probes(die(bench))

    assert sizes == [(size, None, "") for size in (1024, 128, 16, 1)]
    assert (alone.partitions, alone.leaves_out) == (("day.jsonl",), "")
    assert (left_out.partitions, left_out.leaves_out) == (("day.jsonl",), "record")
    assert left_out.cause == "killed by signal 11 (SIGSEGV)"
    assert bench.manager.restarts == 1


def test_when_it_was_left_out_all_begins_again_without_it() -> None:
    bench = a_bench(steps_over=True)
    die(bench)
    for _ in range(6):
        die(bench)
        end_epoch_at(bench, b"7")

    end_epoch_at(bench, b"8")
    (after,) = probes([each for each in bench.done if isinstance(each, Send)][-40:])[-1:]

    assert (after.records, after.partitions, after.leaves_out) == (1, None, "")
    assert bench.states == ["running"]


def test_an_epoch_of_a_search_waits_for_a_late_death() -> None:
    bench = a_bench(steps_over=True)
    die(bench)
    die(bench)
    end_epoch_at(bench, b"7")
    region = bench.manager.regions[0]
    stored_ms, before = bench.now_ms, bench.announced(region).epoch
    region.epochs.is_wanted = True
    while bench.announced(region).epoch == before:
        bench.tick(100)

    assert bench.now_ms - stored_ms >= 300


def test_regions_of_one_process_are_searched_together() -> None:
    bench = a_bench((1, 1), (1, 1), steps_over=True)
    of_a = [r.number for r in bench.manager.regions if A in r.executors]
    die(bench)

    told = probes(die(bench))

    assert {probe.task_id for probe in told} == {TaskId(2 * number, 0) for number in of_a}


@pytest.mark.parametrize("steps_over", [False, True])
def test_a_reason_that_comes_late_counts(*, steps_over: bool) -> None:
    """A process that does not answer is given up before its worker has told why it is gone."""
    bench = a_bench(steps_over=steps_over)
    followed: list[object] = []
    for _ in range(3):
        launch = bench.launches[A]
        bench.grants = False
        bench.manager.on_executor_silent(A, launch, bench.now_ms)
        bench.tick(600)
        late = bench.manager.on_executor_gone(A, launch, CRASH, bench.now_ms)
        followed += bench.obey(late)
        bench.grants = True
        followed += bench.obey(bench.manager.on_master(is_there=True, now_ms=bench.now_ms))
        followed += bench.tick(3_000)
        if bench.manager.is_ended:
            break
        end_epoch_at(bench, b"7")

    ended = [each for each in followed if isinstance(each, Ended)]
    assert bool(ended) is not steps_over
    assert bench.manager.restarts == 2
    assert [probe.records for probe in probes(followed)] == ([1024, 128] if steps_over else [])


def test_one_attempt_dies_once() -> None:
    """However many of its processes the same record has killed."""
    bench = a_bench((2, 2))
    bench.lose(A, CRASH)
    bench.lose(B, CRASH)

    assert not only(bench.tick(3_000), Ended)
    assert bench.states == ["running"]


def test_a_stored_epoch_of_no_search_changes_nothing() -> None:
    bench = a_bench(steps_over=True)
    die(bench)
    before = len(bench.done)
    end_epoch_at(bench, b"7")
    stored = only(bench.done[before:], StoreManifest)

    assert stored
    assert bench.manager.deaths.on_epoch(bench.manager.regions[0], bench.now_ms) == []
