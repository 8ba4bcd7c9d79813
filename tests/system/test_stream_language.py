"""Windows, joins, columns and coroutines whose results are there once, whatever fails.

The program and its answer are those of ``bin/bench exactly-once --pipeline language``, which does
it to processes.
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.load import load
from tests.bench import columnar_language, numbered, stream_language
from tests.bench.crash import EPOCHS_OFTEN
from tests.eventually import eventually
from tests.system.faulty_tasks import ACTS, EXECUTORS, Faults, Point

RATE: Final = 600.0
_END: Final = 200
_POINTS: Final[tuple[Point, ...]] = ("prepared", "recovered")


# In virtual time: `tests/sim/test_exactly_once.py` and `tests/sim/test_every_step.py`.
@pytest.mark.long
@pytest.mark.parametrize(("cut", "backend"), [("position", "heap"), ("event-time", "disk")])
def test_windows_joins_and_columns_are_exact_whatever_fails(
    tmp_path: Path, cut: str, backend: str
) -> None:
    plan = [(point, act) for act in ACTS for point in _POINTS]
    config = load(env={}, overrides={"transport.secret-file": str(tmp_path / "secret")})
    settings = {
        **EPOCHS_OFTEN,
        "checkpoint.interval-ms": "50",
        "checkpoint.cut": cut,
        "state.backend": backend,
        "state.folder": str(tmp_path / "state"),
    }
    with LocalCluster(config, workers=2, slots=64) as cluster:
        faults = Faults(plan, cluster._system)  # noqa: SLF001 - a client cannot stop actors
        app = stream_language.language_app(tmp_path, rate=RATE, sink=faults.sink, step=faults.step)
        running = cluster.client.submit(
            "language", embed(app.build()), executors=EXECUTORS, config=settings
        )
        # It needs a third of a processor, and for each epoch as much again: less is left at times.
        eventually(lambda: faults.are_over or running.summary().status == "failed", within_s=300)
        end = numbered.end_after(tmp_path, RATE)
        numbered.set_end(tmp_path, end)
        summary = running.wait(120)

    verdict = stream_language.check(tmp_path, end)
    assert (summary.status, faults.done) == ("succeeded", plan)
    assert verdict.is_exact, [str(verdict), *verdict.wrong]


@pytest.mark.parametrize(
    ("language", "app"),
    [
        (stream_language, stream_language.language_app),
        (columnar_language, columnar_language.columnar_app),
    ],
    ids=["rows", "columns"],
)
def test_the_checker_finds_what_is_there_again(
    tmp_path: Path, language: ModuleType, app: Callable[..., gp.StreamApp]
) -> None:
    numbered.set_end(tmp_path, _END)
    gp.run(app(tmp_path, rate=1e6))
    before = language.check(tmp_path, _END)

    found = {}
    for name in language.OUTPUTS:
        path = next(each for each in (tmp_path / name).glob("part-*"))
        again = path.with_name(path.name.replace("part", "put", 1))
        again.write_bytes(path.read_bytes())
        found[name] = language.check(tmp_path, _END)
        again.unlink()

    assert before.is_exact, [str(before), *before.wrong]
    assert not numbered.was_told_too_late(tmp_path), "a folder of results is no sign of that"
    assert all(each.duplicated and not each.is_exact for each in found.values()), found
