"""Panes of windows as keyed state: those that have changed are copied at the end of an epoch.

Of many that is done in steps, while the windows go on: with a dict that stands still, or, where
keys come and go, with a `KeyCopy`.
"""

from collections.abc import Iterator
from functools import partial
from itertools import compress
from typing import Any, Final

from gearpy.core.base.key_copy import LOOKED_UP, KeyCopy, finish, in_steps
from gearpy.core.window.aligned import AlignedPanes, Panes
from gearpy.core.window.counted import CountPanes
from gearpy.core.window.sessions import SessionPanes
from gearpy.state.kinds.bulk import BulkState
from gearpy.task.chain.step_state import Changes

#: To look up a pane, and into it, costs as much as to copy so many values in a row; to encode it,
#: as its value can change, costs more.
_COPIED: Final = 2 * LOOKED_UP
_ENCODED: Final = 4 * LOOKED_UP


class AlignedStore:
    """Panes by window and key; each window is a namespace."""

    def __init__(self, panes: AlignedPanes, kept: BulkState) -> None:
        self._panes = panes
        self._kept = kept
        self._changes: dict[int, Changes] = {}
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
            changes.note(keys)
            changes.tell()
        touched.clear()

    def _tell_again(self) -> None:
        for start_ms, changes in self._changes.items():
            changes.tell_again()
            if start_ms in self._panes.panes:
                self._panes.touched.setdefault(start_ms, set())

    def _begin(self, start_ms: int, panes: Panes, *, is_restored: bool = False) -> Changes:
        assert isinstance(panes, dict), "it stands still only while it is copied"
        changes = self._changes[start_ms] = Changes(
            panes,
            self._kept,
            start_ms,
            gathers=set,
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
        self._copying: Iterator[int] = iter(())
        kept.holds(lambda: (panes.panes,), self._tell_again)

    def tell(self) -> None:
        """Pass all changes since the last call to keyed state; what is much, in steps."""
        finish(self._copying)
        touched = self._panes.touched
        assert isinstance(touched, set), "all is copied"
        amount = len(touched)
        told = _Told(self._panes.panes, self._kept)
        copy = KeyCopy(touched, told.copy)
        told.gone = self._panes.tell(copy)
        self._copying = self._steps(copy)
        left = in_steps(self._copying, amount)
        told.tell(is_whole=left is None)
        if left is not None:
            self._kept.go_on_with(left, iter(()))

    def _tell_again(self) -> None:
        finish(self._copying)
        touched = self._panes.touched
        assert isinstance(touched, set), "all is copied"
        touched.update(self._panes.panes)

    def _steps(self, copy: KeyCopy) -> Iterator[int]:
        yield from copy.steps()
        self._panes.touched = copy.fresh


class _Told:
    """The panes of some keys as they were when an epoch ended, and the keys that had none."""

    def __init__(self, panes: dict[Any, Any], kept: BulkState) -> None:
        self.gone: set[Any] = set()  #: Keys that were told before, and may have none.
        self._panes = panes
        self._kept = kept
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._deleted: list[Any] = []

    def copy(self, keys: list[Any]) -> int:
        amount, found = len(keys), list(map(self._panes.get, keys))
        if not all(found):
            lost = (key for key, pane in zip(keys, found, strict=True) if not pane)
            deleted = self.gone.intersection(lost)
            self.gone -= deleted  # Else all are freed in one go.
            self._deleted += deleted
            keys, found = list(compress(keys, found)), list(filter(None, found))
        values, is_encoded = self._kept.isolated(found)
        self._keys += keys
        self._values += values
        return amount * (_ENCODED if is_encoded else _COPIED)

    def tell(self, *, is_whole: bool) -> None:
        """Pass them to keyed state; what is not whole is added to later."""
        if self._deleted or not is_whole:
            self._kept.delete(self._deleted)
        if self._keys or not is_whole:
            self._kept.put_all(self._keys, self._values, before=[], is_last=True)
