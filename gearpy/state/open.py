"""Opens the keyed state of a task. Start here, apart from the states themselves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from gearpy.clocks import wall_ms
from gearpy.errors import ConfigError
from gearpy.ids import MIN_MS
from gearpy.state.keyed import KeyedState
from gearpy.state.stores.heap import HeapStore
from gearpy.state.stores.store import CellStore

_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSettings:
    """Says where tasks keep state; as `config.schema.StateConfig`."""

    backend: Literal["heap", "disk"] = "heap"
    folder: str = ""  #: Of the database files; a ~ is the user's home.
    disk_max_bytes: int = 64 * _GIB


def open_state(
    settings: StateSettings,
    name: str,
    now_ms: Callable[[], int],
    watermark_ms: Callable[[], int],
) -> KeyedState:
    """Return the state of a task, empty. Opens no file before the first value.

    Args:
        settings: where to keep it.
        name: of the task; with the disk backend a folder of this name, which may have several
            parts, is deleted and made anew.
        now_ms: wall time in ms since the epoch.
        watermark_ms: how far event time has come; asked now, then `KeyedState.advance` tells it.
    """
    store: CellStore
    if settings.backend == "heap":
        store = HeapStore()
    elif not settings.folder:
        raise ConfigError("state on disk needs a folder: set state.folder")
    else:
        from gearpy.state.stores.disk import DiskStore, folder_of  # noqa: PLC0415 - loads a library

        store = DiskStore(folder_of(settings.folder, name), settings.disk_max_bytes)
    return KeyedState(store, now_ms=now_ms, watermark_ms=watermark_ms())


def heap_state() -> KeyedState:
    return KeyedState(HeapStore(), now_ms=wall_ms, watermark_ms=MIN_MS)
