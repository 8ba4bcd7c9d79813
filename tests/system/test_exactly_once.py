"""Results that are there once, in their order, whatever fails, and whenever.

The program and its answer, which has a closed form, are those of ``bin/bench exactly-once``, which
does the same to processes, a hundred times.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from gearpy.messages.client import GetApplication
from tests.bench import numbered
from tests.bench.crash import EPOCHS_OFTEN
from tests.bench.epoch_signs import EpochSigns
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import DEADLINE_S, eventually
from tests.system.faulty_tasks import ACTS, EXECUTORS, POINTS, Faults

RATE: Final = 600.0


@pytest.mark.parametrize(
    ("cut", "acts"),
    [
        ("position", 1),
        pytest.param("position", len(ACTS), marks=pytest.mark.long),
        pytest.param("event-time", len(ACTS), marks=pytest.mark.long),
    ],
)
def test_results_are_there_once_whatever_fails_at_whichever_step(
    tmp_path: Path, cut: str, acts: int
) -> None:
    """Each step of the commit in two phases, and one or each way to fail there; also recoveries."""
    plan = [
        (point, ACTS[(turn + number) % len(ACTS)])
        for turn in range(acts)
        for number, point in enumerate(POINTS)
    ]
    config = load(env={}, overrides={"transport.secret-file": str(tmp_path / "secret")})
    with LocalCluster(config, workers=2, slots=64) as cluster:
        faults = Faults(plan, cluster._system)  # noqa: SLF001 - a client cannot stop actors
        app = numbered.numbered_app(tmp_path, rate=RATE, sink=faults.sink, step=faults.step)
        settings = {**EPOCHS_OFTEN, "checkpoint.interval-ms": "20", "checkpoint.cut": cut}
        running = cluster.client.submit(
            "numbered", embed(app.build()), executors=EXECUTORS, config=settings
        )
        eventually(lambda: faults.are_over or running.summary().status == "failed", within_s=180)
        end = numbered.end_after(tmp_path, RATE / 2)
        numbered.set_end(tmp_path, end)
        summary = running.wait(DEADLINE_S)

    verdict = numbered.check(tmp_path, end)
    assert (summary.status, faults.done) == ("succeeded", plan)
    assert verdict.is_exact, [str(verdict), *verdict.wrong]


@pytest.mark.long  # Without processes: `test_damaged_checkpoints`.
def test_a_damaged_snapshot_is_told_and_costs_no_result(tmp_path: Path) -> None:
    """The epoch before is gone back to; what was shown since is taken back, and comes again."""
    settings = {**EPOCHS_OFTEN, "checkpoint.interval-ms": "1000"}
    results = tmp_path / "results"
    results.mkdir()
    with ProcessCluster(tmp_path, workers=1, slots=64, settings=settings) as cluster:
        signs = EpochSigns(tmp_path / "checkpoints", results)
        program = Path(numbered.__file__)
        app_id = cluster.submit(program, str(results), str(RATE / 2), executors=EXECUTORS)
        eventually(lambda: signs.newest_shown() >= 3)
        with signs.between_epochs(cluster) as (epoch, (victim, *_)):
            damaged = _flip_a_byte_of(epoch, tmp_path / "checkpoints")
            os.kill(victim, signal.SIGKILL)

        eventually(lambda: signs.newest_shown() > epoch + 1)
        detail = cluster.detail(app_id)
        numbered.set_end(results, end := numbered.end_after(results, RATE / 2))
        eventually(lambda: cluster.client.ask(GetApplication(app_id=app_id)).status == "succeeded")

    verdict = numbered.check(results, end)
    assert verdict.is_exact, [str(verdict), *verdict.wrong]
    told = f"region 0 falls back to epoch {epoch - 1}, as epoch {epoch} cannot be read"
    assert detail is not None
    assert any(told in each.error.cause for each in detail.failures), detail.failures
    logs = "".join(path.read_text() for path in (tmp_path / "logs").rglob("*.log"))
    assert told in logs
    assert damaged in logs
    assert f"back to epoch {epoch - 1}, so" in logs  # Sinks say what they take back.


_END: Final = 400


def _write_pending(lines: list[str], folder: Path) -> list[str]:
    (folder / "_pending" / "left.jsonl.pending").touch()
    return lines


_FAILINGS: Final[dict[str, Callable[[list[str], Path], list[str]]]] = {
    "lost": lambda lines, _: lines[:-1],
    "duplicated": lambda lines, _: [*lines, lines[0]],
    "out_of_order": lambda lines, _: [*lines[1:], lines[0]],
    "pending": _write_pending,
}


@pytest.mark.parametrize("failing", _FAILINGS)
def test_the_checker_finds_each_failing(tmp_path: Path, failing: str) -> None:
    numbered.set_end(tmp_path, _END)
    gp.run(numbered.numbered_app(tmp_path, rate=1e6))
    before = numbered.check(tmp_path, _END)
    path = next((tmp_path / "records").glob("*.jsonl"))

    lines = _FAILINGS[failing](path.read_text().splitlines(), tmp_path / "records")
    path.write_text("\n".join(lines))
    after = numbered.check(tmp_path, _END)

    names = ("lost", "duplicated", "out_of_order", "pending")
    assert before.is_exact
    assert not after.is_exact
    assert {name: getattr(after, name) for name in names} == {
        name: int(name == failing) for name in names
    }


def test_the_checker_finds_a_wrong_result(tmp_path: Path) -> None:
    numbered.set_end(tmp_path, _END)
    gp.run(numbered.numbered_app(tmp_path, rate=1e6))
    path = next((tmp_path / "sums").glob("*.jsonl"))

    path.write_text(path.read_text().replace('"so_far":', '"so_far":1', 1))
    verdict = numbered.check(tmp_path, _END)

    assert len(verdict.wrong) == 1
    assert not verdict.is_exact


def _flip_a_byte_of(epoch: int, checkpoints: Path) -> str:
    """Damage a file of an epoch; return its name."""
    path = next(checkpoints.glob(f"*/app*/epochs/*/epoch{epoch}-*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return path.name


def test_an_end_lies_ahead_and_one_that_does_not_is_told(tmp_path: Path) -> None:
    records = numbered.numbers(0, tmp_path)
    for _ in range(numbered.LOOK_EVERY * 3 + 1):
        _, n = next(records)

    assert numbered.end_after(tmp_path, 0) > n
    assert not numbered.was_told_too_late(tmp_path)
    numbered.set_end(tmp_path, numbered.LOOK_EVERY)
    with pytest.raises(ValueError, match="told at 200, too late"):
        list(records)
    assert numbered.was_told_too_late(tmp_path)
