"""A program that counts numbers, of which several versions run on a cluster in this process."""

from pathlib import Path
from typing import Final

from gearpy.cluster.client.client import RunningApplication
from gearpy.config.load import load
from gearpy.config.schema import Config
from gearpy.messages.client import Artifact
from tests.eventually import eventually

_PROGRAM: Final = """\
import time
import gearpy as gp

class Numbers(gp.Source):
    replayable = True

    def partitions(self):
        return ["0"]

    def open(self, partition, resume):
        return Reader(resume or 0)

class Reader(gp.SourceReader):
    def __init__(self, at):
        self.at = at

    def read_batch(self, max_records):
        time.sleep(0.02)
        self.at += 3
        values = [self.at - 3, self.at - 2, self.at - 1]
        return gp.Batch(values, values)

    def snapshot(self):
        return self.at

def count(before, number):
    return before + 1, (number % 5, COUNTED)

app = gp.StreamApp("numbers")
read = app.read(Numbers(), name="numbers")
keyed = read.key_by(lambda number: number % 5, parallelism=2, ordered=False)
keyed.map_with_state(count, initial=0, name=NAME).write(gp.to_list([]), name="show")
"""
SETTINGS: Final = {"checkpoint.interval-ms": "300", "application.record-input-bytes": "100000"}


def program(
    folder: Path, name: str, *, counted: str = "before + 1", step: str = "count"
) -> Artifact:
    path = folder / f"{name}.py"
    path.write_text(_PROGRAM.replace("COUNTED", counted).replace("NAME", repr(step)))
    return Artifact(kind="file", location=str(path))


def wait_for_epochs(running: RunningApplication) -> None:
    def is_there() -> bool:
        summary = running.summary()
        assert summary.status != "failed", summary.cause
        return summary.progress.epoch > 1

    eventually(is_there, within_s=120)


def configured(*settings: str) -> Config:
    pairs = (each.partition("=") for each in settings)
    return load(env={}, overrides={key: value for key, _, value in pairs})
