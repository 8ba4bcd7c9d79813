"""The records that joins keep, and their changes since the end of the last epoch.

A `RecordLog` tells each record once, so that an epoch costs as much as came in it, however long the
records are kept. `KeyCells` tell all that there is for a key when it has changed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from gearpy.errors import ProtocolError

_RECORDS: Final = "records"
_MATCHED: Final = "matched"
_FIELDS: Final = 5  # Of a record that was told.
_FIELDS_OF: Final = attrgetter("seq", "side", "time_ms", "value", "is_waiting")


class CellChange(NamedTuple):
    """The new values of keys of a namespace; if ``is_deleted``, they have none any more.

    Nothing of it changes any more: it may be stored while the join goes on.
    """

    namespace: Any
    pairs: dict[Any, Any]
    is_deleted: bool = False


# The collector need not look at them: there may be millions, and they are in no cycle.
class Kept(msgspec.Struct, gc=False):
    """A record that waits for others.

    Attributes:
        seq: its number; greater than those of all that came before.
        is_waiting: it will come out alone, if no partner comes.
    """

    seq: int
    side: int
    time_ms: int
    value: Any
    is_waiting: bool = False


#: Records of a span by key that were not told yet.
Fresh: TypeAlias = defaultdict[Any, list[Kept]]


class RecordLog:
    """Records by spans of time; all of a span are dropped at once.

    Invariant: what `changes` has told, put together, are the records of all spans that were not
    dropped, with ``is_waiting`` as it was at the last call.
    """

    def __init__(self) -> None:
        self.seq = 0  #: Number of the newest record; the owner counts.
        #: Records that were not told, by span. The owner adds to what `open` has returned.
        self.fresh: dict[int, Fresh] = {}
        self._told_seq = 0
        self._chunk = 0
        self._told: dict[int, list[tuple[Any, list[Any]]]] = {}
        self._matched: dict[int, dict[Any, list[int]]] = {}
        self._gone: list[CellChange] = []
        self._loaded: list[tuple[int, Any, Kept]] = []
        self._loaded_matches: set[tuple[Any, int]] = set()

    def open(self, span: int) -> Fresh:
        """Return where records of a span go that is not open."""
        fresh = self.fresh[span] = defaultdict(list)
        return fresh

    def match(self, span: int, key: Any, kept: Kept) -> None:
        """Note that a record has found a partner."""
        kept.is_waiting = False
        if kept.seq <= self._told_seq:
            self._matched.setdefault(span, {}).setdefault(key, []).append(kept.seq)

    def keys(self, span: int) -> list[Any]:
        """Return the keys that have records in a span, in the order in which they came."""
        told = (key for _, keys in self._told.get(span, ()) for key in keys)
        return list(dict.fromkeys([*told, *self.fresh.get(span, ())]))

    def drop(self, span: int) -> None:
        """Forget the records of a span."""
        self.fresh.pop(span, None)
        self._matched.pop(span, None)
        for namespace, keys in self._told.pop(span, ()):
            self._gone.append(CellChange(namespace, dict.fromkeys(keys), is_deleted=True))

    def changes(self) -> Iterator[CellChange]:
        """Tell the records that were added, matched and dropped since the last call."""
        gone, self._gone = self._gone, []
        yield from gone
        self._chunk += 1
        for span, fresh in self.fresh.items():
            if fresh:
                pairs = _flat(fresh)
                fresh.clear()
                yield self._tell(_RECORDS, span, pairs)
        matched, self._matched = self._matched, {}
        for span, seqs in matched.items():
            yield self._tell(_MATCHED, span, seqs)
        self._told_seq = self.seq

    def tell_again(self, records: Iterable[tuple[int, Any, Kept]]) -> None:
        """Have all records told once more; the owner gives them, with their spans and keys."""
        self._told, self._matched, self._gone = {}, {}, []
        for fresh in self.fresh.values():
            fresh.clear()
        for span, key, kept in sorted(records, key=_seq_of):
            self.fresh[span][key].append(kept)  # Of a record that is kept the span is open.

    def _tell(self, kind: str, span: int, pairs: dict[Any, Any]) -> CellChange:
        namespace = (kind, span, self._chunk)
        self._told.setdefault(span, []).append((namespace, list(pairs)))
        return CellChange(namespace, pairs)

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> bool:
        """Load pairs of an earlier `CellChange`; False if they are not of this log."""
        match namespace:
            case (str(kind), int(span), int(chunk)) if kind in (_RECORDS, _MATCHED):
                self._chunk = max(self._chunk, chunk)
                self._told.setdefault(span, []).append((namespace, list(pairs)))
                for key, values in pairs.items():
                    if kind == _RECORDS:
                        self._loaded += [(span, key, kept) for kept in _records(values)]
                    else:
                        self._loaded_matches.update((key, seq) for seq in values)
                return True
        return False

    def resume(self) -> list[tuple[int, Any, Kept]]:
        """Return spans, keys and records that were loaded, in the order in which they came."""
        for span, key, kept in self._loaded:
            if (key, kept.seq) in self._loaded_matches:
                kept.is_waiting = False
            if span not in self.fresh:
                self.open(span)
        records = sorted(self._loaded, key=lambda loaded: loaded[2].seq)
        self._loaded, self._loaded_matches = [], set()
        if records:
            self.seq = self._told_seq = records[-1][2].seq
        return records


class KeyCells:
    """Tells which keys of the owner's have changed, with all that they have.

    Args:
        value_of: returns all that a key has, as plain data that does not change any more; None
            for nothing.
    """

    def __init__(self, name: str, value_of: Callable[[Any], Any]) -> None:
        self._namespace = (name,)
        self._value_of = value_of
        self._touched: set[Any] = set()
        self._told: set[Any] = set()
        self._pairs: dict[Any, Any] = {}

    def touch(self, key: Any) -> None:
        """Note that a key has changed, and has state."""
        self._touched.add(key)

    def remove(self, key: Any) -> None:
        """Note that a key has no state any more."""
        if key in self._told:
            self._touched.add(key)
        else:  # Nobody knows of it.
            self._touched.discard(key)

    def tell_again(self) -> None:
        """Have the state of all keys told once more."""
        self._touched |= self._told

    def changes(self) -> Iterator[CellChange]:
        """Tell the changes since the last call."""
        touched, self._touched = self._touched, set()
        pairs: dict[Any, Any] = {}
        gone: dict[Any, Any] = {}
        for key in touched:
            value = self._value_of(key)
            if value is None:
                gone[key] = None
            else:
                pairs[key] = value
        self._told.difference_update(gone)
        self._told.update(pairs)
        if gone:
            yield CellChange(self._namespace, gone, is_deleted=True)
        if pairs:
            yield CellChange(self._namespace, pairs)

    def load(self, namespace: Any, pairs: dict[Any, Any]) -> bool:
        """Load pairs of an earlier `CellChange`; False if they are of other cells."""
        if namespace != self._namespace:
            return False
        self._pairs = pairs
        self._told.update(pairs)
        return True

    def resume(self) -> dict[Any, Any]:
        """Return the pairs that were loaded."""
        pairs, self._pairs = self._pairs, {}
        return pairs


def _seq_of(record: tuple[int, Any, Kept]) -> int:
    return record[2].seq


def _flat(fresh: Fresh) -> dict[Any, list[Any]]:
    """Return the records of each key as one list: that is the fewest bytes, and fast to encode.

    Nothing is called for each key: most have one record, and the task waits.
    """
    fields_of_all = map(partial(map, _FIELDS_OF), fresh.values())
    return dict(zip(fresh, map(list, map(chain.from_iterable, fields_of_all)), strict=True))


def _records(flat: list[Any]) -> Iterator[Kept]:
    if len(flat) % _FIELDS:
        raise ProtocolError(f"malformed records of a join: {len(flat)} fields")
    for at in range(0, len(flat), _FIELDS):
        yield Kept(*flat[at : at + _FIELDS])
