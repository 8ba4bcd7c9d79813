"""Epochs are shown once each, whatever fails, and whoever goes on."""

from collections.abc import Callable, Iterable
from functools import partial
from random import Random

import pytest

from gearpy.core.handover.handoff import Pause
from gearpy.core.handover.transactions import (
    EpochMarker,
    EpochTransactions,
    Open,
    ReadMarker,
    Refuse,
    Write,
)


def begun(
    incarnation: int = 1,
    epoch: int = 0,
    *,
    written: int = 0,
    waiting: Iterable[int] = (),
    start: str = "",
    is_over: bool = False,
) -> EpochTransactions:
    return EpochTransactions(
        incarnation=incarnation,
        epoch=epoch,
        written=written,
        waiting=waiting,
        start=start,
        is_over=is_over,
        rng=Random(0),
    )


def paused_until_ms(made: EpochTransactions, now_ms: int = 0) -> int:
    step = made.next(now_ms)
    assert isinstance(step, Pause)
    assert step.until_ms is not None
    return step.until_ms


def looked(made: EpochTransactions, marker: EpochMarker | None) -> EpochTransactions:
    assert made.next(0) == Open()
    made.on_opened()
    assert made.next(0) == ReadMarker()
    made.on_marker(marker)
    return made


def test_a_first_start_claims_the_name_and_waits() -> None:
    made = looked(begun(), None)

    claim = made.next(0)
    assert claim == Write(None, EpochMarker(1, 0))
    assert made.next(0) == claim
    assert not made.is_settled
    made.on_written(claim)

    assert (made.next(0), made.is_settled) == (Pause(None), True)


def test_each_complete_epoch_is_one_transaction_in_order() -> None:
    made = looked(begun(), None)
    made.on_complete(1)
    made.on_complete(3)

    first = made.next(0)
    assert first == Write(1, EpochMarker(1, 1))
    made.on_written(first)
    second = made.next(0)
    assert second == Write(3, EpochMarker(1, 3))
    made.on_written(second)

    assert (made.written, made.is_settled, made.next(0)) == (3, True, Pause(None))


@pytest.mark.parametrize(("shown", "left"), [(0, [5, 6]), (4, [5, 6]), (5, [6]), (6, [])], ids=str)
def test_a_restart_writes_what_the_marker_does_not_have(shown: int, left: list[int]) -> None:
    made = looked(begun(2, 6, written=4 if shown else 0, waiting=[6, 5]), EpochMarker(1, shown))

    assert made.waiting == left
    marker = EpochMarker(2, left[0] if left else 6)
    assert made.next(0) == Write(left[0] if left else None, marker)


def test_an_epoch_is_not_written_again_when_its_answer_was_lost() -> None:
    """A failure tells nothing: the marker does, when the name was opened again."""
    made = looked(begun(), None)
    made.on_complete(1)
    assert isinstance(made.next(0), Write)
    made.on_failed(1000)

    until_ms = paused_until_ms(made, 1000)
    assert 1000 < until_ms <= 1100
    assert made.next(until_ms) == Open()
    made.on_opened()
    made.on_marker(EpochMarker(1, 1))

    assert (made.next(2000), made.is_settled) == (Pause(None), True)


def test_an_epoch_is_written_again_when_its_transaction_was_aborted() -> None:
    made = looked(begun(), None)
    made.on_complete(1)
    made.on_failed(0)
    made.on_complete(2)

    assert made.next(10_000) == Open()
    made.on_opened()
    made.on_marker(EpochMarker(1, 0))

    assert made.next(10_000) == Write(1, EpochMarker(1, 1))
    assert made.waiting == [1, 2]


def test_an_earlier_start_that_goes_on_does_not_set_the_marker_back() -> None:
    made = looked(begun(2, 5), None)
    made.on_complete(6)
    made.on_written(Write(6, EpochMarker(2, 6)))
    made.on_failed(0)

    assert made.next(10_000) == Open()
    made.on_opened()
    made.on_marker(EpochMarker(1, 5))

    assert made.next(10_000) == Write(None, EpochMarker(2, 6))


