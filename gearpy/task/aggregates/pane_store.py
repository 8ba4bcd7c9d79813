"""Panes of windows as keyed state: what has changed since the last epoch, what has gone."""

from typing import Any

from gearpy.core.window.aligned import AlignedPanes
from gearpy.core.window.counted import CountPanes
from gearpy.core.window.sessions import SessionPanes
from gearpy.state.kinds.bulk import BulkState
from gearpy.task.chain.changes import Changes

__all__ = ["AlignedStore", "KeyStore"]


class AlignedStore:
    """Panes by window and key; each window is a namespace.

    Args:
        panes: restored already.
        kept: is told what has changed.
    """

    def __init__(self, panes: AlignedPanes, kept: BulkState) -> None:
        self._panes = panes
        self._kept = kept
        self._changes: dict[int, Changes] = {}
        for start_ms in panes.panes:
            self._begin(start_ms, is_restored=True)

    def tidy(self) -> None:
        """Forget what has gone; called after each step of time."""
        for start_ms in self._changes.keys() - self._panes.panes.keys():
            self._changes.pop(start_ms).tell_end()

    def tell(self) -> None:
        """Tell what has changed since the last call."""
        touched = self._panes.touched
        for start_ms, keys in touched.items():
            changes = self._changes.get(start_ms) or self._begin(start_ms)
            changes.note(keys)
            changes.tell()
        touched.clear()

    def _begin(self, start_ms: int, *, is_restored: bool = False) -> Changes:
        changes = self._changes[start_ms] = Changes(
            self._panes.panes[start_ms],
            self._kept,
            start_ms,
            gathers=set,
            is_restored=is_restored,
        )
        return changes


class KeyStore:
    """Panes by key, where keys come and go.

    Invariant: ``_stored`` are the keys that are stored.

    Args:
        panes: restored already.
        kept: is told what has changed.
    """

    def __init__(self, panes: SessionPanes | CountPanes, kept: BulkState) -> None:
        self._panes = panes
        self._kept = kept
        self._stored: set[Any] = set(panes.panes)

    def tidy(self) -> None:
        """Forget what has gone and was never stored; called after each step of time.

        Not each time: it looks at all that was touched.
        """
        touched, live = self._panes.touched, self._panes.panes
        if len(touched) > 2 * (len(live) + len(self._stored)) + 1024:
            touched.intersection_update(live.keys() | self._stored)

    def tell(self) -> None:
        """Tell what has changed since the last call."""
        touched, live, stored = self._panes.touched, self._panes.panes, self._stored
        # Nothing is called for each key: there may be many, and the task waits.
        keys = touched & live.keys()
        # Of many, those come one after the other that are so in memory, too.
        ordered = filter(keys.__contains__, live) if 4 * len(keys) >= len(live) else keys
        changed = {key: live[key] for key in ordered}
        gone = dict.fromkeys((touched - keys) & stored)
        touched.clear()
        stored |= keys
        stored.difference_update(gone)
        self._kept.put(changed, None)
        if gone:
            self._kept.delete_first(len(gone), gone, None)
