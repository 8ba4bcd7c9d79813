"""A process that writes epochs into tables, to be killed at any moment.

Its coordinator is a file, which is replaced when an epoch is complete. As in gearpy, of two starts
only the later one completes epochs.
"""

import fcntl
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from gearpy.connectors.delta.table import delta_table
from gearpy.connectors.partitioned.hive import hive_folder
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import TransactionalWriter

ROWS = 20  # Of an epoch.
EPOCHS = 60


#: What the coordinator knows: the newest epoch, what was prepared for it, the latest start.
_Known: TypeAlias = dict[str, Any]


def main(folder: Path) -> None:
    file = folder / "complete.json"
    known = _changed(file, lambda known: {**known, "incarnation": known.get("incarnation", 0) + 1})
    epoch, incarnation = known.get("epoch", 0), known["incarnation"]
    prepared = [{int(n): each for n, each in every.items()} for every in known.get("prepared", [])]
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
        complete = {"epoch": epoch, "incarnation": incarnation, "prepared": told}
        if not _is_completed(file, complete):
            _say("given up")
            return
        for writer, mine in zip(writers, told, strict=True):
            assert isinstance(writer, TransactionalWriter)
            writer.commit(epoch, mine[epoch])
    _say("done")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _is_completed(file: Path, epoch: _Known) -> bool:
    """Complete an epoch, unless a later start has come since."""

    def completed(known: _Known) -> _Known:
        return epoch if known["incarnation"] == epoch["incarnation"] else known

    return _changed(file, completed) is epoch


def _changed(file: Path, change: Callable[[_Known], _Known]) -> _Known:
    """Change what the coordinator knows, alone; return it as it is then."""
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = change(json.loads(file.read_text()) if file.exists() else {})
        new = file.with_suffix(".new")
        new.write_text(json.dumps(known))
        new.replace(file)
    return known


if __name__ == "__main__":
    main(Path(sys.argv[1]))