def test_pauses_grow_and_end_with_success() -> None:
    made = begun()
    pauses = []
    for _ in range(12):
        made.on_failed(0)
        pauses.append(paused_until_ms(made))

    assert pauses[0] <= 100
    assert 2500 <= pauses[-1] <= 5000
    assert made.next(pauses[-1]) == Open()
    made.on_opened()
    made.on_marker(None)
    claim = made.next(pauses[-1])
    assert isinstance(claim, Write)
    made.on_written(claim)
    made.on_failed(0)
    assert paused_until_ms(made) <= 100


def test_a_start_that_was_given_up_writes_nothing() -> None:
    made = looked(begun(1, 5, waiting=[5]), EpochMarker(2, 4))

    assert made.next(0) == Refuse("given-up", EpochMarker(2, 4))


def test_a_run_from_a_copy_of_the_checkpoint_takes_the_name() -> None:
    """The one before counts its starts alike, and gives up all the same: neither fences forever."""
    former, later = begun(2, 5, start="a"), begun(2, 5, start="b")
    looked(former, EpochMarker(1, 5))
    former.on_written(Write(None, EpochMarker(2, 5, "a")))

    claim = looked(later, EpochMarker(2, 5, "a")).next(0)
    former.on_failed(0)
    assert former.next(1000) == Open()
    former.on_opened()
    former.on_marker(EpochMarker(2, 5, "b"))

    assert claim == Write(None, EpochMarker(2, 5, "b"))
    assert former.next(1000) == Refuse("given-up", EpochMarker(2, 5, "b"))


@pytest.mark.parametrize("incarnation", [2, 3])
def test_what_another_run_has_shown_is_not_taken_for_one_s_own(incarnation: int) -> None:
    """Both count epochs alike: this one has ended epoch 6 before it has looked."""
    made = begun(incarnation, 5, start="b")
    made.on_complete(6)

    assert looked(made, EpochMarker(2, 6, "a")).next(0) == Refuse("ahead", EpochMarker(2, 6, "a"))


def test_a_start_that_goes_back_behind_what_was_shown_writes_nothing() -> None:
    """The records of these epochs would come a second time."""
    made = looked(begun(2, 5), EpochMarker(1, 7))

    assert made.next(0) == Refuse("ahead", EpochMarker(1, 7))


def test_a_new_run_may_begin_behind_what_an_earlier_one_has_shown() -> None:
    made = looked(begun(2**62, 5, waiting=[5], is_over=True), EpochMarker(3, 7))

    claim = made.next(0)
    assert claim == Write(None, EpochMarker(2**62, 7))
    made.on_written(claim)
    assert made.is_settled


def test_a_lost_marker_is_told_when_it_matters() -> None:
    lost = looked(begun(2, 6, written=5, waiting=[6]), None)
    harmless = looked(begun(2, 6, written=6), None)

    assert lost.next(0) == Refuse("forgotten", EpochMarker(0, 0))
    assert harmless.next(0) == Write(None, EpochMarker(2, 6))


# -- all of it, at random ------------------------------------------------------------------


class Store:
    """A store with one name: whoever opens it fences the others."""

    def __init__(self) -> None:
        self.owner: object = None
        self.marker: EpochMarker | None = None
        self.shown: list[int] = []
        self.open: tuple[int | None, EpochMarker] | None = None

    def take(self, owner: object) -> None:
        """Give the name to another one; an open transaction is aborted."""
        self.owner, self.open = owner, None

    def commit(self, owner: object, step: Write) -> bool:
        """Commit one transaction; False if the name is another's."""
        if self.owner is not owner:
            return False
        self.marker, self.open = step.marker, None
        if step.epoch is not None:
            self.shown.append(step.epoch)
        return True


