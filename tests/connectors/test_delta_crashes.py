"""Whatever fails, and whoever goes on that was given up: a Delta table has each row once."""

from random import Random
from typing import Any, cast

import pytest

from gearpy.connectors.delta.writer import DeltaOptions, DeltaWriter
from gearpy.testing.writer_world import EpochWorld, RowPlace
from tests.connectors.delta_build import MemoryLog, MemoryTable
from tests.connectors.table_build import a_batch, table_options

STEPS = 80


class DeltaPlace(RowPlace):
    def __init__(self, rng: Random) -> None:
        self.table = MemoryTable()
        super().__init__(self.table)
        self.rng = rng

    def writer(self) -> DeltaWriter:
        return DeltaWriter(
            cast("Any", MemoryLog(self.table)),
            self.table.folder,
            table_options("delta_table", partition_by="p"),
            DeltaOptions(url="memory"),
            task=0,
            rng=self.rng,
            pause=lambda _: None,
        )

    def numbers(self) -> list[int]:
        return [row["n"] for row in self.table.rows()]


class DeltaWorld(EpochWorld):
    """A file has its name from the beginning, so who was given up may find it taken."""

    harmless = (*EpochWorld.harmless, FileExistsError)


@pytest.mark.parametrize("seed", range(12))
def test_readers_see_each_row_once(seed: int) -> None:
    rng = Random(seed)
    world = DeltaWorld(DeltaPlace(rng), rng, batch=a_batch)

    for _ in range(STEPS):
        world.step()
