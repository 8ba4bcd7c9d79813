"""The state of a step of a chain: keyed, below the id of the step; and changes of a dict."""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, islice
from operator import length_hint
from typing import Any, Final

from gearpy.core.base.key_copy import LOOKED_UP, STEPS_FROM, finish
from gearpy.core.base.one_key import one_key
from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import AllPairs, BulkState
from gearpy.state.kinds.steps import STEP
from gearpy.state.stores.many import CHUNK
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.held import HeldDict


def step_state(context: TaskContext, kind: str, place: int) -> KeyedState:
    return context.state.scope(context.step_ids[place] if context.step_ids else kind)


def step_bulk(
    context: TaskContext, kind: str, place: int, *, operator: str, is_keyed: bool = True
) -> BulkState:
    return step_state(context, kind, place).bulk(kind, operator=operator, is_keyed=is_keyed)


#: The values of a dict of up to so many keys are copied at the end of an epoch, which takes a task
#: some 60 ms in all, and compared with the copy before, beside the task. That costs the records
#: nothing.
COPIED_MAX: Final = 1 << 20
#: The same where values can change, and are encoded.
ENCODED_MAX: Final = 1 << 13
#: From so many keys on a copy takes more than some 15 ms. Where few of them change from one epoch
#: to the next they are noted, which costs little then, and the epoch ends sooner.
FEW_FROM: Final = 1 << 18
#: Few are at most one key of so many, for so many epochs, until in one they are twice that. Notes
#: of keys are fewer than those of pairs: to look up one costs as much as to copy twenty.
_FEW_OF_PAIRS: Final = 16
_FEW_OF_KEYS: Final = 64
_FEW_EPOCHS: Final = 3
#: For each key that has changed meanwhile at least so many are copied, which costs as much as to
#: take the change over: where large batches change very many, the copy is soon made.
_COPIED_FOR_A_CHANGE: Final = 64
#: To append a key: many are new at once while a fold is young, and its memory is, too.
_COPIED_FOR_A_KEY: Final = 2
#: To look into a tuple, that nothing in it can change.
_COPIED_FOR_A_TUPLE: Final = 4


