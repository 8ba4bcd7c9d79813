"""State that the next version reads before the old one ends: in which rounds."""

from typing import Final

from gearpy.core.app.ahead import ReadingAhead
from gearpy.core.app.decisions import ChangeGivenUp, Command, FellBack, PutInPlace
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch
from gearpy.core.dag.graph import Dag, ProcessorSpec, StepSpec
from gearpy.core.dag.state_moves import layout_of
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import BeginEpoch, LaunchTasks, ReadAhead, SnapshotFile, StateReadAhead
from tests.core.app.test_change import change
from tests.core.manager_bench import A, B, Bench, a_dag, only

ONE, TWO = ExecutorId(4), ExecutorId(5)
SOURCE, SINK = TaskId(0, 0), TaskId(1, 0)


def a_manifest(epoch: int, region: int = 0) -> Manifest:
    first = 2 * region
    files = (
        SnapshotFile(location=f"both{epoch}", sha256="", tasks=(SOURCE, SINK)),
        SnapshotFile(location=f"sink{epoch}", sha256="", tasks=(TaskId(first + 1, 0),)),
        SnapshotFile(location=f"log{epoch}", sha256="", tasks=(SOURCE,), partition=3),
    )
    return Manifest(region=region, epoch=epoch, attempt=1, clock_ms=0, snapshots=files)


def some_ahead() -> ReadingAhead:
    return ReadingAhead(a_dag((1, 1)), {SOURCE: ONE, SINK: TWO})


def answer(ahead: ReadingAhead, epoch: int, now_ms: int, *, by: tuple[ExecutorId, ...]) -> None:
    for executor_id in by:
        message = StateReadAhead(executor_id=executor_id, version=0, region=0, epoch=epoch)
        ahead.on_read(message, now_ms)


def test_each_executor_reads_the_files_of_its_tasks() -> None:
    sends = some_ahead().advance({0: a_manifest(3)}, 1000)

    told = {each.executor_id: each.message for each in sends}
    assert told.keys() == {ONE, TWO}
    for executor_id, task, names in ((ONE, SOURCE, ["both3"]), (TWO, SINK, ["both3", "sink3"])):
        message = told[executor_id]
        assert isinstance(message, ReadAhead)
        assert (message.tasks, message.epoch) == ((task,), 3)
        assert [each.location for each in message.snapshots] == names


def test_without_an_epoch_there_is_nothing_to_read() -> None:
    ahead = some_ahead()

    assert not ahead.advance({}, 1000)
    assert ahead.is_done


def test_a_short_round_is_the_last_one() -> None:
    ahead = some_ahead()
    ahead.advance({0: a_manifest(3)}, 1000)

    answer(ahead, 3, 1100, by=(ONE,))
    was_done = ahead.is_done
    answer(ahead, 3, 1100, by=(TWO,))

    assert not was_done
    assert ahead.is_done
    assert not ahead.wants_epochs


def test_what_has_changed_in_a_long_round_is_read_in_another_one() -> None:
    ahead = some_ahead()
    ahead.advance({0: a_manifest(3)}, 1000)
    answer(ahead, 3, 3000, by=(ONE, TWO))

    wanted = ahead.wants_epochs
    same = ahead.advance({0: a_manifest(3)}, 3100)
    other = ahead.advance({0: a_manifest(4)}, 3150)

    assert wanted
    assert not same
    assert len(other) == 2
    assert ahead.is_done
    assert not ahead.wants_epochs


def test_a_round_is_read_while_the_next_epoch_ends() -> None:
    ahead = some_ahead()
    ahead.advance({0: a_manifest(3)}, 1000)
    answer(ahead, 3, 3000, by=(ONE, TWO))

    ahead.advance({0: a_manifest(4)}, 4000)
    wanted = ahead.wants_epochs
    early = ahead.advance({0: a_manifest(5)}, 4500)
    answer(ahead, 4, 4600, by=(ONE, TWO))
    late = ahead.advance({0: a_manifest(5)}, 4600)

    assert wanted
    assert not early
    assert len(late) == 2
    assert not ahead.is_done


def rounds(ahead: ReadingAhead, *took_ms: int) -> int:
    """Let epochs take so long each to be stored; return how many there were until all was done."""
    now_ms = 1000
    ahead.advance({0: a_manifest(2)}, now_ms)
    answer(ahead, 2, now_ms := now_ms + 9000, by=(ONE, TWO))
    for number, each in enumerate(took_ms):
        if ahead.is_done:
            return number
        now_ms += each
        assert ahead.advance({0: a_manifest(3 + number)}, now_ms)
        answer(ahead, 3 + number, now_ms, by=(ONE, TWO))
    return len(took_ms)


