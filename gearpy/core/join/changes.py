"""The records that joins keep, and their changes since the end of the last epoch.

A `RecordLog` tells each record once, so that an epoch costs as much as came in it, however long the
records are kept. `KeyCells` tell all that there is for a key when it has changed.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from gearpy.core.base.in_pieces import emptied
from gearpy.core.base.key_copy import PIECE, KeyCopy, finish, in_steps
from gearpy.errors import ProtocolError

_RECORDS: Final = "records"
_MATCHED: Final = "matched"
_FIELDS: Final = 5  # Of a record that was told.
_KEY_OF: Final = attrgetter("key")
_FIELDS_OF: Final = attrgetter("seq", "side", "time_ms", "value", "is_waiting")


class CellChange(NamedTuple):
    """The new values of keys of a namespace; without ``values`` they have none any more.

    Whole when its steps are done, where it has any. Then nothing of it
    changes any more: it may be stored while the join goes on. It is the receiver's.
    """

    namespace: Any
    keys: list[Any]
    values: list[Any] | None = None
    steps: Iterator[object] | None = None


# The collector need not look at them: there may be millions, and they are in no cycle.
class Kept(msgspec.Struct, gc=False):
    """A record that waits for others.

    Attributes:
        seq: its number; greater than those of all that came before.
        is_waiting: it will come out alone, if no partner comes.
        key: by which it is joined.
    """

    seq: int
    side: int
    time_ms: int
    value: Any
    is_waiting: bool = False
    key: Any = None


class RecordLog:
    """Records by spans of time; all of a span are dropped at once.

    Invariant: what `changes` has told, put together, are the records of all spans that were not
    dropped, with ``is_waiting`` as it was at the last call.
    """

    def __init__(self) -> None:
        self.seq = 0  #: Number of the newest record; the owner counts.
        #: Records that were not told, by span. The owner adds to what `open` has returned. They are
        #: put together by key when an epoch ends: most are dropped before.
        self.fresh: dict[int, list[Kept]] = {}
        self._told_seq = 0
        self._chunk = 0
        self._told: dict[int, list[tuple[Any, list[Any]]]] = {}
        self._matched: dict[int, list[Kept]] = {}
        self._gone: list[tuple[Any, list[Any]]] = []
        self._copies: dict[int, _Told] = {}  # Of the records that are still to be told, by span.
        self._copying: Iterator[object] = iter(())
        self._loaded: list[tuple[int, Kept]] = []
        self._loaded_matches: set[tuple[Any, int]] = set()

    def open(self, span: int) -> list[Kept]:
        fresh = self.fresh[span] = []
        return fresh

    def match(self, span: int, kept: Kept) -> None:
        """Note that a record has found a partner."""
        kept.is_waiting = False
        if kept.seq <= self._told_seq:
            self._matched.setdefault(span, []).append(kept)
            if (copy := self._copies.get(span)) is not None:
                copy.waited.add(kept.seq)

    def keys(self, span: int) -> Iterator[Any]:
        """Yield the keys that have records in a span, some more than once.

        Records may be copied meanwhile, but none may be added.
        """
        copied = self._copies[span].records if span in self._copies else []
        for _, keys in self._told.get(span, ()):
            yield from keys
        for records in (copied, self.fresh.get(span, [])):
            for at in range(0, len(records), PIECE):
                yield from dict.fromkeys(map(_KEY_OF, records[at : at + PIECE]))

    def drop(self, span: int) -> Iterator[None]:
        self._gone += self._told.pop(span, ())
        return chain.from_iterable(
            [emptied(part.pop(span, [])) for part in (self.fresh, self._matched)]
        )

    def changes(self) -> Iterator[CellChange]:
        """Tell the records that were added, matched and dropped since the last call."""
        finish(self._copying)
        gone, self._gone = self._gone, []
        for namespace, keys in gone:
            yield CellChange(namespace, keys)
        self._chunk += 1
        fresh = {span: each for span, each in self.fresh.items() if each}
        for span in fresh:
            self.open(span)
        matched, self._matched = self._matched, {}
        self._told_seq = self.seq
        self._copies = {span: self._tell(_RECORDS, span, each) for span, each in fresh.items()}
        told = [*self._copies.values()]
        told += [self._tell(_MATCHED, span, each) for span, each in matched.items()]
        self._copying = chain.from_iterable(each.steps for each in told)
        left = in_steps(self._copying, sum(len(each.records) for each in told))
        if left is None:
            self._copies = {}
        for each in told:
            yield CellChange(each.namespace, each.keys, each.values, left and each.steps)

    def tell_again(self, records: Iterable[tuple[int, Kept]]) -> None:
        """Have all records told once more; the owner gives them, with their spans."""
        finish(self._copying)
        self._told, self._matched, self._gone = {}, {}, []
        for fresh in self.fresh.values():
            fresh.clear()
        for span, kept in sorted(records, key=_seq_of):
            self.fresh[span].append(kept)  # Of a record that is kept the span is open.

    def _tell(self, kind: str, span: int, records: list[Kept]) -> "_Told":
        told = _Told((kind, span, self._chunk), records)
        self._told.setdefault(span, []).append((told.namespace, told.known))
        return told

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> bool:
        """Load pairs of an earlier `CellChange`; False if they are not of this log."""
        match namespace:
            case (str(kind), int(span), int(chunk)) if kind in (_RECORDS, _MATCHED):
                self._chunk = max(self._chunk, chunk)
                self._told.setdefault(span, []).append((namespace, list(pairs)))
                for key, values in pairs.items():
                    if kind == _RECORDS:
                        self._loaded += [(span, kept) for kept in _records(key, values)]
                    else:
                        self._loaded_matches.update((key, seq) for seq in values)
                return True
        return False

    def resume(self) -> list[tuple[int, Kept]]:
        for span, kept in self._loaded:
            if (kept.key, kept.seq) in self._loaded_matches:
                kept.is_waiting = False
            if span not in self.fresh:
                self.open(span)
        records = sorted(self._loaded, key=_seq_of)
        self._loaded, self._loaded_matches = [], set()
        if records:
            self.seq = self._told_seq = records[-1][1].seq
        return records


class _Told:
    """Records, or numbers of records, that are told of a span: as they were when an epoch ended."""

    def __init__(self, namespace: tuple[str, int, int], records: list[Kept]) -> None:
        self.namespace = namespace
        self.records = records  #: Empty when all are copied.
        self.waited: set[int] = set()  #: Numbers of those that have found a partner since.
        self.keys: list[Any] = []  #: Told, as are ``values``.
        self.values: list[Any] = []
        self.known: list[Any] = []  #: The same keys, to be kept.
        self.steps = self._steps()  #: Copy them, in pieces.

    def _steps(self) -> Iterator[None]:
        left: dict[Any, list[Kept]] = {}
        for at in range(0, len(self.records), PIECE):
            for record in self.records[at : at + PIECE]:
                if (of_key := left.get(record.key)) is None:
                    left[record.key] = [record]
                else:
                    of_key.append(record)
            yield
        while left:
            keys, found, count = [], [], 0
            while left and count < PIECE:
                key, kept = left.popitem()
                keys.append(key)
                found.append(kept)
                count += len(kept)
            self.keys += keys
            self.known += keys
            if self.namespace[0] == _MATCHED:
                self.values += [[record.seq for record in each] for each in found]
            else:
                self.values += _flat(found, self.waited)
            yield
        self.records = []


class KeyCells:
    """Tells which keys of the owner's have changed, with all that they have.

    Args:
        value_of: returns all that a key has, as plain data that does not change any more; None
            for nothing.
    """

    def __init__(self, name: str, value_of: Callable[[Any], Any]) -> None:
        self._namespace = (name,)
        self._value_of = value_of
        self._touched: set[Any] | KeyCopy = set()
        self._told: set[Any] = set()
        self._pairs: dict[Any, Any] = {}
        self._copying: Iterator[object] = iter(())

    def touch(self, key: Any) -> None:
        self._touched.add(key)

    def remove(self, key: Any) -> None:
        self._touched.add(key)
        if key not in self._told:  # Nobody knows of it.
            self._touched.discard(key)

    def tell_again(self) -> None:
        """Have the state of all keys told once more."""
        finish(self._copying)
        assert isinstance(self._touched, set), "all is copied"
        self._touched |= self._told

    def changes(self) -> Iterator[CellChange]:
        """Tell the changes since the last call."""
        finish(self._copying)
        touched = self._touched
        assert isinstance(touched, set), "all is copied"
        if not touched:
            return
        amount, gone, told, values = len(touched), list[Any](), list[Any](), list[Any]()
        copy = self._touched = KeyCopy(touched, partial(self._copy, gone, told, values))
        self._copying = self._steps(copy)
        left = in_steps(self._copying, amount)
        if gone or left is not None:
            yield CellChange(self._namespace, gone)
        if told or left is not None:
            yield CellChange(self._namespace, told, values, left)

    def _steps(self, copy: KeyCopy) -> Iterator[object]:
        yield from copy.steps()
        self._touched = copy.fresh

    def _copy(self, gone: list[Any], told: list[Any], values: list[Any], keys: list[Any]) -> None:
        value_of, known = self._value_of, self._told
        for key in keys:
            value = value_of(key)
            if value is not None:
                told.append(key)
                values.append(value)
                known.add(key)
            elif key in known:
                gone.append(key)
                known.remove(key)

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> bool:
        """Load pairs of an earlier `CellChange`; False if they are of other cells."""
        if namespace != self._namespace:
            return False
        self._pairs = pairs
        self._told.update(pairs)
        return True

    def resume(self) -> dict[Any, Any]:
        pairs, self._pairs = self._pairs, {}
        return pairs


def _seq_of(record: tuple[int, Kept]) -> int:
    return record[1].seq


def _flat(kept: list[list[Kept]], waited: set[int]) -> list[list[Any]]:
    """Return the records of each key as one list: that is the fewest bytes, and fast to encode.

    Nothing is called for each key: most have one record, and the task waits.

    Args:
        waited: numbers of records that are told as if they still waited for a partner.
    """
    flat = list(map(list, map(chain.from_iterable, map(partial(map, _FIELDS_OF), kept))))
    for each in flat if waited else ():
        for at in range(0, len(each), _FIELDS):
            if each[at] in waited:
                each[at + _FIELDS - 1] = True
    return flat


def _records(key: Any, flat: list[Any]) -> Iterator[Kept]:
    if len(flat) % _FIELDS:
        raise ProtocolError(f"malformed records of a join: {len(flat)} fields")
    for at in range(0, len(flat), _FIELDS):
        kept = Kept(*flat[at : at + _FIELDS])
        kept.key = key
        yield kept