class Changes:
    """Tells a `BulkState` which pairs of a dict have changed.

    A dict is compared with its copy; of a large one its owner's notes count, and of one of which
    little changes. The owner takes no key away, except all at once, at the end: so a key stays at
    its place, and lists of the values are enough to compare.

    Much is copied in steps. Until it is the dict stands still, and its owner goes on with ``held``.

    Invariant: the first ``_stored`` keys of the dict have been told.

    Args:
        values: the dict; the owner changes it and calls `note`.
        gathers: `dict` where `note` is given pairs, `set` where it is given keys.
        is_restored: the dict is as it was told last.
        copied_max: keys of a dict that is copied.
        encoded_max: the same where values can change.
        few_from: keys of a dict that is copied only if more than a few change.
        steps_from: so many keys are copied in steps.
        use: called with ``held`` when that is to be used, and then with the dict.
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
        steps_from: int = STEPS_FROM,
        use: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self.held: HeldDict | None = None  #: The owner uses it instead of the dict while it is.
        self.values = values
        self._use = use
        self._kept = kept
        self._namespace = namespace
        self._gathers: Callable[[Iterable[Any]], Any] = gathers
        self._copied_max = copied_max
        self._encoded_max = encoded_max
        self._few_from = few_from
        self._steps_from = steps_from
        self._few_share = _FEW_OF_PAIRS if gathers is dict else _FEW_OF_KEYS
        self._is_changed = False
        self._is_too_large = False  # To be copied.
        self._changed = self._few_epochs = 0
        self._stored = 0
        self._keys: list[Any] = []
        self._before: list[Any] = []
        self._noted: Any = None
        self._copying: Iterator[int] = iter(())
        self._merging: Iterator[int] = iter(())
        if is_restored:
            self._stored = len(values)
            if self._is_to_note():
                self._note_from_now()
            else:
                finish(self._remember([], None))

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
        self.settle()
        amount = len(self.values if self._noted is None else self._noted)
        if not self._is_changed or not amount:
            return
        copying = self._tell_all() if self._noted is None else self._tell_noted()
        self._is_changed, self._changed = False, 0
        self._stored = len(self.values)
        if amount < self._steps_from:
            finish(copying)
        else:
            self._hold(copying)

    def tell_again(self) -> None:
        """Have all pairs told once more, as if none had been told.

        Raises:
            OperatorError: a value cannot be stored.
        """
        self.settle()
        self._before, self._noted = [], None
        self._is_changed = True

    def tell_end(self) -> None:
        self.settle()
        if self._stored:
            self._kept.delete_first(self._stored, self.values, self._namespace)

    def settle(self) -> None:
        """Finish at once what is done in steps; then all is in the dict again.

        Raises:
            OperatorError: a value cannot be stored.
        """
        if self.held is not None:
            finish(self._copying)
            finish(self._merging)

    def _hold(self, copying: Iterator[int]) -> None:
        """Let the dict stand still while it is copied; then take over what has changed."""
        self._copying = copying
        self.held = HeldDict(self.values, lambda: finish(copying))
        self._merging = self._merged(self.held)
        self._kept.go_on_with(self._copying, self._merging)
        self._use(self.held)

    def _merged(self, held: HeldDict) -> Iterator[int]:
        for _ in held.merge():
            yield STEP
        self.held = None
        self._use(self.values)

    def _tell_all(self) -> Iterator[int]:
        """Tell all values, as the steps that are returned copy them."""
        keys, before, now = self._keys, self._before, list[Any]()
        is_last = self._is_to_note()
        columns = self._kept.put_all(keys, now, self._namespace, before=before, is_last=is_last)
        if not is_last:
            return self._remember(now, columns)
        self._note_from_now()
        return self._filled(keys, now)

    def _tell_noted(self) -> Iterator[int]:
        """Tell what was noted, as the steps that are returned copy it."""
        noted, self._noted = self._noted, self._gathers(())
        keys, now, size = list[Any](), list[Any](), len(self.values)
        self._kept.put_all(keys, now, self._namespace, before=[], is_last=True)
        if type(noted) is dict:
            steps: Iterator[int] = self._paired(noted, keys, now)
        elif 2 * len(noted) >= size:  # Then a copy is quicker.
            steps = self._filled(keys, now)
        else:
            steps = self._looked_up(noted, keys, now)
        self._is_too_large = self._is_too_large or size > self._copied_max
        if self._is_too_large or self._few_share * len(noted) <= 2 * size:
            return steps
        self._noted = None
        return chain(steps, self._remember([], None))

    def _remember(self, now: list[Any], columns: AllPairs | None) -> Iterator[int]:
        """Copy all values to compare them with the next copy, unless they are too many."""
        can_change = yield from self._filled(self._keys, now)
        if not can_change or len(now) <= self._encoded_max:
            self._before = now
            return
        self._is_too_large = True
        self._note_from_now()
        if self.held is not None:
            self._noted.update(self.held.changed)
        if columns is not None:
            columns.is_last = True

    def _filled(self, keys: list[Any], now: list[Any]) -> Generator[int, None, bool]:
        yield from self._appended(keys)
        values, can_change, known = self.values, False, 0
        left = iter(values.values())
        while len(now) < len(values):
            changed = 0 if self.held is None else len(self.held.changed)
            most, known = max(CHUNK, _COPIED_FOR_A_CHANGE * (changed - known)), changed
            part, is_encoded = self._kept.isolated(islice(left, most))
            now += part
            can_change = can_change or is_encoded
            yield _cost(part, is_encoded=is_encoded)
        return can_change

    def _appended(self, keys: list[Any]) -> Iterator[int]:
        values, known = self.values, len(keys)
        if len(values) - known <= CHUNK:
            keys += reversed([*islice(reversed(values), len(values) - known)])
            return
        left = iter(values)
        for at in range(0, known, CHUNK):
            skipped = min(CHUNK, known - at)
            next(islice(left, skipped, skipped), None)
            yield skipped
        while part := list(islice(left, CHUNK)):
            keys += part
            yield _COPIED_FOR_A_KEY * len(part)

    def _paired(self, noted: dict[Any, Any], keys: list[Any], now: list[Any]) -> Iterator[int]:
        names, values = iter(noted), iter(noted.values())
        while more := list(islice(names, CHUNK)):
            keys += more
            part, is_encoded = self._kept.isolated(islice(values, CHUNK))
            now += part
            yield _cost(part, is_encoded=is_encoded)

    def _looked_up(self, noted: set[Any], keys: list[Any], now: list[Any]) -> Iterator[int]:
        value_of, left = self.values.__getitem__, iter(noted)
        while more := list(islice(left, CHUNK)):
            try:
                found = list(map(value_of, more))
            except KeyError:  # There is NaN in a key of a record; not so in the dict.
                more = list(map(one_key, more))
                found = list(map(value_of, more))
            keys += more
            now += self._kept.isolated(found)[0]
            yield len(more) * LOOKED_UP

    def _is_to_note(self) -> bool:
        """Tell whether there are too many values for a copy, or little has changed for a while."""
        self._is_too_large = self._is_too_large or len(self.values) > self._copied_max
        return self._is_too_large or self._are_few()

    def _are_few(self) -> bool:
        """Tell whether little has changed for some epochs, in a dict that takes long to copy."""
        size = len(self.values)
        is_few = size >= self._few_from and self._few_share * self._changed <= size
        self._few_epochs = self._few_epochs + 1 if is_few else 0
        return self._few_epochs >= _FEW_EPOCHS

    def _note_from_now(self) -> None:
        self._keys, self._before, self._noted = [], [], self._gathers(())
        self._few_epochs = 0


def _cost(part: list[Any], *, is_encoded: bool) -> int:
    if is_encoded:
        return len(part) * LOOKED_UP
    return len(part) * (_COPIED_FOR_A_TUPLE if part and type(part[0]) is tuple else 1)
