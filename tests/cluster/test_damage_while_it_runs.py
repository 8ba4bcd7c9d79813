"""Damage in stored files while an application runs, before a change of it and without one."""

import itertools
from contextlib import suppress
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.worker import executor_role
from gearpy.config.load import from_overrides
from gearpy.errors import ChangeFailed
from gearpy.messages.client import DescribeApplication
from tests.eventually import eventually

_LONG_S = 120
_KEYS = 50


def totals() -> gp.StreamApp:
    app = gp.StreamApp("totals")
    numbers = app.read(gp.generate(itertools.count, rate=100), name="numbers")
    by_rest = numbers.key_by(lambda number: number % _KEYS)
    sums = by_rest.map_with_state(lambda total, n: (total + n, total), initial=0, name="total")
    sums.write(gp.to_list([]), name="show")
    return app


def damage_all(folder: Path) -> int:
    """Turn a byte of each stored file around; return how many there were.

    Others may be written or dropped at this moment.
    """
    damaged = 0
    for file in [each for each in folder.rglob("[!.]*") if "epochs" in each.parts]:
        with suppress(FileNotFoundError, IsADirectoryError), file.open("r+b") as stored:
            middle = file.stat().st_size // 2
            stored.seek(middle)
            byte = stored.read(1)
            stored.seek(middle)
            stored.write(bytes([byte[0] ^ 0xFF]))
            damaged += 1
    return damaged


def a_cluster(tmp_path: Path, **settings: str) -> LocalCluster:
    config = from_overrides(
        {
            "log.folder": str(tmp_path / "log"),
            "checkpoint.folder": str(tmp_path / "stored"),
            "checkpoint.interval-ms": "1000",
            **settings,
        }
    )
    return LocalCluster(config, slots=8, durable=True)


@pytest.mark.parametrize("backend", ["heap", "disk"])
def test_what_is_damaged_is_stored_anew_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """It is told once, with the file; epochs go on, and the state in them is exact."""
    monkeypatch.setattr(executor_role, "_CHAIN_FILES_MAX", 4)
    settings = {"checkpoint.interval-ms": "100", "state.backend": backend}
    with a_cluster(tmp_path, **settings) as cluster, cluster.submitted(totals()) as running:
        eventually(lambda: running.summary().progress.epoch > 1, within_s=_LONG_S)
        assert damage_all(tmp_path / "stored")

        def told() -> list[str]:
            failures = cluster.client.ask(DescribeApplication(app_id=running.app_id)).failures
            return [each.error.cause for each in failures]

        eventually(told, within_s=_LONG_S)
        epoch = running.summary().progress.epoch
        eventually(lambda: running.summary().progress.epoch > epoch + 8, within_s=_LONG_S)
        (damage,) = told()
        restarts = running.summary().progress.restarts
        running.shutdown()
    kept = gp.stored_state(tmp_path / "stored", "totals", "total").to_pylist()

    assert "the checksum" in damage or "SHA-256" in damage
    assert "/epochs/region0/epoch" in damage
    assert "for task " in damage
    assert "could go on from none of its stored epochs" in damage
    assert "stores anew what the tasks of executor 0 have in memory" in damage
    assert restarts == 0
    assert len(kept) == _KEYS
    found = {row["key"]: row["value"] for row in kept}
    turns = {key: _turns(key, total) for key, total in found.items()}
    assert max(turns.values()) - min(turns.values()) <= 1


def _turns(key: int, total: int) -> int:
    """Return how many numbers with this rest, from the first one on, have this sum."""
    count = sums = 0
    while sums < total:
        sums += key + count * _KEYS
        count += 1
    assert sums == total, (key, total)
    return count


def test_the_version_that_runs_goes_on(tmp_path: Path) -> None:
    with a_cluster(tmp_path) as cluster, cluster.submitted(totals()) as running:
        eventually(lambda: running.summary().progress.epoch > 0, within_s=_LONG_S)

        assert damage_all(tmp_path / "stored")
        with pytest.raises(ChangeFailed) as failed:
            running.scale(total=3).wait()

        assert "it cannot begin with what is stored: " in str(failed.value)
        assert "/epochs/region0/" in str(failed.value)
        assert "; a restart of region 0 could go on from none of its stored" in str(failed.value)
        before = running.summary().progress.records_in
        eventually(lambda: running.summary().progress.records_in > before, within_s=_LONG_S)
        assert running.summary().progress.restarts == 0
        running.shutdown()
