"""Whatever fails, and whoever goes on that was given up: a log has each window once."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.window_log_sink import LogOptions, WindowLogWriter
from gearpy.errors import GearpyError
from gearpy.messages.data import Batch
from gearpy.task.window_result import WindowResult
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.lane import PreparedBatch
from gearpy.windowlog.log import WindowLog
from tests.windowlog.store_build import MemoryStore

#: A walk has so many steps; a crash or a zombie comes in between, mostly not.
STEPS = 100
SELDOM = 50
SCHEMA = pa.schema({"key": pa.int64(), "value": pa.int64()})
LANE = "windows-00000"


class Crashed(Exception):
    """The process was killed between two steps."""


class Manifest(NamedTuple):
    """A complete epoch: how many windows it has brought so far, and what goes on from there."""

    epoch: int
    windows: int
    prepared: dict[int, PreparedBatch | None]
    state: Any


class Attempt:
    """A writer that goes on from a manifest, and what it has written since."""

    def __init__(
        self, writer: WindowLogWriter, start: Manifest, run: str, incarnation: int
    ) -> None:
        self.writer = writer
        self.run = run
        self.incarnation = incarnation
        self.start = start
        self.epoch = start.epoch
        self.windows = start.windows
        self.prepared: dict[int, PreparedBatch | None] = {}
        self.told: dict[int, PreparedBatch | None] = {}  # Epochs that it may show.


class LogWorld:
    """One task, its coordinator, its zombies and a reader that purges."""

    def __init__(self, rng: Random, **options: Any) -> None:
        self.rng = rng
        self.store = MemoryStore()
        self.options = LogOptions(place="memory", schema=SCHEMA, **options)
        self.complete = [Manifest(0, 0, {}, None)]
        self.ended: Manifest | None = None
        self.most = 0  # Windows in any epoch that ever was complete.
        self.shown = 0  # At least so many are shown.
        self.zombies: list[Attempt] = []
        self.run, self.incarnation = 0, 0
        self.log = WindowLog(self.store)
        self.position: dict[str, int] = {}
        self.read: list[int] = []
        self._start()

    def step(self) -> None:
        """Let something happen."""
        acts = [self.write, self.end_epoch, self.complete_epoch, self.commit, self.zombie]
        self.rng.choice([*acts, *acts, self.restart, self.compact, self.read_on, self.purge])()
        self.check()

    def finish(self) -> None:
        """Come to the end of the stream."""
        self.restart()
        while self.live.windows <= self.most:
            self.write()
        self.end_epoch()
        self.complete_epoch()
        live = self.live
        if not live.told:  # It was killed at the end of the epoch.
            self.finish()
            return
        self._show_what_it_was_told(live)
        self.check()
        assert sorted(self.read + self._keys(self.log.view().ends())) == list(range(live.windows))

    # -- what happens --------------------------------------------------------------------------

    def write(self) -> None:
        """Results come; those that come again have other values, and another order."""
        count = self.rng.randint(1, 4)
        numbers = list(range(self.live.windows, self.live.windows + count))
        self.rng.shuffle(numbers)
        results = [
            WindowResult(each, self.incarnation, each * 10, each * 10 + 10) for each in numbers
        ]
        self.live.writer.write_batch(Batch(results, [0] * count))
        self.live.windows += count

    def end_epoch(self) -> None:
        """The writer prepares; whether the epoch is ever complete is not for it to know."""
        live = self.live

        def prepare() -> None:
            live.epoch += 1
            live.prepared[live.epoch] = live.writer.prepare(live.epoch)
            state = live.writer.snapshot()
            self.ended = Manifest(live.epoch, live.windows, dict(live.prepared), state)

        self._survive(prepare)

    def complete_epoch(self) -> None:
        """All other tasks have answered, too."""
        if self.ended is not None:
            self.complete.append(self.ended)
            self.ended = None
            self.live.told = dict(self.complete[-1].prepared)
            self.most = max(self.most, self.complete[-1].windows)

    def commit(self) -> None:
        """The sink is told, and may be told again."""
        live, newest = self.live, self.complete[-1]

        def commit() -> None:
            for epoch, prepared in sorted(live.told.items()):
                live.writer.commit(epoch, prepared)
                live.prepared.pop(epoch, None)
            self.shown = max(self.shown, newest.windows)

        self._survive(commit)

    def restart(self) -> None:
        """Go on from the newest complete epoch, or from the one before; in a new run, or not."""
        self._end()
        if self.rng.random() < 0.4 and len(self.complete) > 1:
            self.complete.pop()
        if self.rng.random() < 0.3 and self.complete[-1].epoch:  # Else it has nothing of the other.
            self.run, self.incarnation = self.run + 1, self.rng.randint(0, 3)
            self.complete = self.complete[-1:]
        before = self.run, self.incarnation + 1
        self.store.on_step = self._disturbance()
        with suppress(Crashed):
            try:
                self._start()
            except GearpyError:
                if (self.run, self.incarnation) == before:  # Nobody has its place.
                    raise
            before = -1, 0  # It has come to an end.
        self.store.on_step = lambda _: None
        if (self.run, self.incarnation) == before:
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

    def compact(self) -> None:
        """Somebody makes fewer files, and may be killed meanwhile; it holds nobody up."""
        crash_at, steps = self.rng.randint(1, SELDOM), iter(range(1, 10_000))

        def on_step(_: str) -> None:
            if next(steps) == crash_at:
                raise Crashed

        self.store.on_step = on_step
        with suppress(Crashed):
            compact_all(WindowLog(self.store), rows_max=self.rng.randint(2, 60))
        self.store.on_step = lambda _: None

    def read_on(self) -> None:
        """A reader takes some of what there is, and remembers it."""
        end = self.log.view().advance(self.position, max_rows=self.rng.randint(1, 20))
        self.read += self._keys(end)
        self.position = end

    def _keys(self, end: dict[str, int]) -> list[int]:
        """Return what is behind the reader."""
        if not self.log.exists:
            return []
        keys: list[int] = self.log.read_between(self.position, end)["key"].to_pylist()
        return keys

    def purge(self) -> None:
        """What was read is removed; from then on nobody goes back behind it."""
        self.log.purge(self.position)
        self.complete = self.complete[-1:]

    def check(self) -> None:
        """All that was shown, once, and no more than what was complete."""
        seen = sorted(self.read + self._keys(self.log.view().ends()))

        assert seen == sorted(set(seen))
        assert seen[: self.shown] == list(range(self.shown))
        assert not seen or seen[-1] < self.most
        assert not self.log.view().holes

    # -- how -----------------------------------------------------------------------------------

    def _start(self) -> None:
        self.incarnation += 1
        newest = self.complete[-1]
        writer = WindowLogWriter(self.options, WindowLog(self.store), task=0)
        self.live = Attempt(writer, newest, f"r{self.run}", self.incarnation)
        mine = self.live
        self._recover(mine)
        if self.live is mine:  # It was not given up meanwhile.
            self.shown = max(self.shown, newest.windows)

    def _recover(self, attempt: Attempt) -> None:
        start = attempt.start
        attempt.writer.restore(start.state)
        attempt.writer.recover(
            start.prepared,
            epoch=start.epoch,
            run=attempt.run,
            incarnation=attempt.incarnation,
        )

    def _succeed(self) -> None:
        self._start()
        for act in (self.write, self.end_epoch, self.complete_epoch, self.commit):
            act()

    def _end(self) -> None:
        self.ended = None
        if self.rng.random() < 0.5:  # Power was lost, or one process was given up.
            self.store.crash(self.rng)
            self.zombies.clear()
            self.log = WindowLog(self.store)
        else:
            self.zombies.append(self.live)

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

    def _survive(self, action: Callable[[], None]) -> None:
        crash_at, steps = self.rng.randint(1, SELDOM), iter(range(1, 10_000))

        def on_step(_: str) -> None:
            if next(steps) == crash_at:
                raise Crashed

        self.store.on_step = on_step
        try:
            action()
        except Crashed:
            self.store.on_step = lambda _: None
            self._end()
            self._start()
        self.store.on_step = lambda _: None

    def _quietly(self, action: Callable[[], Any]) -> None:
        # Nobody listens. It may have been frozen before it had begun.
        with suppress(GearpyError, AssertionError):
            self._alone(action)

    def _alone(self, action: Callable[[], Any]) -> None:
        """Do something while all others stand still."""
        on_step, self.store.on_step = self.store.on_step, lambda _: None
        try:
            action()
        finally:
            self.store.on_step = on_step

    def _write_on(self, zombie: Attempt) -> None:
        zombie.writer.write_batch(Batch([WindowResult(10**6, 0, 0, 10)], [0]))
        zombie.epoch += 1
        zombie.writer.prepare(zombie.epoch)

    def _show_what_it_was_told(self, zombie: Attempt) -> None:
        for epoch, prepared in sorted(zombie.told.items()):
            zombie.writer.commit(epoch, prepared)


#: Walks where what has to come again is purged before it has, and then there is another restart.
PURGED = (1273, 1434, 1653, 1657, 2212, 2250, 2457, 2983)


@pytest.mark.parametrize("seed", [*range(80), *PURGED])
def test_a_log_has_each_window_once(seed: int) -> None:
    """Between any two steps there may be a crash, a power cut, a compaction, or a zombie."""
    options = {"compact_files": 3} if seed % 2 else {"body": "auto"}
    world = LogWorld(Random(seed), **options)

    for _ in range(STEPS):
        world.step()
    world.finish()
