"""ProgramSweeper: removes programs from a master's folder that no application needs any more."""

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from gearpy.actor.api import Actor
from gearpy.errors import GearpyError
from gearpy.messages.summaries import ApplicationSummary
from gearpy.storage.artifacts import ArtifactStore

_log = logging.getLogger(__name__)
_SWEEP_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000

#: Returns which programs are needed, by applications that have not ended before a wall time;
#: None while this master may not know it.
FindNeeded: TypeAlias = Callable[[int], Mapping[str, ApplicationSummary] | None]


class NeededPrograms(Struct, frozen=True):
    """Ask a master for the programs that are needed; see `MasterState.needed_programs`."""

    ended_after_ms: int


class _Tick:
    pass


class ProgramSweeper(Actor[_Tick]):
    """Removes unneeded programs from the store of one master, once a minute.

    Of several masters each has its own store, and goes by what it knows of the log of all.

    Runs on: its own thread, as it waits for files. Restart: none.
    """

    def __init__(self, store: ArtifactStore, find_needed: FindNeeded, *, keep_hours: int) -> None:
        self._store = store
        self._find_needed = find_needed
        self._keep_ms = keep_hours * _HOUR_MS

    def on_start(self) -> None:
        self.context.schedule_self(_Tick())
        self.context.schedule(_SWEEP_MS, _Tick())

    def receive(self, message: _Tick) -> None:
        try:
            needed = self._find_needed(self.context.wall_ms() - self._keep_ms)
            if needed is None:
                return
            gone = self._store.sweep(needed, self.context.now_ms())
        except (GearpyError, OSError) as error:
            _log.warning("programs that are not needed stay for now: %s", error)
            return
        for sha256 in gone:
            _log.info("program %s is removed, as no application needs it", sha256[:12])
