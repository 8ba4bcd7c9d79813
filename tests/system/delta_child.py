"""A process that writes epochs into tables, to be killed at any moment.

Its coordinator is a file, which is replaced when an epoch is complete.
"""

import json
import sys
from pathlib import Path
from typing import Any

from gearpy.connectors.delta_table import delta_table
from gearpy.connectors.hive_folder import hive_folder
from gearpy.messages.data import Batch
from gearpy.task.api import TransactionalWriter

ROWS = 20  # Of an epoch.
EPOCHS = 60


def main(folder: Path) -> None:
    """Go on until all epochs are shown in both tables."""
    file = folder / "complete.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    epoch, incarnation = known.get("epoch", 0), known.get("incarnation", 0) + 1
    prepared = [{int(n): each for n, each in every.items()} for every in known.get("prepared", [])]
    _replace(file, known | {"incarnation": incarnation})
    sinks = (
        delta_table(folder / "delta", partition_by="p"),
        hive_folder(folder / "hive", partition_by="p"),
    )
    writers = [sink.open(0, 1) for sink in sinks]
    for writer, each in zip(writers, prepared or [{}, {}], strict=True):
        assert isinstance(writer, TransactionalWriter)
        writer.recover(each, epoch=epoch, run="r", incarnation=incarnation)
    _say("begun")
    while epoch < EPOCHS:
        first, epoch = epoch * ROWS, epoch + 1
        rows = [{"n": n, "p": n % 2} for n in range(first, first + ROWS)]
        told: list[dict[int, Any]] = []
        for writer in writers:
            assert isinstance(writer, TransactionalWriter)
            writer.write_batch(Batch(rows, [0] * ROWS))
            told.append({epoch: writer.prepare(epoch)})
        _replace(file, {"epoch": epoch, "incarnation": incarnation, "prepared": told})
        for writer, mine in zip(writers, told, strict=True):
            assert isinstance(writer, TransactionalWriter)
            writer.commit(epoch, mine[epoch])
    _say("done")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _replace(file: Path, content: dict[str, Any]) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content))
    new.replace(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