class Start:
    """A start of the task; one that was given up may go on for a while."""

    def __init__(
        self,
        store: Store,
        incarnation: int,
        epoch: int,
        kept: tuple[int, list[int]],
        name: str = "",
    ) -> None:
        written, waiting = kept
        name = name or str(incarnation)
        self.store = store
        self.made = begun(incarnation, epoch, written=written, waiting=waiting, start=name)
        self.now_ms = 0

    def step(self, rng: Random) -> None:
        """Do one step; one of four fails, half of these when it has done what it should."""
        has_answer = rng.random() < 0.75
        is_done = has_answer or rng.random() < 0.5
        step = self.made.next(self.now_ms)
        if isinstance(step, Pause):
            self.now_ms = step.until_ms or self.now_ms
            return
        if isinstance(step, Refuse):
            return
        if not is_done or not self._has_done(step, has_answer=has_answer):
            self.made.on_failed(self.now_ms)

    def _has_done(self, step: Open | ReadMarker | Write, *, has_answer: bool) -> bool:
        """Do a step, and tell what came of it if there is an answer; False if it has failed."""
        if isinstance(step, Open):
            self.store.take(self)
            tell: Callable[[], None] = self.made.on_opened
        elif isinstance(step, ReadMarker):
            tell = partial(self.made.on_marker, self.store.marker)
        else:
            has_answer = self.store.commit(self, step) and has_answer
            tell = partial(self.made.on_written, step)
        if has_answer:
            tell()
        return has_answer

    @property
    def kept(self) -> tuple[int, list[int]]:
        return self.made.written, list(self.made.waiting)

    @property
    def because(self) -> str:
        step = self.made.next(self.now_ms)
        return step.because if isinstance(step, Refuse) else ""


class World:
    """Starts of a task, one after the other; those before go on as zombies."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.store = Store()
        self.starts: list[Start] = []
        self.number = 0  # Of the newest epoch, which may be given up.
        self.complete: list[int] = []
        self.kept: tuple[int, list[int]] = (0, [])  # In the newest checkpoint.

    def begin(self) -> Start:
        epoch = self.complete[-1] if self.complete else 0
        self.starts.append(Start(self.store, len(self.starts) + 1, epoch, self.kept))
        return self.starts[-1]

    def run(self, live: Start) -> None:
        """Let a few epochs come; the start ends at any point."""
        for _ in range(self.rng.randint(0, 6)):
            for _ in range(self.rng.randint(0, 6)):
                self.rng.choice([live, live, live, *self.starts]).step(self.rng)
            if live.because or not self.end_epoch(live):
                return

    def end_epoch(self, live: Start) -> bool:
        """End an epoch; False if the start ends before it hears that the epoch is complete."""
        self.number += 1
        written, waiting = live.kept
        if self.rng.random() < 0.2:
            return True  # It was given up, and its records come with the next one.
        self.kept = (written, [*waiting, self.number])
        self.complete.append(self.number)
        if self.rng.random() < 0.2:
            return False
        live.made.on_complete(self.number)
        return True

    def settle(self, live: Start) -> None:
        """Let all go on until the last start has shown everything, and then some more."""
        for _ in range(2000):
            if not live.made.is_settled:
                self.rng.choice([live, *self.starts]).step(self.rng)
        for start in (*self.starts, live):
            for _ in range(50):
                start.step(self.rng)


@pytest.mark.parametrize("seed", range(300))
def test_each_epoch_is_shown_once_and_in_order(seed: int) -> None:
    """Steps fail before and after their effect; earlier starts go on; epochs are given up."""
    world = World(seed)

    for _ in range(5):
        world.run(world.begin())
    last = world.begin()
    world.settle(last)

    assert world.store.shown == world.complete
    assert last.made.is_settled


@pytest.mark.parametrize("seed", range(100))
def test_of_a_run_and_a_copy_of_it_one_goes_on(seed: int) -> None:
    """It shows its own epochs, each once; the other shows no more and says so."""
    rng, store = Random(seed), Store()
    store.marker = EpochMarker(1, 5, "before")
    twins = [Start(store, 2, 5, (5, []), name) for name in "ab"]
    shown: list[tuple[Start, int]] = []
    for turn in range(2000):
        twin = rng.choice(twins)
        if turn < 1000 and not twin.because and rng.random() < 0.05:
            twin.made.on_complete(6 + turn)
        twin.step(rng)
        shown += [(twin, epoch) for epoch in store.shown[len(shown) :]]
        if len({each.made.is_settled for each in twins}) == 2 and turn > 1000:
            break

    (loser,) = (each for each in twins if each.because)
    (winner,) = (each for each in twins if each is not loser)
    last_of_loser = max((at for at, (who, _) in enumerate(shown) if who is loser), default=-1)
    first_of_winner = min((at for at, (who, _) in enumerate(shown) if who is winner), default=99)
    assert winner.made.is_settled
    assert last_of_loser < first_of_winner
    assert store.shown == sorted(set(store.shown))
