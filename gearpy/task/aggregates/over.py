"""Rows with what functions over those so far come to, in the order of event time."""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from gearpy.messages.data import Batch
from gearpy.task.chain.stage import Stage


class OverStage(Stage):
    """Makes rows of the results after each record.

    Args:
        inner: gives a result after each record; records of one time come in one batch, but for
            late ones.
        row: makes a row of a result.
        peers: changes the rows of one time, of which each sees the others; None: it does not.
    """

    def __init__(
        self,
        inner: Stage,
        row: Callable[[Any], Any],
        peers: Callable[[list[Any]], list[Any]] | None,
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._row = row
        self._peers = peers

    def process(self, batch: Batch) -> Iterator[Batch]:
        for results in self._inner.process(batch):
            rows, times = list(map(self._row, results.values)), results.timestamps
            if self._peers is not None and len(set(times)) < len(times):
                start, peers = 0, self._peers
                for _, same in groupby(times):
                    end = start + sum(1 for _ in same)
                    if end > start + 1:
                        rows[start:end] = peers(rows[start:end])
                    start = end
            yield results.giving(rows, times)

    def snapshot(self) -> Any:
        return self._inner.snapshot()

    def restore(self, state: Any) -> None:
        self._inner.place = self.place
        self._inner.restore(state)
