"""What has changed in a dict since the last epoch, handed over in steps while its owner goes on."""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

from gearpy.core.base.copies import ATOMS, own
from gearpy.core.base.key_copy import PIECE, STEPS_FROM, finish, in_steps
from gearpy.core.base.one_key import one_key
from gearpy.state.kinds.bulk import BulkState, Changed

_MISSING: Final = object()
#: Larger dicts are not copied.
COPIED_MAX: Final = 1 << 20
#: Notes cost less than a copy where at most one key of so many changes in an epoch.
_FEW: Final = 32


class HeldDict:
    """Stands for a dict that must not change yet: new values of keys are beside it.

    It has only what windows and loops that fold records need. A value that can change is given as a
    copy, as the one in the dict is to be encoded as it is.

    Args:
        held: the dict. Only `merge` changes it.
        let_go: called where a value cannot be copied: the dict may change from then on.
    """

    __slots__ = ("_held", "_let_go", "changed")

    def __init__(self, held: dict[Any, Any], let_go: Callable[[], None]) -> None:
        self.changed: dict[Any, Any] = {}  #: Keys with new values, new ones in their order.
        self._held = held
        self._let_go = let_go

    def get(self, key: Any, default: Any = None) -> Any:
        value = self.changed.get(key, _MISSING)
        if value is not _MISSING:
            return value
        value = self._held.get(key, _MISSING)
        if value is _MISSING:
            return default
        if type(value) in ATOMS:
            return value
        try:
            return own(value)
        except TypeError:
            self._let_go()
            return value

    def __getitem__(self, key: Any) -> Any:
        value = self.get(key, _MISSING)
        if value is _MISSING:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[Any]:
        held = self._held
        return chain(held, [key for key in self.changed if key not in held])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.changed[key] = value

    def __contains__(self, key: Any) -> bool:
        return key in self.changed or key in self._held

    def merge(self) -> Iterator[None]:
        """Take the new values over into the dict, in pieces; new keys come in their order.

        How many pieces there are is known at the first one, however much changes meanwhile. Behind
        the last one all is in the dict, so nothing is yielded: a later change would be lost.
        """
        changed = self.changed
        for pieces in range(len(changed) // PIECE + 1, 0, -1):
            keys = list(islice(changed, -(-len(changed) // pieces)))
            # A `Counter` has an ``update`` that adds.
            dict.update(self._held, zip(keys, map(changed.pop, keys), strict=True))
            if pieces > 1:
                yield
        self.changed = self._held  # For who has this still at hand.


class ChangedPairs:
    """Gives a `BulkState` the pairs of a dict that have changed since the last epoch.

    A copy of the values is compared with the one before, beside the task: records pay nothing for
    it. The owner's notes count instead where a copy costs more: the dict is very large, few keys
    change, or its values can change and have to be encoded. No key is taken away but all at once,
    at the end; so a key keeps its position.

    Much is copied in steps. Until then the dict stands still, and the owner goes on with ``held``.

    Invariant: the first ``_stored`` keys of the dict have been handed over.

    Args:
        values: the dict; the owner changes it and calls `note`.
        is_restored: the dict is as it was handed over last.
        use: called with ``held`` when that is to be used, and then with the dict.
    """

    def __init__(
        self,
        values: dict[Any, Any],
        kept: BulkState,
        namespace: Any = None,
        *,
        is_restored: bool = False,
        use: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self.held: HeldDict | None = None  #: The owner uses it instead of the dict while it is.
        self.values = values
        self._use = use
        self._kept = kept
        self._namespace = namespace
        self._changes = 0  # Records since the last epoch.
        self._stored = 0
        self._keys: list[Any] = []
        self._before: list[Any] = []
        self._noted: set[Any] | None = None  # None while copies are compared.
        self._is_dear = False  # To copy it costs much.
        self._copying: Iterator[object] = iter(())
        self._merging: Iterator[object] = iter(())
        if is_restored:
            self._stored = len(values)
            if len(values) > COPIED_MAX:
                self._note_from_now()
            else:
                finish(self._remember([], None))

    def note(self, keys: Iterable[Any], records: int) -> None:
        """Note the keys that a batch of so many records has changed."""
        self._changes += records
        if self._noted is not None:
            self._noted.update(keys)

    def tell(self) -> None:
        self.settle()
        size, noted, changes = len(self.values), self._noted, self._changes
        amount = size if noted is None else len(noted)
        if not changes or not amount:
            return
        self._changes, self._stored = 0, size
        keys, now = list[Any](), list[Any]()
        copying: Iterator[object]
        if noted is None:
            is_last = self._is_dear or size > COPIED_MAX
            is_last = is_last or (size >= STEPS_FROM and _FEW * changes <= size)
            keys, before = self._keys, self._before
            changed = self._kept.put_all(keys, now, self._namespace, before=before, is_last=is_last)
            if is_last:
                self._note_from_now()
                copying = self._copied(keys, now)
            else:
                copying = self._remember(now, changed)
        else:
            self._noted = set()
            self._kept.put_all(keys, now, self._namespace)
            if 2 * amount >= size:  # Then it is quicker to copy all.
                copying = self._copied(keys, now)
            else:
                copying = self._looked_up(noted, keys, now)
            if _FEW * amount > 2 * size and size <= COPIED_MAX and not self._is_dear:
                self._noted = None
                copying = chain(copying, self._remember([], None))
        if in_steps(copying, amount) is not None:
            self._copying = copying
            self.held = HeldDict(self.values, lambda: finish(copying))
            self._merging = self._merged(self.held)
            self._kept.copies.add(copying, self._merging)
            self._use(self.held)

    def tell_again(self) -> None:
        """Have all pairs handed over once more, as if none had been."""
        self.settle()
        self._before, self._noted, self._changes = [], None, len(self.values) + 1

    def tell_end(self) -> None:
        self.settle()
        if self._stored:
            self._kept.delete(self.values, self._namespace, count=self._stored)

    def settle(self) -> None:
        """Finish at once what is done in steps; then all is in the dict again."""
        if self.held is not None:
            finish(self._copying)
            finish(self._merging)

    def _merged(self, held: HeldDict) -> Iterator[None]:
        yield from held.merge()
        self.held = None
        self._use(self.values)

    def _note_from_now(self) -> None:
        self._keys, self._before, self._noted = [], [], set()

    def _remember(self, now: list[Any], changed: Changed | None) -> Iterator[None]:
        """Copy all values to compare them with the next copy, unless that turns out to be dear."""
        can_change = yield from self._copied(self._keys, now)
        if not can_change or len(now) < STEPS_FROM:
            self._before = now
            return
        self._is_dear = True
        self._note_from_now()
        if self.held is not None and self._noted is not None:
            self._noted.update(self.held.changed)
        if changed is not None:
            changed.is_last = True

    def _copied(self, keys: list[Any], now: list[Any]) -> Generator[None, None, bool]:
        """Copy new keys and all values, in pieces; return whether values can change."""
        values, can_change = self.values, False
        new, last = list[Any](), islice(reversed(values), len(values) - len(keys))
        while more := list(islice(last, PIECE)):
            new += more
            yield
        keys += reversed(new)
        left = iter(values.values())
        while len(now) < len(values):
            piece, is_encoded = self._kept.isolated(list(islice(left, PIECE)))
            now += piece
            can_change = can_change or is_encoded
            yield
        return can_change

    def _looked_up(self, noted: set[Any], keys: list[Any], now: list[Any]) -> Iterator[None]:
        value_of, left = self.values.__getitem__, iter(noted)
        while more := list(islice(left, PIECE)):
            try:
                found = list(map(value_of, more))
            except KeyError:  # A record has a NaN of its own in its key; the dict has one.
                more = list(map(one_key, more))
                found = list(map(value_of, more))
            keys += more
            now += self._kept.isolated(found)[0]
            yield
