"""The contract of a sink finds each broken promise, and none where they are kept."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import gearpy as gp
from gearpy.connectors.epoch_writer import EpochOwner
from gearpy.errors import ContractBroken, GearpyError
from gearpy.testing import check_sink


class Shelf(gp.Sink[Any]):
    """Shows records by run, task and epoch; which promises it breaks is given."""

    transactional = True

    def __init__(self, store: dict[str, Any], broken: str = "") -> None:
        self.store = store
        self.broken = broken
        self.transactional = broken != "plain writer"

    def open(self, task_index: int, parallelism: int) -> "ShelfWriter":
        return ShelfWriter(self.store, task_index, self.broken)


class ShelfWriter(gp.EpochWriter[Any]):
    def __init__(self, store: dict[str, Any], task: int, broken: str) -> None:
        super().__init__("shelf", 0 if broken == "one task" else task)
        self.store = store
        self.broken = broken

    def row_of(self, record: Any) -> Any:
        if isinstance(record, str) and self.broken != "takes all":
            raise TypeError("" if self.broken == "no text" else "text is no number")
        return record

    def take_over(self, owner: EpochOwner, epoch: int) -> None:
        key = owner[:3]
        owners, shown = self.store.setdefault("owners", {}), self.store.setdefault("shown", {})
        if owners.get(key, 0) > owner.incarnation and self.broken != "no fence":
            raise GearpyError("a later owner")
        owners[key] = owner.incarnation
        if self.broken != "keeps later":
            for each in [each for each in shown if each[:3] == key and each[3] > epoch]:
                del shown[each]

    def write_epoch(self, owner: EpochOwner, epoch: int, batch: gp.Batch[Any]) -> None:
        if self.store["owners"][owner[:3]] != owner.incarnation and self.broken != "no fence":
            raise GearpyError("another owner")
        shown = self.store["shown"]
        key = (*owner[:3], epoch)
        if self.broken == "twice":
            shown[key] = [*shown.get(key, ()), *batch.values]
            return
        shown[key] = list(batch.values)

    def prepare(self, epoch: int) -> Any:
        prepared = super().prepare(epoch)
        if self.broken == "early" and prepared:
            owner = EpochOwner(prepared["run"], "shelf", self._task, self._incarnation)
            self.write_epoch(owner, epoch, gp.Batch(prepared["values"], prepared["timestamps"]))
        return object() if self.broken == "odd" and prepared else prepared

    def recover(self, prepared: Mapping[int, Any], **given: Any) -> None:
        super().recover({} if self.broken == "forgets" else prepared, **given)


def seen(store: dict[str, Any]) -> Iterable[Any]:
    return [value for values in store.get("shown", {}).values() for value in values]


def check(broken: str = "") -> None:
    places: dict[str, dict[str, Any]] = defaultdict(dict)
    check_sink(
        lambda name: Shelf(places[name], broken),
        lambda name: seen(places[name]),
        record=lambda number: number,
        bad="text",
    )


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("plain writer", "transactional is False, and its writer is a ShelfWriter"),
        ("takes all", "has taken 'text': refuse a record in write_batch"),
        ("early", r"readers see \[1, 2\] before their epoch is complete"),
        ("odd", "the result of prepare cannot be stored: "),
        ("twice", "after commit.1. was said twice"),
        ("forgets", "after another process has recovered"),
        ("one task", "(?s)of two tasks"),
        ("keeps later", "killed with seed .*readers see the records"),
        ("no fence", "killed with seed .*readers see the records"),
    ],
)
def test_a_broken_promise_is_found(broken: str, text: str) -> None:
    with pytest.raises(ContractBroken, match=text):
        check(broken)


def test_a_writer_that_keeps_its_promises_passes() -> None:
    check()
