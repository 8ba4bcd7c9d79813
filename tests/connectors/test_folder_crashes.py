"""Whatever fails, and whoever goes on that was given up: readers see each record once."""

import json
from random import Random

import pytest

from gearpy.connectors.folders.json import JsonFolderFormat
from gearpy.connectors.folders.parts import FolderShare
from gearpy.connectors.folders.writer import FolderWriter
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.testing.writer_world import EpochWorld, RowPlace
from tests.connectors.folders.test_writer import text_of
from tests.connectors.table_build import a_batch

STEPS = 120


class FolderPlace(RowPlace):
    def __init__(self) -> None:
        self.folder = MemoryFolder()
        super().__init__(self.folder)
        self.starts = 0

    def writer(self) -> FolderWriter:
        self.starts += 1
        share = FolderShare(task=0, overwrite=self.starts % 2 == 0)
        return FolderWriter("sink", self.folder, JsonFolderFormat(), share)

    def numbers(self) -> list[int]:
        return [json.loads(line)["n"] for line in text_of(self.folder).splitlines()]


@pytest.mark.parametrize("seed", range(100))
def test_readers_see_each_record_once(seed: int) -> None:
    world = EpochWorld(FolderPlace(), Random(seed), batch=a_batch, in_order=True)

    for _ in range(STEPS):
        world.step()