def test_rounds_come_to_an_end() -> None:
    assert rounds(some_ahead(), 9000, 7000, 5000, 3000, 2000, 1500, 1100, 800) == 7
    assert rounds(some_ahead(), 8000, 7000, 6000, 5000) == 2
    assert rounds(some_ahead(), 8000, 150, 100) == 2
    assert rounds(some_ahead(), 150, 100) == 1


def test_an_answer_that_does_not_come_is_not_waited_for_in_the_end() -> None:
    ahead = some_ahead()
    ahead.advance({0: a_manifest(3)}, 1000)
    answer(ahead, 3, 1100, by=(ONE,))

    ahead.advance({0: a_manifest(4)}, 250_000)
    was_done = ahead.is_done
    ahead.advance({0: a_manifest(5)}, 310_000)

    assert not was_done
    assert ahead.is_done


def test_the_last_epoch_is_read_as_soon_as_it_is_stored() -> None:
    early, ahead = some_ahead(), some_ahead()
    ahead.advance({0: a_manifest(3)}, 1000)
    answer(ahead, 3, 1100, by=(ONE, TWO))

    same = ahead.read_last({0: a_manifest(3)})
    last = ahead.read_last({0: a_manifest(4)})
    again = ahead.read_last({0: a_manifest(4)})
    answer(ahead, 4, 9000, by=(ONE, TWO))

    assert not early.read_last({0: a_manifest(4)})
    assert not same
    assert {each.executor_id for each in last} == {ONE, TWO}
    assert not again
    assert ahead.is_done
    assert not ahead.wants_epochs


# -- state that moves --------------------------------------------------------------------------


def a_scaled_dag(parallelism: int) -> Dag:
    spec = ProcessorSpec(
        id=ProcessorId(0),
        name="count",
        parallelism=parallelism,
        steps=(StepSpec(id="count", keeps="counts"),),
    )
    return Dag(0, {spec.id: spec})


def test_tasks_read_the_files_that_they_take_over() -> None:
    before, after = a_scaled_dag(2), a_scaled_dag(4)
    placement = {task: ONE if task.task_index < 3 else TWO for task in after.tasks()}
    ahead = ReadingAhead(after, placement, old=layout_of(before))
    files = tuple(
        SnapshotFile(location=f"of{task.task_index}", sha256="", tasks=(task,))
        for task in before.tasks()
    )
    manifest = Manifest(region=0, epoch=7, attempt=1, clock_ms=0, snapshots=files)

    sends = ahead.advance({0: manifest}, 1000)
    answer(ahead, 7, 1100, by=(ONE, TWO))

    told = {each.executor_id: each.message for each in sends}
    assert told.keys() == {ONE, TWO}
    for executor_id, names in ((ONE, ["of0", "of1"]), (TWO, ["of1"])):
        message = told[executor_id]
        assert isinstance(message, ReadAhead)
        assert [each.location for each in message.snapshots] == names
        assert all(each.taken for each in message.snapshots)
    assert ahead.is_done


def test_nothing_is_waited_for_if_nothing_is_taken_over() -> None:
    before = a_scaled_dag(1)
    after = a_dag((1, 1))
    ahead = ReadingAhead(after, {SOURCE: ONE, SINK: TWO}, old=layout_of(before))

    assert not ahead.advance({0: a_manifest(3)}, 1000)
    assert ahead.is_done


# -- in an application -------------------------------------------------------------------------


def an_epoch(bench: Bench) -> None:
    bench.tick(400)
    bench.end_epoch(0)


def told(commands: list[Command], kind: type) -> list[Send]:
    return [each for each in only(commands, Send) if isinstance(each.message, kind)]


def read_all(bench: Bench, sends: list[Send], after_ms: int) -> list[Command]:
    bench.tick(after_ms)
    done: list[Command] = []
    for each in sends:
        assert isinstance(each.message, ReadAhead)
        message = StateReadAhead(
            executor_id=each.executor_id,
            version=each.message.version,
            region=each.message.region,
            epoch=each.message.epoch,
        )
        done += bench.obey(bench.manager.on_read_ahead(message, bench.now_ms))
    return done


def test_the_old_version_goes_on_until_all_is_read() -> None:
    bench = Bench()
    an_epoch(bench)

    begun = change(bench)
    reads = told(begun, ReadAhead)
    done = read_all(bench, reads, 100)

    assert {each.executor_id for each in reads} == {
        each.executor_id for each in only(begun, Launch)
    }
    assert not told(begun, BeginEpoch)
    assert told(done, BeginEpoch)
    assert done[-1] == PutInPlace()


