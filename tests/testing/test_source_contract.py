"""The contract of a source finds each broken promise, and none where they are kept."""

import gc
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import gearpy as gp
from gearpy.errors import ContractBroken, OperatorError
from gearpy.testing import check_source, contract
from gearpy.testing.watched import SourcePatience, WatchedSource


@pytest.fixture(autouse=True, scope="module")
def few_objects() -> None:
    """Spare what tests before have left: each look for files that are left collects garbage."""
    gc.collect()
    gc.freeze()


class Numbers(gp.Source[int]):
    """Numbers in two partitions; what is wrong with them is given."""

    replayable = True
    bounded = True

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong
        for name in ("replayable", "bounded"):
            setattr(self, name, wrong.get(name, True))

    def partitions(self) -> Sequence[str]:
        names: Sequence[str] = self.wrong.get("partitions", ["a", "b"])
        return names

    def open(self, partition: str, resume: Any) -> "NumbersReader":
        reader: Callable[..., NumbersReader] = self.wrong.get("reader", NumbersReader)
        return reader(resume or 0)


class NumbersReader(gp.SourceReader[int]):
    out_of_order_ms = 0

    def __init__(self, at: int) -> None:
        self.at = at

    def read_batch(self, max_records: int) -> gp.Batch[int] | None:
        numbers = list(range(self.at, min(20, self.at + max_records)))
        self.at += len(numbers)
        self.finished = self.at >= 20
        return gp.Batch(numbers, numbers) if numbers else None

    def snapshot(self) -> Any:
        return self.at

    @property
    def watermark_ms(self) -> int:
        return self.at - 1 if self.at else gp.MIN_MS


class Forgets(NumbersReader):
    def snapshot(self) -> Any:
        return self.at + 1


class Repeats(NumbersReader):
    def snapshot(self) -> Any:
        return max(0, self.at - 1)


class ForgetsTime(NumbersReader):
    """Promises something else after a restart."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.first = at

    @property
    def watermark_ms(self) -> int:
        return self.at - 1 if self.at > self.first else gp.MIN_MS


class Odd(NumbersReader):
    def snapshot(self) -> Any:
        return object()


class TooMany(NumbersReader):
    def read_batch(self, max_records: int) -> gp.Batch[int] | None:
        return super().read_batch(max_records + 1)


class Uneven(NumbersReader):
    def read_batch(self, max_records: int) -> gp.Batch[int] | None:
        batch = super().read_batch(max_records)
        return batch and gp.Batch(batch.values, batch.timestamps[1:])


class Seconds(NumbersReader):
    def read_batch(self, max_records: int) -> gp.Batch[int] | None:
        batch = super().read_batch(max_records)
        return batch and gp.Batch(batch.values, [each / 1000 for each in batch.timestamps])  # type: ignore[misc]


class Hasty(NumbersReader):
    @property
    def watermark_ms(self) -> int:
        return self.at + 3


class GoesBack(NumbersReader):
    @property
    def watermark_ms(self) -> int:
        return min(self.at, 20 - self.at) - 10


class Idle(NumbersReader):
    idle = True


class Stuck(NumbersReader):
    waits_for = "rain"

    def read_batch(self, max_records: int) -> gp.Batch[int] | None:
        return super().read_batch(max_records) if self.at < 10 else None


class Backwards(NumbersReader):
    @property
    def progress(self) -> tuple[int, int]:
        return 20 - self.at, 20


class Leaks(NumbersReader):
    stop = threading.Event()

    def __init__(self, at: int) -> None:
        super().__init__(at)
        threading.Thread(target=self.stop.wait, daemon=True).start()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"partitions": ["a", "a"]}, r"partitions\(\) gave \['a', 'a'\]"),
        ({"bounded": False}, r"Numbers has no end: say how many records are there"),
        ({"reader": Forgets}, "the value at record . is .*; read in one go it is"),
        ({"reader": Repeats}, "the value at record .* read in one go it is"),
        ({"reader": ForgetsTime}, "the watermark at record .* that the next records, times and"),
        ({"reader": Odd}, "partition '.': its snapshot cannot be stored"),
        ({"reader": TooMany}, r"\d+ records came where \d+ were asked for"),
        ({"reader": Uneven}, "values have . timestamps"),
        ({"reader": Seconds}, r"0.0 is no event time: give whole ms since the epoch"),
        ({"reader": Hasty}, "a record of time . came after watermark .: promise less"),
        ({"reader": GoesBack}, "the watermark went back from"),
        ({"reader": Idle}, "it gave records, and says that it is idle"),
        ({"reader": Stuck}, "after 1. records nothing came for 0.2 s.*it waits for rain"),
        ({"reader": Backwards}, "progress was"),
        ({"reader": Leaks}, r"opened and closed 3 times, and 3 threads are left: release in close"),
    ],
)
def test_a_broken_promise_is_found(
    wrong: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "_CLOSED_WITHIN_S", 0.2)  # A thread that stays, stays.
    Leaks.stop.clear()
    try:
        with pytest.raises(ContractBroken, match=text):
            check_source(lambda: Numbers(**wrong), quiet_s=0.2)
    finally:
        Leaks.stop.set()


def test_a_read_that_waits_is_found() -> None:
    """Neighbours of the task would wait, too."""
    reader = WatchedSource(Numbers(), SourcePatience(read_s=0.0)).open("a", None)

    with pytest.raises(ContractBroken, match=r"read_batch took 0\.0 s: return None when there is"):
        reader.read_batch(1)


def test_a_source_that_keeps_its_promises_passes() -> None:
    check_source(Numbers)
    check_source(lambda: Numbers(bounded=False), records=33, seeds=2)
    check_source(lambda: Numbers(replayable=False, reader=lambda _: NumbersReader(0)), seeds=2)


def test_a_timestamp_that_raises_is_told() -> None:
    with pytest.raises(OperatorError, match="ZeroDivisionError"):
        check_source(lambda: gp.collection([1, 2, 7, 8], timestamp=lambda n: 9 // (n - 7)), seeds=1)


def test_a_source_is_alike_in_every_process() -> None:
    names = iter("abcdefgh")

    with pytest.raises(ContractBroken, match=r"of a source made anew .*the names must stay"):
        check_source(lambda: Numbers(partitions=[next(names)]))


class Refuses(NumbersReader):
    def read_batch(self, max_records: int) -> gp.Batch[int] | None:
        raise OSError("cannot reach 127.0.0.1:1")


class Waits(NumbersReader):
    waits_for = "127.0.0.1:1"

    def read_batch(self, max_records: int) -> None:
        """Return nothing."""


class Mute(Waits):
    waits_for = ""


def test_a_source_whose_server_is_away_says_so() -> None:
    for reader in (Refuses, Waits):
        check_source(Numbers, away=partial(Numbers, reader=reader), quiet_s=0.2, seeds=1)

    for other in (Mute, NumbersReader):
        with pytest.raises(ContractBroken, match="its server is away, and neither did it raise"):
            check_source(Numbers, away=partial(Numbers, reader=other), quiet_s=0.2, seeds=1)


def test_late_records_are_the_author_s_to_allow() -> None:
    """Data may be like that; the promise is then about the rest."""

    def late() -> gp.Source[Any]:
        return gp.collection([gp.Message("a", 9), gp.Message("b", 1)])

    with pytest.raises(ContractBroken, match="has_late=True"):
        check_source(late)
    check_source(late, has_late=True, seeds=1)
