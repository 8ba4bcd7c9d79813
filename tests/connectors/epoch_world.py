"""A task that writes, its coordinator and its zombies: things happen at random, rows stay exact."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple, Protocol

from gearpy.errors import GearpyError
from gearpy.messages.data import Batch
from gearpy.task.api import TransactionalWriter

#: A crash or a zombie comes in between steps, mostly not.
SELDOM = 40
FORBIDDEN = 10**6


class Crashed(Exception):
    """The process was killed between two steps."""


class Place(Protocol):
    """Where rows are written."""

    on_step: Callable[[str], None]

    def writer(self) -> TransactionalWriter:
        """Return a writer of a new process."""
        ...

    def crash(self, rng: Random) -> None:
        """Lose power, then have it back."""
        ...

    def numbers(self) -> list[int]:
        """Return what readers see."""
        ...


class Manifest(NamedTuple):
    """A complete epoch: what it has brought so far, and what may not be shown yet."""

    epoch: int
    records: list[int]
    prepared: dict[int, Any]
    state: Any


class Attempt:
    """A writer that goes on from a manifest, and what it has written since."""

    def __init__(self, writer: TransactionalWriter, start: Manifest, incarnation: int) -> None:
        self.writer = writer
        self.incarnation = incarnation
        self.start = start
        self.epoch = start.epoch
        self.records = list(start.records)
        self.prepared: dict[int, Any] = {}
        self.told: dict[int, Any] = {}  # Epochs that it may show.


class EpochWorld:
    """One task; see the module.

    Args:
        place: where it writes.
        rng: decides what happens.
    """

    def __init__(self, place: Place, rng: Random) -> None:
        self.rng = rng
        self.place = place
        self.complete = [Manifest(0, [], {}, None)]
        self.ended: Manifest | None = None
        self.shown: list[int] = []  # At least this is shown.
        self.zombies: list[Attempt] = []
        self.incarnation = 0
        self.next_record = 0
        self._start()

    def step(self) -> None:
        """Let something happen."""
        acts = [self.write, self.end_epoch, self.complete_epoch, self.commit, self.zombie]
        self.rng.choice([*acts, *acts, self.restart])()
        self.check()

    def write(self) -> None:
        """Records come; replayed ones are others than before, as several inputs race."""
        count = self.rng.randint(1, 3)
        records = list(range(self.next_record, self.next_record + count))
        self.next_record += count
        self.live.writer.write_batch(a_batch(records))
        self.live.records += records

    def end_epoch(self) -> None:
        """The writer prepares; whether the epoch is ever complete is not for it to know."""
        live = self.live

        def prepare() -> None:
            live.epoch += 1
            live.prepared[live.epoch] = live.writer.prepare(live.epoch)
            state = live.writer.snapshot()
            self.ended = Manifest(live.epoch, list(live.records), dict(live.prepared), state)

        self._survive(prepare)

    def complete_epoch(self) -> None:
        """All other tasks have answered, too."""
        if self.ended is not None:
            self.complete.append(self.ended)
            self.ended = None
            self.live.told = dict(self.complete[-1].prepared)

    def commit(self) -> None:
        """The sink is told, and may be told again."""
        live, newest = self.live, self.complete[-1]

        def commit() -> None:
            for epoch, prepared in sorted(live.told.items()):
                live.writer.commit(epoch, prepared)
                live.prepared.pop(epoch, None)
            self.shown = newest.records

        self._survive(commit)

    def restart(self) -> None:
        """Go on from the newest complete epoch, or, if that is damaged, from the one before."""
        self._end()
        if self.rng.random() < 0.5 and len(self.complete) > 1:
            self.complete.pop()
        incarnation, self.place.on_step = self.incarnation + 1, self._disturbance()
        with suppress(Crashed):
            try:
                self._start()
            except GearpyError:
                if self.incarnation == incarnation:  # Nobody has its place, so it must not fail.
                    raise
            incarnation = 0  # It has come to an end.
        self.place.on_step = lambda _: None
        if self.incarnation == incarnation:
            self._end()
            self._start()

    def zombie(self) -> None:
        """Who was given up goes on, with what it was told before; it may fail, no more."""
        if not self.zombies:
            return
        zombie = self.rng.choice(self.zombies)
        acts: list[Callable[[], Any]] = [
            lambda: self._write_on(zombie),
            lambda: self._show_what_it_was_told(zombie),
            lambda: zombie.writer.close(completed=False),
            lambda: self._recover(zombie),
        ]
        self._quietly(self.rng.choice(acts))

    def check(self) -> None:
        """All that was shown, each once, and no more than what is complete."""
        seen = Counter(self.place.numbers())

        assert seen <= Counter(self.complete[-1].records)
        assert seen >= Counter(self.shown)

    def _disturbance(self) -> Callable[[str], None]:
        """Return what is called before each step of a start."""
        crash_at, zombie_at, frozen_at = (self.rng.randint(1, SELDOM) for _ in range(3))
        steps = iter(range(1, 10_000))

        def on_step(_: str) -> None:
            step = next(steps)
            if step == zombie_at and self.zombies:
                zombie = self.rng.choice(self.zombies)
                self._quietly(lambda: self._show_what_it_was_told(zombie))
            if step == frozen_at:  # It goes on when its successor is at work.
                self.zombies.append(self.live)
                self._alone(self._succeed)
            if step == crash_at:
                raise Crashed

        return on_step

    def _start(self) -> None:
        self.incarnation += 1
        newest = self.complete[-1]
        self.live = mine = Attempt(self.place.writer(), newest, self.incarnation)
        self._recover(mine)
        if self.live is not mine:
            return  # It was given up meanwhile.
        self.shown = newest.records
        assert Counter(self.place.numbers()) == Counter(newest.records)

    def _succeed(self) -> None:
        self._start()
        for act in (self.write, self.end_epoch, self.complete_epoch, self.commit):
            act()

    def _recover(self, attempt: Attempt) -> None:
        start, incarnation = attempt.start, attempt.incarnation
        attempt.writer.restore(start.state)
        attempt.writer.recover(start.prepared, epoch=start.epoch, run="r", incarnation=incarnation)

    def _end(self) -> None:
        self.ended = None
        if self.rng.random() < 0.5:  # Power was lost, or one process was given up.
            self.place.crash(self.rng)
            self.zombies.clear()
        else:
            self.zombies.append(self.live)

    def _survive(self, action: Callable[[], None]) -> None:
        crash_at, steps = self.rng.randint(1, SELDOM), iter(range(1, 10_000))

        def on_step(_: str) -> None:
            if next(steps) == crash_at:
                raise Crashed

        self.place.on_step = on_step
        try:
            action()
        except Crashed:
            self.place.on_step = lambda _: None
            self._end()
            self._start()
        self.place.on_step = lambda _: None

    def _quietly(self, action: Callable[[], Any]) -> None:
        with suppress(GearpyError, ValueError, OSError):  # Nobody listens; a file may be closed.
            self._alone(action)

    def _alone(self, action: Callable[[], Any]) -> None:
        """Do something while all others stand still."""
        on_step, self.place.on_step = self.place.on_step, lambda _: None
        try:
            action()
        finally:
            self.place.on_step = on_step

    def _write_on(self, zombie: Attempt) -> None:
        zombie.writer.write_batch(a_batch([FORBIDDEN]))
        zombie.epoch += 1
        zombie.writer.prepare(zombie.epoch)

    def _show_what_it_was_told(self, zombie: Attempt) -> None:
        for epoch, prepared in sorted(zombie.told.items()):
            zombie.writer.commit(epoch, prepared)


def a_batch(numbers: list[int]) -> Batch:
    """Return rows of three partitions."""
    rows = [{"n": number, "p": f"p{number % 3}"} for number in numbers]
    return Batch(rows, [0] * len(rows))
