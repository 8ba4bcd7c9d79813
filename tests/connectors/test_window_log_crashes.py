"""Whatever fails, and whoever goes on that was given up: a log has each window once."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.connectors.window_log.sink import LogOptions, WindowLogWriter
from gearpy.errors import GearpyError
from gearpy.messages.data import Batch
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.task.api.window_result import WindowResult
from gearpy.testing.writer_world import FORBIDDEN, Crashed, TaskWorld, WriterManifest, WriterPlace
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import WindowLog

STEPS = 100
SCHEMA = pa.schema({"key": pa.int64(), "value": pa.int64()})


class LogPlace(WriterPlace):
    def __init__(self, **options: Any) -> None:
        self.store = MemoryFolder()
        super().__init__(self.store)
        self.options = LogOptions(place="memory", schema=SCHEMA, **options)
        self.log = WindowLog(self.store)
        self.position: dict[str, int] = {}
        self.read: list[int] = []

    def writer(self) -> WindowLogWriter:
        return WindowLogWriter(self.options, WindowLog(self.store), task=0)

    def crash(self, rng: Random) -> None:
        """Lose power; the reader begins anew where it was."""
        super().crash(rng)
        self.log = WindowLog(self.store)

    def read_to(self, end: dict[str, int]) -> None:
        self.read += self._keys(end)
        self.position = end

    def seen(self) -> list[int]:
        return sorted(self.read + self._keys(self.log.view().ends()))

    def _keys(self, end: dict[str, int]) -> list[int]:
        if not self.log.exists:
            return []
        keys: list[int] = self.log.read_between(self.position, end)["key"].to_pylist()
        return keys


class LogWorld(TaskWorld[LogPlace]):
    """Writes windows, numbered on; somebody compacts the log, and a reader purges it."""

    seldom = 50
    damaged = 0.4
    #: It may have been frozen before it had begun.
    harmless = (GearpyError, AssertionError)

    def __init__(self, rng: Random, **options: Any) -> None:
        super().__init__(LogPlace(**options), rng)
        self.runs = 0
        self.most = 0  # Windows in any epoch that ever was complete.
        self.shown = 0  # At least so many are shown.
        self.start()

    def rare(self) -> list[Callable[[], None]]:
        return [*super().rare(), self.compact, self.read_on, self.purge]

    def finish(self) -> None:
        self.restart()
        while len(self.live.records) <= self.most:
            self.write()
        self.end_epoch()
        self.complete_epoch()
        live = self.live
        if not live.told:  # It was killed at the end of the epoch.
            self.finish()
            return
        self._show_what_it_was_told(live)
        self.check()
        assert self.place.seen() == list(range(len(live.records)))

    # -- what is written -----------------------------------------------------------------------

    def write(self) -> None:
        """Results come; those that come again have other values, and another order."""
        count, live = self.rng.randint(1, 4), self.live
        numbers = list(range(len(live.records), len(live.records) + count))
        self.rng.shuffle(numbers)
        results = [
            WindowResult(each, self.incarnation, each * 10, each * 10 + 10) for each in numbers
        ]
        live.writer.write_batch(Batch(results, [0] * count))
        live.records += numbers

    def forbidden(self) -> Batch:
        return Batch([WindowResult(FORBIDDEN, 0, 0, 10)], [0])

    def note_shown(self, manifest: WriterManifest) -> None:
        self.shown = max(self.shown, len(manifest.records))

    def check(self) -> None:
        seen = self.place.seen()

        assert seen == sorted(set(seen))
        assert seen[: self.shown] == list(range(self.shown))
        assert not seen or seen[-1] < self.most
        assert not self.place.log.view().holes

    # -- what happens --------------------------------------------------------------------------

    def complete_epoch(self) -> None:
        """What was complete may be shown, even if the task goes back behind it."""
        super().complete_epoch()
        self.most = max(self.most, len(self.complete[-1].records))

    def go_back(self) -> None:
        super().go_back()
        if self.rng.random() < 0.3 and self.complete[-1].epoch:  # Else it has nothing of the other.
            self.runs, self.incarnation = self.runs + 1, self.rng.randint(0, 3)
            self.run = f"r{self.runs}"
            self.complete = self.complete[-1:]

    def compact(self) -> None:
        """Somebody makes fewer files, and may be killed meanwhile; it holds nobody up."""
        self.place.on_step = self._crash()
        with suppress(Crashed):
            compact_all(WindowLog(self.place.store), rows_max=self.rng.randint(2, 60))
        self.place.on_step = lambda _: None

    def read_on(self) -> None:
        view = self.place.log.view()
        self.place.read_to(view.advance(self.place.position, max_rows=self.rng.randint(1, 20)))

    def purge(self) -> None:
        """What was read is removed; from then on nobody goes back behind it."""
        self.place.log.purge(self.place.position)
        self.complete = self.complete[-1:]


#: Walks where what has to come again is purged before it has, and then there is another restart.
PURGED = (1273, 1434, 1653, 1657, 2212, 2250, 2457, 2983)


@pytest.mark.parametrize(
    "seed",
    [*range(20), *PURGED, *(pytest.param(n, marks=pytest.mark.long) for n in range(20, 40))],
)
def test_a_log_has_each_window_once(seed: int) -> None:
    options = {"compact_files": 3} if seed % 2 else {"body": "auto"}
    world = LogWorld(Random(seed), **options)

    for _ in range(STEPS):
        world.step()
    world.finish()
