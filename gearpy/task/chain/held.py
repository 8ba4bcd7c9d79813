"""A dict that stands still for a while, as it is copied in steps, and whose owner goes on."""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final

from gearpy.core.base.copies import ATOMS, own

_MISSING: Final = object()
#: Changed keys that are taken over in one step, which is over in some 4 ms.
MERGED_AT_ONCE: Final = 1 << 12


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

    def merge(self) -> Iterator[int]:
        """Take the new values over into the dict, in steps; yields the keys of all but the last.

        How many steps there are is known at the first one, however much changes meanwhile. New
        keys come into the dict in their order. Behind the last step all is in it, so nothing is
        yielded there: what the owner changed then would be lost.
        """
        changed = self.changed
        for steps_left in range(len(changed) // MERGED_AT_ONCE + 1, 0, -1):
            keys = list(islice(changed, -(-len(changed) // steps_left)))
            # Not that of a `Counter`, which adds.
            dict.update(self._held, zip(keys, map(changed.pop, keys), strict=True))
            if steps_left > 1:
                yield len(keys)
        self.changed = self._held  # For who has this still at hand.
