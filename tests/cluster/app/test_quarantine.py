"""Records that are given back to their operators count, whatever restarts just then."""

import json
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import gearpy as gp
from gearpy.cluster.app.quarantine import AppQuarantine, AppReplays, moved
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.core.coordinator.quarantine import KeptRecord
from gearpy.core.dag.graph import StepSpec
from gearpy.core.dag.state_moves import Layout, StepPlace
from gearpy.ids import AppId, ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import BeginEpoch, RecordQuarantined
from gearpy.messages.client import ListQuarantined, QuarantinedRecord
from gearpy.messages.summaries import ErrorCard
from gearpy.task.api.rejects import OUTPUT, Midway
from gearpy.wire.values.payload import encode_value
from tests.core.manager_bench import Bench
from tests.eventually import eventually

WITHIN_S = 60.0


def test_a_record_that_was_given_back_survives_a_restart_at_once(tmp_path: Path) -> None:
    good, stop, out = tmp_path / "good", tmp_path / "stop", tmp_path / "out"

    def numbers() -> Iterator[int]:
        for number in count():
            if stop.exists():
                return
            yield number

    def check(number: int) -> int:
        if number == 7 and not good.exists():
            raise ValueError(number)
        return number

    app = gp.StreamApp("numbers")
    app.read(gp.generate(numbers, rate=200)).map(check).write(gp.jsonl_folder(out))
    settings = {"application.on-error": "quarantine", "checkpoint.interval-ms": "2000"}
    config = load(env={}, overrides={"transport.secret-file": str(tmp_path / "secret")})
    with LocalCluster(config, workers=1) as cluster:
        client = cluster.client
        running = client.submit("numbers", embed(app.build()), config=settings)
        eventually(lambda: client.ask(ListQuarantined(app_id=running.app_id)), within_s=WITHIN_S)
        before = eventually(lambda: running.summary().progress.epoch, within_s=WITHIN_S)
        good.touch()
        client.replay_quarantined(running.app_id)
        client.replay(running.app_id)
        eventually(lambda: running.summary().progress.epoch > before + 1, within_s=WITHIN_S)
        stop.touch()
        summary = running.wait(WITHIN_S)

    assert summary.status == "succeeded"
    lines = [line for part in out.glob("*.jsonl") for line in part.read_text().splitlines()]
    assert sorted(map(json.loads, lines)) == list(range(len(lines)))


def put_aside(value: bytes, epoch: int) -> RecordQuarantined:
    error = ErrorCard(cause="ValueError", task="0.0", epoch=epoch)
    return RecordQuarantined(
        executor_id=ExecutorId(0), processor_id=0, value=value, event_time_ms=5, error=error
    )


def test_what_comes_again_is_there_once() -> None:
    """As often as it was put aside since the epoch that its region goes back to."""
    quarantine = AppQuarantine(AppId(1), 1, 100)

    def add(value: bytes, epoch: int, region: int = 0) -> bool:
        return quarantine.add(put_aside(value, epoch), region) is not None

    quarantine.on_begin(0, 1, 0)
    assert [add(b"a", 1), add(b"b", 2), add(b"b", 2), add(b"c", 3)] == [True] * 4
    quarantine.on_begin(0, 2, 1)
    quarantine.on_begin(0, 2, 1)  # To another executor.
    assert add(b"b", 5, region=1)
    assert [add(b"b", 5), add(b"b", 5), add(b"b", 5)] == [False, False, True]
    quarantine.on_begin(0, 3, 1)  # The last one, c, had not come.
    assert [add(b"b", 7) for _ in range(4)] == [False, False, False, True]
    assert [add(b"c", 7), add(b"c", 7), add(b"a", 7)] == [False, True, True]


