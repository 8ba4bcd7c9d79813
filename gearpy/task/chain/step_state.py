"""The state of a step of a chain: keyed, below the id of the step; and changes of a dict."""

from collections.abc import Callable, Iterable
from itertools import islice
from operator import length_hint
from typing import Any, Final

from gearpy.core.base.fields import one_nan
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.task.api.interfaces import TaskContext


def step_state(context: TaskContext, kind: str, place: int) -> KeyedState:
    """Return the state of the step of this kind at a place in the chain."""
    return context.state.scope(context.step_ids[place] if context.step_ids else kind)


def step_bulk(
    context: TaskContext, kind: str, place: int, *, operator: str, is_keyed: bool = True
) -> BulkState:
    """Return the state of a step that keeps pairs by itself; see `KeyedState.bulk`."""
    return step_state(context, kind, place).bulk(kind, operator=operator, is_keyed=is_keyed)


#: The values of a dict of up to so many keys are copied at the end of an epoch, which takes a task
#: some 50 ms, and compared with the copy before, beside the task. That costs the records nothing.
COPIED_MAX: Final = 1 << 20
#: The same where values can change, and are encoded.
ENCODED_MAX: Final = 1 << 13
#: From so many keys on a copy takes a task more than some 15 ms. Where few of them change from one
#: epoch to the next they are noted, which costs little then, and the epoch ends sooner.
FEW_FROM: Final = 1 << 18
#: Few are at most one key of so many, for so many epochs, until in one they are twice that. Notes
#: of keys are fewer than those of pairs: to look up one costs as much as to copy twenty.
_FEW_OF_PAIRS: Final = 16
_FEW_OF_KEYS: Final = 64
_FEW_EPOCHS: Final = 3


class Changes:
    """Tells a `BulkState` which pairs of a dict have changed.

    A dict is compared with its copy; of a large one its owner's notes count, and of one of which
    little changes. The owner takes no key away, except all at once, at the end: so a key stays at
    its place, and lists of the values are enough to compare.

    Invariant: the first ``_stored`` keys of the dict have been told.

    Args:
        values: the dict; the owner changes it and calls `note`.
        gathers: `dict` where `note` is given pairs, `set` where it is given keys.
        is_restored: the dict is as it was told last.
        copied_max: keys of a dict that is copied.
        encoded_max: the same where values can change.
        few_from: keys of a dict that is copied only if more than a few change.
    """

    def __init__(
        self,
        values: dict[Any, Any],
        kept: BulkState,
        namespace: Any = None,
        *,
        gathers: type[dict[Any, Any]] | type[set[Any]],
        is_restored: bool = False,
        copied_max: int = COPIED_MAX,
        encoded_max: int = ENCODED_MAX,
        few_from: int = FEW_FROM,
    ) -> None:
        self._values = values
        self._kept = kept
        self._namespace = namespace
        self._gathers: Callable[[Iterable[Any]], Any] = gathers
        self._copied_max = copied_max
        self._encoded_max = encoded_max
        self._few_from = few_from
        self._few_share = _FEW_OF_PAIRS if gathers is dict else _FEW_OF_KEYS
        self._is_changed = False
        self._is_too_large = False  # To be copied.
        self._changed = self._few_epochs = 0
        self._stored = 0
        self._keys: list[Any] = []
        self._before: list[Any] = []
        self._noted: Any = None
        if is_restored:
            self._copy()

    def note(self, changed: Iterable[Any]) -> None:
        """Note the changes of a batch: pairs, or keys; for one key the last change counts."""
        self._is_changed = True
        if self._noted is not None:
            self._noted.update(changed)
        else:
            self._changed += length_hint(changed, self._few_from)

    def tell(self) -> None:
        """Tell the changes since the last call.

        Raises:
            OperatorError: a value cannot be stored.
        """
        if not self._is_changed:
            return
        if self._noted is None:
            keys, before, now = self._keys, self._before, self._copy()
            if self._are_few():
                self._note_from_now()
            is_last = self._noted is not None
            self._kept.put_all(keys, now, self._namespace, before=before, is_last=is_last)
        else:
            noted, self._noted = self._noted, self._gathers(())
            pairs = noted if type(noted) is dict else self._pairs(noted)
            self._kept.put(pairs, self._namespace)
            if not self._is_too_large and self._few_share * len(noted) > 2 * len(self._values):
                self._noted = None
                self._copy()
        self._is_changed, self._changed = False, 0
        self._stored = len(self._values)

    def tell_end(self) -> None:
        """Tell that nothing is kept any more; the dict is not used from now on."""
        if self._stored:
            self._kept.delete_first(self._stored, self._values, self._namespace)

    def _copy(self) -> list[Any]:
        """Return all values as they are now; remember them, unless there are too many."""
        values = self._values
        if self._keys:
            self._keys += reversed([*islice(reversed(values), len(values) - len(self._keys))])
        else:
            self._keys += values
        now, can_change = self._kept.isolated(values.values())
        most = self._encoded_max if can_change else self._copied_max
        self._stored = len(now)
        if len(now) <= most:
            self._before = now
        else:
            self._is_too_large = True
            self._note_from_now()
        return now

    def _are_few(self) -> bool:
        """Tell whether little has changed for some epochs, in a dict that takes long to copy."""
        size = len(self._values)
        is_few = size >= self._few_from and self._few_share * self._changed <= size
        self._few_epochs = self._few_epochs + 1 if is_few else 0
        return self._few_epochs >= _FEW_EPOCHS

    def _note_from_now(self) -> None:
        self._keys, self._before, self._noted = [], [], self._gathers(())
        self._few_epochs = 0

    def _pairs(self, keys: set[Any]) -> dict[Any, Any]:
        values = self._values
        if 2 * len(keys) >= len(values):  # Then a copy is quicker.
            return dict(values)
        try:
            return dict(zip(keys, map(values.__getitem__, keys), strict=True))
        except KeyError:  # There is NaN in a key of a record; not so in the dict.
            return {key: values[key] for key in map(one_nan, keys)}
