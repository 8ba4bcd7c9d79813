"""What of epochs can be seen from outside: names of files, and nothing else."""

import re
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from os import scandir
from pathlib import Path
from typing import Final

from tests.bench import numbered
from tests.bench.process_cluster import ProcessCluster
from tests.eventually import eventually

_EPOCH: Final = re.compile(r"epoch(\d+)-")


class EpochSigns:
    """Signs of what executors have stored, and a folder of records has; looked at every ms."""

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
        folders = self._checkpoints.glob("*/app*/coordinator")
        return frozenset(name for folder in folders for name in names_in(folder))

    def newest_shown(self) -> int:
        """Return the newest epoch of which something is shown; 0 if there is none."""
        return max(self._shown(), default=0)

    @contextmanager
    def between_epochs(self, cluster: ProcessCluster) -> Iterator[tuple[int, list[int]]]:
        """Freeze the executors when all that is stored is shown; gives that epoch, and them.

        Until they go on, or one that is killed is replaced, no other epoch is stored.
        """
        while True:
            before = self.stored()
            eventually(partial(self._is_shown_after, before), "one more epoch")
            with cluster.frozen_executors() as pids:
                if not self.pending():
                    yield self.stored(), pids
                    return

    def _is_shown_after(self, epoch: int) -> bool:
        return self.stored() > epoch and not self.pending()

    def pending(self) -> frozenset[str]:
        """Return names of what is prepared and not shown; here of the newest epoch."""
        stored = self.stored()
        is_shown = self._shown()[stored] >= self._parallelism
        return frozenset() if is_shown else frozenset([str(stored)])

    def _shown(self) -> Counter[int]:
        return Counter(
            int(name.split("-", 3)[2])  # part-<task>-<epoch>-...
            for name in names_in(self._records)
            if name.endswith(".jsonl")
        )


class ReadSigns(EpochSigns):
    """Tells which epochs are shown by reading another system, on a thread of its own."""

    def __init__(self, checkpoints: Path, results: Path) -> None:
        super().__init__(checkpoints, results)
        self._seen: set[tuple[object, int]] = set()
        self._counts = Counter[int]()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _shown(self) -> Counter[int]:
        return self._counts

    def _see(self, task: object, epoch: int) -> None:
        if (task, epoch) not in self._seen:
            self._seen.add((task, epoch))
            self._counts[epoch] += 1

    @abstractmethod
    def _read(self) -> None:
        """Call `_see` with what is shown, until `_is_over`."""


def names_in(folder: Path) -> list[str]:
    with suppress(FileNotFoundError), scandir(folder) as entries:
        return [each.name for each in entries]
    return []
