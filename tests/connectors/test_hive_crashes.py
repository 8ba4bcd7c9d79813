"""Whatever fails, and whoever goes on that was given up: a partitioned folder has each row once."""

from io import BytesIO
from random import Random

# Ships no type information.
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.folders.parts import FolderShare
from gearpy.connectors.partitioned.hive import HiveWriter
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.testing.writer_world import EpochWorld, RowPlace
from tests.connectors.table_build import a_batch, table_options

STEPS = 80


class HivePlace(RowPlace):
    def __init__(self, rng: Random) -> None:
        self.folder = MemoryFolder()
        super().__init__(self.folder)
        self.rng = rng

    def writer(self) -> HiveWriter:
        overwrite = self.rng.random() < 0.5
        options = table_options("hive_folder", partition_by="p")
        return HiveWriter(self.folder, options, FolderShare(task=0, overwrite=overwrite))

    def numbers(self) -> list[int]:
        files = [each.data for name, each in self.folder.files.items() if "=" in name]
        return [n for data in files for n in pq.read_table(BytesIO(data))["n"].to_pylist()]


@pytest.mark.parametrize("seed", range(10))
def test_readers_see_each_row_once(seed: int) -> None:
    rng = Random(seed)
    world = EpochWorld(HivePlace(rng), rng, batch=a_batch)

    for _ in range(STEPS):
        world.step()
