"""Panes of windows as keyed state: those that have changed are copied at the end of an epoch.

Of many that is done in steps, while the windows go on: with a dict that stands still, or, where
keys come and go, with a `KeyCopy`.
"""

from collections.abc import Iterator
from functools import partial
from itertools import compress
from typing import Any

from gearpy.core.base.key_copy import KeyCopy, finish
from gearpy.core.window.aligned import AlignedPanes, Panes
from gearpy.core.window.counted import CountPanes
from gearpy.core.window.sessions import SessionPanes
from gearpy.state.kinds.bulk import BulkState
from gearpy.state.kinds.changed import ChangedPairs


class AlignedStore:
    """Panes by window and key; each window is a namespace."""

    def __init__(self, panes: AlignedPanes, kept: BulkState) -> None:
        self._panes = panes
        self._kept = kept
        self._changes: dict[int, ChangedPairs] = {}
        for start_ms, each in panes.panes.items():
            self._begin(start_ms, each, is_restored=True)
        kept.holds(lambda: [each.values for each in self._changes.values()], self._tell_again)

    def tell(self) -> None:
        """Pass all changes since the last call to keyed state; what is much, in steps."""
        touched, panes = self._panes.touched, self._panes.panes
        for start_ms in self._changes.keys() - panes.keys():
            self._changes.pop(start_ms).tell_end()
        for start_ms, keys in touched.items():
            changes = self._changes.get(start_ms) or self._begin(start_ms, panes[start_ms])
            changes.note(keys, len(keys))
            changes.tell()
        touched.clear()

    def _tell_again(self) -> None:
        for start_ms, changes in self._changes.items():
            changes.tell_again()
            if start_ms in self._panes.panes:
                self._panes.touched.setdefault(start_ms, set())

    def _begin(self, start_ms: int, panes: Panes, *, is_restored: bool = False) -> ChangedPairs:
        assert isinstance(panes, dict), "it stands still only while it is copied"
        changes = self._changes[start_ms] = ChangedPairs(
            panes,
            self._kept,
            start_ms,
            is_restored=is_restored,
            use=partial(self._use, start_ms),
        )
        return changes

    def _use(self, start_ms: int, panes: Panes) -> None:
        if start_ms in self._panes.panes:
            self._panes.panes[start_ms] = panes


class KeyStore:
    """Panes by key, where keys come and go."""

    def __init__(self, panes: SessionPanes | CountPanes, kept: BulkState) -> None:
        self._panes = panes
        self._kept = kept
        self._gone: set[Any] = set()  # Keys that were told before, and may have none.
        self._copying: Iterator[None] = iter(())
        kept.holds(lambda: (panes.panes,), self._tell_again)

    def tell(self) -> None:
        """Pass all changes since the last call to keyed state; what is much, in steps."""
        finish(self._copying)
        touched = self._panes.touched
        assert isinstance(touched, set), "all is copied"
        amount = len(touched)
        if not amount:
            return
        keys, values, deleted = list[Any](), list[Any](), list[Any]()
        copy = KeyCopy(touched, partial(self._copy, keys, values, deleted))
        self._gone = self._panes.tell(copy)
        self._kept.delete(deleted)
        self._kept.put_all(keys, values)
        self._copying = self._steps(copy)
        self._kept.go_on_with(self._copying, amount)

    def _tell_again(self) -> None:
        finish(self._copying)
        touched = self._panes.touched
        assert isinstance(touched, set), "all is copied"
        touched.update(self._panes.panes)

    def _steps(self, copy: KeyCopy) -> Iterator[None]:
        yield from copy.steps()
        self._panes.touched = copy.fresh

    def _copy(
        self, told: list[Any], values: list[Any], deleted: list[Any], keys: list[Any]
    ) -> None:
        """Take the panes of some keys as they are now, and the told ones that have none."""
        found = list(map(self._panes.panes.get, keys))
        if not all(found):
            lost = (key for key, pane in zip(keys, found, strict=True) if not pane)
            gone = self._gone.intersection(lost)
            self._gone -= gone  # Else all are freed in one go.
            deleted += gone
            keys, found = list(compress(keys, found)), list(filter(None, found))
        told += keys
        values += self._kept.isolated(found)[0]
