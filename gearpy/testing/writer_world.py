"""A task that writes, its coordinator and its zombies: things happen at random, rows stay exact."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from gearpy.errors import ContractBroken, GearpyError
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import TransactionalWriter

FORBIDDEN: Final = 10**6
_HALF: Final = 0.5


class Crashed(BaseException):
    """The process was killed between two steps; nobody catches that by mistake."""


def nothing(_: str) -> None:
    """Let a step pass; the `WriterPlace.on_step` of calm times."""


class Medium(Protocol):
    """A keeper of files that can lose power."""

    on_step: Callable[[str], None]

    def crash(self, rng: Random) -> None:
        """Lose power, then have it back."""
        ...


class WriterPlace(ABC):
    """The place to which a task writes."""

    #: A zombie may go on, or the process be frozen, between any two steps. Where a step may hold
    #: a lock it may not: then who comes next would wait for it, and in a test nobody lets go.
    interleaves = True

    def __init__(self, medium: Medium) -> None:
        self._medium = medium

    @property
    def on_step(self) -> Callable[[str], None]:
        """Called before each step; may raise."""
        return self._medium.on_step

    @on_step.setter
    def on_step(self, value: Callable[[str], None]) -> None:
        self._medium.on_step = value

    @abstractmethod
    def writer(self) -> TransactionalWriter:
        """Return a writer of a new process."""

    def crash(self, rng: Random) -> None:
        """Lose power, then have it back."""
        self._medium.crash(rng)


class RowPlace(WriterPlace):
    """The place to which rows are written."""

    @abstractmethod
    def numbers(self) -> list[int]:
        """Return the numbers that readers see."""


WriterPlaceT = TypeVar("WriterPlaceT", bound=WriterPlace)


class WriterManifest(NamedTuple):
    """A complete epoch: all records up to it, and those that may not be shown yet."""

    epoch: int
    records: list[int]
    prepared: dict[int, Any]
    state: Any


class Attempt:
    """A writer that goes on from a manifest, and the records that it has written since."""

    def __init__(
        self, writer: TransactionalWriter, start: WriterManifest, run: str, incarnation: int
    ) -> None:
        self.writer = writer
        self.run = run
        self.incarnation = incarnation
        self.start = start
        self.epoch = start.epoch
        self.records = list(start.records)
        self.prepared: dict[int, Any] = {}
        self.told: dict[int, Any] = {}  # Epochs that it may show.
        self.is_torn = False  # It broke off in a step: nobody would have it write any more.


class TaskWorld(ABC, Generic[WriterPlaceT]):
    """One task; see the module. Subclasses say how it writes, and how readers see that.

    They call `start` when they are made.

    Args:
        place: where it writes.
        rng: decides what happens.
    """

    #: A crash or a zombie comes within so many steps; mostly, there are not so many.
    seldom = 40
    #: How often the newest manifest is damaged.
    damaged = 0.5
    #: What may happen to who was given up. A ValueError: its file is closed.
    harmless: tuple[type[Exception], ...] = (GearpyError, ValueError)

    def __init__(self, place: WriterPlaceT, rng: Random) -> None:
        self.rng = rng
        self.place = place
        self.complete = [WriterManifest(0, [], {}, None)]
        self.ended: WriterManifest | None = None
        self.zombies: list[Attempt] = []
        self.starts = 0
        self.run, self.incarnation = "r", 0

    # -- what is written -----------------------------------------------------------------------

    @abstractmethod
    def write(self) -> None:
        """Records come."""

    @abstractmethod
    def forbidden(self) -> Batch:
        """Return records that nobody may ever see."""

    @abstractmethod
    def note_shown(self, manifest: WriterManifest) -> None:
        """All that the manifest has brought is shown by now."""

    @abstractmethod
    def check(self) -> None:
        """Check that all shown records are there, and only records of complete epochs."""

    # -- what happens --------------------------------------------------------------------------

    def step(self) -> None:
        acts = [self.write, self.end_epoch, self.complete_epoch, self.commit, self.zombie]
        self.rng.choice([*acts, *acts, *self.rare()])()
        self.check()

    def rare(self) -> list[Callable[[], None]]:
        """Return acts that happen half as often as the rest."""
        return [self.restart]

    def end_epoch(self) -> None:
        """The writer prepares; whether the epoch is ever complete is not for it to know."""
        live = self.live

        def prepare() -> None:
            live.epoch += 1
            if (prepared := live.writer.prepare(live.epoch)) is not None:
                live.prepared[live.epoch] = prepared
            state = live.writer.snapshot()
            self.ended = WriterManifest(live.epoch, list(live.records), dict(live.prepared), state)

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
            self.note_shown(newest)

        self._survive(commit)

    def restart(self) -> None:
        """Go on from the newest complete epoch, or, if that is damaged, from the one before."""
        self._end()
        self.go_back()
        crash_at, zombie_at, frozen_at = (self.rng.randint(1, self.seldom) for _ in range(3))
        steps = iter(range(1, 10_000))

        def on_step(_: str) -> None:
            step = next(steps)
            if step == zombie_at and self.zombies and self.place.interleaves:
                zombie = self.rng.choice(self.zombies)
                self._quietly(lambda: self._show_what_it_was_told(zombie))
            # It goes on when its successor is at work.
            if step == frozen_at and self.place.interleaves:
                self.zombies.append(self.live)
                self._alone(self._succeed)
            if step == crash_at:
                raise Crashed

        mine, self.place.on_step = self.starts + 1, on_step
        has_crashed = True
        with suppress(Crashed):
            try:
                self.start()
            except GearpyError:
                if self.starts == mine:  # Nobody has its place, so it must not fail.
                    raise
            has_crashed = False
        self.place.on_step = nothing
        if has_crashed and self.starts == mine:
            self._bury()
            self.start()

    def go_back(self) -> None:
        """Lose the newest manifest, or not."""
        if self.rng.random() < self.damaged and len(self.complete) > 1:
            self.complete.pop()

    def start(self) -> None:
        self.starts += 1
        self.incarnation += 1
        newest = self.complete[-1]
        self.live = mine = Attempt(self.place.writer(), newest, self.run, self.incarnation)
        self._recover(mine)
        if self.live is mine:  # It was not given up meanwhile.
            self.note_shown(newest)

    def zombie(self) -> None:
        """Let a writer that was given up go on, with its old news; it may fail, no more."""
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

    def close(self) -> None:
        for each in (*self.zombies, self.live):
            self._quietly(partial(each.writer.close, completed=False))

    # -- how -----------------------------------------------------------------------------------

    def _crash(self) -> Callable[[str], None]:
        """Return the function that is called before each step of anything else."""
        crash_at, steps = self.rng.randint(1, self.seldom), iter(range(1, 10_000))

        def on_step(_: str) -> None:
            if next(steps) == crash_at:
                raise Crashed

        return on_step

    def _succeed(self) -> None:
        self.start()
        for act in (self.write, self.end_epoch, self.complete_epoch, self.commit):
            act()

    def _recover(self, attempt: Attempt) -> None:
        start, run, incarnation = attempt.start, attempt.run, attempt.incarnation
        attempt.writer.restore(start.state)
        attempt.writer.recover(start.prepared, epoch=start.epoch, run=run, incarnation=incarnation)

    def _end(self) -> None:
        self.ended = None
        if self.rng.random() < _HALF:  # Power was lost, or one process was given up.
            self.place.crash(self.rng)
            self.zombies.clear()
        else:
            self.zombies.append(self.live)

    def _survive(self, action: Callable[[], None]) -> None:
        self.place.on_step = self._crash()
        has_crashed = True
        with suppress(Crashed):
            action()
            has_crashed = False
        self.place.on_step = nothing
        if has_crashed:
            self.live.is_torn = True
            self._bury()
            self.check()
            self.start()

    def _bury(self) -> None:
        if not self.place.interleaves:  # The system closes what the process had.
            self._quietly(partial(self.live.writer.close, completed=False))
        self._end()

    def _quietly(self, action: Callable[[], Any]) -> None:
        with suppress(*self.harmless):  # Nobody listens.
            self._alone(action)

    def _alone(self, action: Callable[[], Any]) -> None:
        """Do something while all others stand still."""
        on_step, self.place.on_step = self.place.on_step, nothing
        try:
            action()
        finally:
            self.place.on_step = on_step

    def _write_on(self, zombie: Attempt) -> None:
        if zombie.is_torn:
            return
        zombie.is_torn = True
        zombie.writer.write_batch(self.forbidden())
        zombie.epoch += 1
        zombie.writer.prepare(zombie.epoch)
        zombie.is_torn = False

    def _show_what_it_was_told(self, zombie: Attempt) -> None:
        for epoch, prepared in sorted(zombie.told.items()):
            zombie.writer.commit(epoch, prepared)


class EpochWorld(TaskWorld[RowPlace]):
    def __init__(
        self,
        place: RowPlace,
        rng: Random,
        *,
        batch: Callable[[Sequence[int]], Batch],
        in_order: bool = False,
    ) -> None:
        super().__init__(place, rng)
        self.batch = batch
        self.in_order = in_order
        self.shown: list[int] = []  # At least this is shown.
        self.next_record = 0
        self.start()

    def write(self) -> None:
        """Records come; replayed ones are others than before, as several inputs race."""
        count = self.rng.randint(1, 3)
        records = list(range(self.next_record, self.next_record + count))
        self.next_record += count
        live, batch = self.live, self.batch(records)

        def write() -> None:
            live.writer.write_batch(batch)
            live.records += records

        self._survive(write)

    def forbidden(self) -> Batch:
        return self.batch([FORBIDDEN])

    def note_shown(self, manifest: WriterManifest) -> None:
        """Note that an epoch is shown: readers see its records, and no more."""
        self.shown = manifest.records
        self._compare(at_least=manifest.records, at_most=manifest.records)

    def check(self) -> None:
        """Check that all shown records are there once, and only records of complete epochs."""
        self._compare(at_least=self.shown, at_most=self.complete[-1].records)

    def _compare(self, *, at_least: list[int], at_most: list[int]) -> None:
        seen = self.place.numbers()
        twice = [number for number, count in Counter(seen).items() if count > 1]
        if twice or not set(at_least) <= set(seen) <= set(at_most):
            raise ContractBroken(
                f"readers see the records {sorted(seen)}, but each of {at_least} should be there "
                f"once, and none but {at_most}; {self.starts} starts of the task, "
                f"{len(self.complete) - 1} complete epochs"
            )
        if self.in_order and (seen != at_most[: len(seen)] or seen[: len(at_least)] != at_least):
            raise ContractBroken(f"readers see the records {seen}, written in order: {at_most}")
