"""The state of a step of a chain: keyed, below the id of the step; and changes of a dict."""

from collections.abc import Callable, Iterable
from itertools import islice
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


class Changes:
    """Tells a `BulkState` which pairs of a dict have changed.

    A dict is compared with its copy; of a large one its owner's notes count. The owner takes no
    key away, except all at once, at the end: so a key stays at its place, and lists of the values
    are enough to compare.

    Invariant: the first ``_stored`` keys of the dict have been told.

    Args:
        values: the dict; the owner changes it and calls `note`.
        gathers: `dict` where `note` is given pairs, `set` where it is given keys.
        is_restored: the dict is as it was told last.
        copied_max: keys of a dict that is copied.
        encoded_max: the same where values can change.
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
    ) -> None:
        self._values = values
        self._kept = kept
        self._namespace = namespace
        self._gathers: Callable[[Iterable[Any]], Any] = gathers
        self._copied_max = copied_max
        self._encoded_max = encoded_max
        self._is_changed = False
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

    def tell(self) -> None:
        """Tell the changes since the last call.

        Raises:
            OperatorError: a value cannot be stored.
        """
        if not self._is_changed:
            return
        if self._noted is None:
            keys, before = self._keys, self._before
            self._kept.put_all(keys, self._copy(), self._namespace, before=before)
        else:
            noted, self._noted = self._noted, self._gathers(())
            pairs = noted if type(noted) is dict else self._pairs(noted)
            self._kept.put(pairs, self._namespace)
        self._is_changed = False
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
            self._keys, self._before, self._noted = [], [], self._gathers(())
        return now

    def _pairs(self, keys: set[Any]) -> dict[Any, Any]:
        values = self._values
        if 2 * len(keys) >= len(values):  # Then a copy is quicker.
            return dict(values)
        try:
            return dict(zip(keys, map(values.__getitem__, keys), strict=True))
        except KeyError:  # There is NaN in a key of a record; not so in the dict.
            return {key: values[key] for key in map(one_nan, keys)}