def test_an_epoch_that_ends_after_a_long_round_is_read_while_the_last_one_ends() -> None:
    """As it was soon stored; a longer one would be followed by another one before."""
    bench = Bench()
    an_epoch(bench)
    reads = told(change(bench), ReadAhead)
    before = len(bench.done)

    read_all(bench, reads, 5000)
    done = bench.end_epoch(0)
    begun = [each.message for each in told(bench.done[before:], BeginEpoch)]

    read = [each.message for each in told(done, ReadAhead)]
    assert [each.epoch for each in read if isinstance(each, ReadAhead)] == [2, 2, 3, 3]
    ends = {each.epoch: each.is_last for each in begun if isinstance(each, BeginEpoch)}
    assert [*ends.values()] == [False, True]
    assert all(each.keeps_files for each in begun if isinstance(each, BeginEpoch))
    assert done[-1] == PutInPlace()


def test_files_are_written_anew_again_when_a_change_was_given_up() -> None:
    bench = Bench()
    an_epoch(bench)
    change(bench)
    region = bench.manager.regions[0]

    kept = region.epochs.keeps_files
    bench.obey(bench.manager.keep("no", bench.now_ms))

    assert kept
    assert not region.epochs.keeps_files


def test_the_places_of_tasks_are_those_of_the_next_version() -> None:
    bench = Bench()
    an_epoch(bench)
    reads = told(change(bench), ReadAhead)
    read_all(bench, reads, 100)

    bench.manager = bench.another(after=bench.manager, manifests=bench.manager.last_manifests())
    bench.begin()

    found = {
        task: each.executor_id
        for each in reads
        for task in each.message.tasks  # type: ignore[union-attr]
    }
    assert found == bench.manager.regions[0].placement
    assert set(found.values()).isdisjoint({A, B})


def an_answer(send: Send, *, damaged: str = "", reason: str = "") -> StateReadAhead:
    assert isinstance(send.message, ReadAhead)
    return StateReadAhead(
        executor_id=send.executor_id,
        version=send.message.version,
        region=send.message.region,
        epoch=send.message.epoch,
        damaged=damaged,
        reason=reason,
    )


_NOT_AGAIN: Final = (
    "a restart of region 0 could go on from none of its stored epochs: see what is damaged with "
    "'gear checkpoint verify', and bring it back if you can"
)


def test_a_change_is_given_up_if_it_cannot_begin_with_what_is_stored() -> None:
    """Before anything ends for it: the version that runs goes on without a restart."""
    for is_file in (True, False):
        bench = Bench()
        an_epoch(bench)
        reads = told(change(bench), ReadAhead)
        assert isinstance(reads[0].message, ReadAhead)
        location = reads[0].message.snapshots[0].location if is_file else ""
        before = len(bench.done)

        answer = an_answer(reads[0], damaged=location, reason="byte 7: no")
        done = bench.obey(bench.manager.on_read_ahead(answer, bench.now_ms))
        done += bench.obey(bench.manager.on_read_ahead(answer, bench.now_ms))

        (given_up,) = only(done, ChangeGivenUp)
        what = f"{location}: byte 7: no; {_NOT_AGAIN}" if is_file else "byte 7: no"
        assert given_up.reason == f"it cannot begin with what is stored: {what}"
        assert not told(bench.done[before:], BeginEpoch)
        assert bench.manager.restarts == 0
        assert not bench.manager.why_unchangeable()


def test_after_damage_a_restart_has_an_epoch_to_go_back_to() -> None:
    """The newest one that does not need the file, however many have been stored since."""
    bench = Bench()
    an_epoch(bench)
    an_epoch(bench)
    region = bench.manager.regions[0]
    whole = region.history.manifests[0].epoch
    reads = told(change(bench), ReadAhead)
    assert isinstance(reads[0].message, ReadAhead)
    damaged = reads[0].message.snapshots[0]
    answer = an_answer(reads[0], damaged=damaged.location, reason="byte 7: no")

    (given_up,) = only(bench.obey(bench.manager.on_read_ahead(answer, bench.now_ms)), ChangeGivenUp)
    for _ in range(4):
        bench.tick(400)
        for executor_id in sorted(region.executors):
            bench.obey(bench.store(region, executor_id, damaged))
    bench.unanswered = {(A, LaunchTasks), (B, LaunchTasks)}
    bench.fail_task(SOURCE)
    bench.tick(1000)
    (fell_back,) = only(bench.damage(A, damaged.location), FellBack)

    assert given_up.reason.endswith(f"; a restart of region 0 would go back to epoch {whole}")
    assert fell_back.to == whole
    assert len(fell_back.epochs) == 2


def test_a_file_that_was_deleted_meanwhile_is_not_damaged() -> None:
    bench = Bench()
    an_epoch(bench)
    reads = told(change(bench), ReadAhead)

    done: list[Command] = []
    for each in reads:
        answer = an_answer(each, damaged="gone", reason="the file is missing")
        done += bench.obey(bench.manager.on_read_ahead(answer, bench.now_ms))

    assert not only(done, ChangeGivenUp)
    assert done[-1] == PutInPlace()
