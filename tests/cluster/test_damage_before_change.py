"""Damage in the files that a change would begin with: found before anything ends for it."""

import itertools
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.config.load import from_overrides
from gearpy.errors import ChangeFailed
from tests.eventually import eventually

_LONG_S = 120


def totals() -> gp.StreamApp:
    app = gp.StreamApp("totals")
    numbers = app.read(gp.generate(itertools.count, rate=100), name="numbers")
    by_rest = numbers.key_by(lambda number: number % 50)
    sums = by_rest.map_with_state(lambda total, n: (total + n, total), initial=0, name="total")
    sums.write(gp.to_list([]), name="show")
    return app


def damage_all(folder: Path) -> int:
    """Turn a byte of each stored file around; return how many there were."""
    files = [each for each in folder.rglob("*") if each.is_file() and "epochs" in each.parts]
    for file in files:
        stored = bytearray(file.read_bytes())
        stored[len(stored) // 2] ^= 0xFF
        file.write_bytes(stored)
    return len(files)


def test_the_version_that_runs_goes_on(tmp_path: Path) -> None:
    """Its tasks have all in memory, and none of them is stopped for a change that cannot be."""
    config = from_overrides(
        {
            "log.folder": str(tmp_path / "log"),
            "checkpoint.folder": str(tmp_path / "stored"),
            "checkpoint.interval-ms": "1000",
        }
    )
    with (
        LocalCluster(config, slots=8, durable=True) as cluster,
        cluster.submitted(totals()) as running,
    ):
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
