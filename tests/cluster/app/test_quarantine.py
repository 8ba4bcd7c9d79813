"""Records that are given back to their operators count, whatever restarts just then."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import gearpy as gp
from gearpy.cluster.app.quarantine import AppReplays
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.ids import AppId, TaskId
from gearpy.messages.app import BeginEpoch
from gearpy.messages.client import QuarantinedRecord
from gearpy.messages.summaries import ErrorCard
from tests.core.manager_bench import Bench
from tests.eventually import eventually

WITHIN_S = 60.0


def test_a_record_that_was_given_back_survives_a_restart_at_once(tmp_path: Path) -> None:
    """No epoch has it yet, and no source reads it again."""
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
        eventually(lambda: client.quarantined(running.app_id), within_s=WITHIN_S)
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
