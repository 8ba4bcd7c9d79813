"""What of epochs can be seen from outside: names of files, and nothing else."""

import re
from collections import Counter
from contextlib import suppress
from os import scandir
from pathlib import Path
from typing import Final

from tests.bench import numbered

__all__ = ["EpochSigns", "names_in"]

_EPOCH: Final = re.compile(r"epoch(\d+)-")


class EpochSigns:
    """Tells what executors have stored, and what a folder of records shows; asked every ms.

    Args:
        checkpoints: gearpy's.
        results: the folder of results.
        parallelism: tasks that write the folder of records.
    """

    def __init__(
        self, checkpoints: Path, results: Path, parallelism: int = numbered.PARTITIONS
    ) -> None:
        self._checkpoints = checkpoints
        self._records = results / "records"
        self._parallelism = parallelism

    def stored(self) -> int:
        """Return the newest epoch that an executor has stored; 0 if there is none."""
        return max(
            (
                int(found[1])
                for folder in self._checkpoints.glob("*/app*/epochs/*")
                for name in names_in(folder)
                if (found := _EPOCH.match(name)) and not name.endswith(".tmp")
            ),
            default=0,
        )

    def log_files(self) -> frozenset[str]:
        """Return the names of the files of the coordinator log."""
        folders = self._checkpoints.glob("*/app*/coordinator")
        return frozenset(name for folder in folders for name in names_in(folder))

    def newest_shown(self) -> int:
        """Return the newest epoch of which something is shown; 0 if there is none."""
        return max(self._shown(), default=0)

    def pending(self) -> frozenset[str]:
        """Return names of what is prepared and not shown; here of the newest epoch."""
        stored = self.stored()
        is_shown = self._shown()[stored] >= self._parallelism
        return frozenset() if is_shown else frozenset([str(stored)])

    def _shown(self) -> Counter[int]:
        """Return how many tasks show each epoch's records."""
        return Counter(
            int(name.split("-", 3)[2])  # part-<task>-<epoch>-...
            for name in names_in(self._records)
            if name.endswith(".jsonl")
        )


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none if it is not there."""
    with suppress(FileNotFoundError), scandir(folder) as entries:
        return [each.name for each in entries]
    return []
