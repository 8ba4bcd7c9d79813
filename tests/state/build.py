"""State of both backends, clocks that tests set, and what a checkpoint does with changes."""

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from gearpy.ids import MIN_MS
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.stores.cells import Tag, namespace_part
from gearpy.state.stores.disk import DiskStore
from gearpy.state.stores.heap import HeapStore
from gearpy.state.stores.store import CellStore, Section, StateDelta

Backend: TypeAlias = Literal["heap", "disk"]
MakeStore: TypeAlias = Callable[[], CellStore]
BACKENDS: Final[tuple[Backend, ...]] = ("heap", "disk")
MAX_BYTES: Final = 256 << 20

_folders: Final = count()


class WallClock:
    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def a_store(backend: Backend, folder: Path, max_bytes: int = MAX_BYTES) -> CellStore:
    if backend == "heap":
        return HeapStore()
    # It moves a few cells at a time, so that reads meet changes that are half moved.
    return DiskStore(folder / str(next(_folders)), max_bytes, slice_writes=2)


def a_state(
    store: CellStore | None = None,
    *,
    sections: Iterable[Section] = (),
    clock: WallClock | None = None,
    watermark_ms: int = MIN_MS,
) -> KeyedState:
    state = KeyedState(store or HeapStore(), now_ms=clock or WallClock(), watermark_ms=watermark_ms)
    for section in sections:
        state.load(section)
    return state


def put(kept: BulkState, pairs: dict[Any, Any], namespace: Any = None) -> None:
    values, _ = kept.isolated([*pairs.values()])
    kept.put_all([*pairs], values, namespace)


def changes_of(state: KeyedState) -> list[Section]:
    return stored(state.snapshot())


def after_a_restart(state: KeyedState) -> KeyedState:
    again = a_state(sections=changes_of(state))
    again.key, again.namespace = state.key, state.namespace
    return again


def stored(delta: StateDelta | None) -> list[Section]:
    if delta is None:
        return []
    sections = list(delta.sections())
    delta.release()
    return sections


def a_table(
    name: str = "total", kind: str = "value", namespace: bytes = b"", *, expires: bool = False
) -> bytes:
    return Tag((name,), kind, "msgpack", expires).encode() + namespace_part(namespace)