def test_a_restart_puts_no_record_aside_twice(tmp_path: Path) -> None:
    seen, stop = list[int](), tmp_path / "stop"

    def numbers() -> Iterator[int]:
        yield from range(10)
        while not stop.exists():
            yield 1

    def check(number: int) -> int:
        seen.append(number)
        if number in {3, 7}:
            raise ValueError(number)
        return number

    def has_read_7(times: int) -> bool:
        return seen.count(7) == times

    app = gp.StreamApp("again")
    app.read(gp.generate(numbers, rate=200)).map(check).write(gp.to_list([]))
    settings = {"application.on-error": "quarantine", "checkpoint.interval-ms": "60000"}
    config = load(env={}, overrides={"transport.secret-file": str(tmp_path / "secret")})
    with LocalCluster(config, workers=1) as cluster:
        client = cluster.client
        running = client.submit("again", embed(app.build()), config=settings)
        for times in (1, 2, 3):
            eventually(partial(has_read_7, times), within_s=WITHIN_S)
            client.replay(running.app_id)
        stop.touch()
        running.wait(WITHIN_S)
        found = client.ask(ListQuarantined(app_id=running.app_id)).records

    assert [record.error.record for record in found] == ["3", "7"]


def test_nothing_is_given_to_a_task_at_its_end() -> None:
    """Its last epoch may have ended: the record would be written and never shown."""
    bench, told = Bench((1, 1), (1, 1)), list[Any]()
    replays = AppReplays(AppId(1), lambda *sent: told.append(sent), told.append)
    bench.unanswered = {(each, BeginEpoch) for each in bench.launches}
    records = [
        QuarantinedRecord(
            number=number,
            processor_id=pid,
            value=b"",
            event_time_ms=0,
            error=ErrorCard(cause="", task=str(TaskId(pid, 0))),
            at_ms=0,
        )
        for number, pid in enumerate((0, 2))
    ]

    bench.finish(0)

    assert replays.give(bench.manager, records) == (records[1],)
    assert [inject.task_id for _, inject in told] == [TaskId(2, 0)]


def layout(*processors: tuple[int, list[str]]) -> Layout:
    """Return the steps of processors, given as their tasks and the ids of their steps."""
    return {
        name: StepPlace(
            ProcessorId(pid), tasks, at, StepSpec(id=name, name=name, kind="map", keeps="")
        )
        for pid, (tasks, names) in enumerate(processors)
        for at, name in enumerate(names)
    }


def kept(task: str, value: Any) -> KeptRecord:
    record = QuarantinedRecord(
        number=1,
        processor_id=0,
        value=encode_value(value),
        event_time_ms=0,
        error=ErrorCard(cause="ValueError", task=task),
        at_ms=1,
    )
    return KeptRecord(record=record, is_wanted=True)


OLD = layout((1, ["read", "parse"]), (2, ["count", "show", "out"]))


@pytest.mark.parametrize(
    ("task", "value", "new", "expected"),
    [
        ("1.1", "x", OLD, "1.1"),
        ("1.1", "x", layout((1, ["new"]), (1, ["read"]), (2, ["count", "other"])), "2.1"),
        ("1.1", "x", layout((1, ["read"]), (4, ["count"])), ""),  # Its key may be another task's.
        ("1.1", "x", layout((1, ["read"]), (1, ["count"])), "1.0"),
        ("1.1", "x", layout((1, ["read", "count"])), ""),
        ("0.0", "x", layout((1, ["read", "filter", "parse"])), "0.0"),
        ("1.0", Midway(1, "x"), layout((1, ["read"]), (2, ["count", "show", "out", "new"])), "1.0"),
        ("1.0", Midway(1, "x"), layout((1, ["read"]), (2, ["count", "new", "show", "out"])), ""),
        ("1.0", Midway(OUTPUT, "x"), OLD, "1.0"),
        ("1.0", Midway(OUTPUT, "x"), layout((1, ["r"]), (2, ["count", "show", "out", "new"])), ""),
        ("", "x", OLD, ""),
    ],
)
def test_a_record_goes_to_the_task_that_takes_it_in_another_program(
    task: str, value: Any, new: Layout, expected: str
) -> None:
    now = moved(kept(task, value), OLD, new)

    assert now.record.error.task == expected
    assert now.is_wanted == bool(expected)
    assert now.record.value == encode_value(value)
