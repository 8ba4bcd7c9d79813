"""Rows that were shown before and come again, as a run went back behind them."""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import blake2b
from itertools import compress
from typing import Any, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.handover.window_log import OWNERS, LogView
from gearpy.windowlog.log import WindowLog

_DIGEST_BYTES: Final = 16
_ENTRY_BYTES: Final = 2 * _DIGEST_BYTES
_ENDING: Final = ".again.json"


class Replays:
    """The rows that are still expected to come again; each is left out as often as it was there.

    A row is known by the columns of its ``identity``, or by all. One that is the same as a whole
    goes first; one that only has the identity waits until `settle`, as merged streams may both have
    it.
    """

    def __init__(self, identity: Sequence[str] = ()) -> None:
        self._identity = list(identity)
        # Expected rows: the mark of the whole row, by that of its identity.
        self._expected: dict[bytes, list[bytes]] = {}
        self._rows = 0
        self._waiting: list[pa.RecordBatch] = []
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return self._rows

    def expect(self, table: pa.Table) -> None:
        for known, whole in zip(self._known(table), _digests(table), strict=True):
            self._remember(known, whole)

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._expected:
            return batch
        known = self._known(batch)
        is_new = [each not in self._expected for each in known]
        if all(is_new):
            return batch
        old = batch.filter(pa.array([not each for each in is_new], pa.bool_()))
        known = list(compress(known, (not each for each in is_new)))
        wholes = _digests(old)
        is_other = [not self._take(*each) for each in zip(known, wholes, strict=True)]
        if any(is_other):
            self._waiting.append(old.filter(pa.array(is_other, pa.bool_())))
        return batch.filter(pa.array(is_new, pa.bool_()))

    def settle(self) -> pa.RecordBatch | None:
        """Return the rows of one identity that came more often than they were shown, if any.

        Call it when an epoch ends, before `snapshot`.
        """
        if not self._waiting:
            return None
        waiting, self._waiting = self._waiting, []
        table = pa.Table.from_batches(waiting).combine_chunks()
        is_new = [not self._take(each) for each in self._known(table)]
        batches = table.filter(pa.array(is_new, pa.bool_())).combine_chunks().to_batches()
        return batches[0] if batches and batches[0].num_rows else None

    def seen(self, table: pa.Table) -> list[dict[str, Any]]:
        """Remember rows, and return the identity of rows that were there before."""
        known = table.select(self._identity) if self._identity else table
        places = []
        for place, digest in enumerate(self._known(table)):
            if digest in self._seen:
                places.append(place)
            self._seen.add(digest)
        twice = known.take(pa.array(places, pa.int64()))
        try:
            rows: list[dict[str, Any]] = twice.to_pylist()
        except (OverflowError, ValueError):  # Times of which Python has none.
            rows = _numbered(twice).to_pylist()
        return rows

    def snapshot(self) -> bytes:
        assert not self._waiting, "settle() comes first"
        return b"".join(
            known + whole for known, wholes in self._expected.items() for whole in wholes
        )

    def restore(self, state: bytes) -> None:
        for place in range(0, len(state), _ENTRY_BYTES):
            whole = place + _DIGEST_BYTES
            self._remember(state[place:whole], state[whole : place + _ENTRY_BYTES])

    def _remember(self, known: bytes, whole: bytes) -> None:
        self._expected.setdefault(known, []).append(whole)
        self._rows += 1

    def _take(self, known: bytes, whole: bytes | None = None) -> bool:
        wholes = self._expected.get(known)
        if wholes is None or (whole is not None and whole not in wholes):
            return False
        wholes.remove(wholes[0] if whole is None else whole)
        self._rows -= 1
        if not wholes:
            del self._expected[known]
        return True

    def _known(self, table: pa.Table | pa.RecordBatch) -> list[bytes]:
        return _digests(table.select(self._identity) if self._identity else table)


def _digests(table: pa.Table | pa.RecordBatch) -> list[bytes]:
    columns = [column.to_pylist() for column in _numbered(table).columns]
    return [
        blake2b(repr(row).encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
        for row in zip(*columns, strict=True)
    ]


def _numbered(table: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    return table.cast(pa.schema([(each.name, _number(each.type)) for each in table.schema]))


def _number(kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_list(kind):
        return pa.list_(_inner(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_inner(kind.key_field), _inner(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_inner(kind.field(place)) for place in range(kind.num_fields)])
    return kind


def _inner(field: pa.Field) -> pa.Field:
    return field.with_type(_number(field.type))


class _Recall(NamedTuple):
    """The memory of `Replays` of the rows of some batches."""

    first: int
    last: int
    rows: bytes


def recalled(
    log: WindowLog, view: LogView, lane: str, *, since: int, identity: Sequence[str]
) -> list[bytes]:
    """Return the memory of `Replays` for the batches of a lane, and note it for a later start.

    A reader that has done with rows may let them be removed before they have come again. Rows are
    not known that were removed before anybody went back behind them.
    """
    file = f"{OWNERS}{lane}{_ENDING}"
    begin, text = view.begins()[lane], log.store.read(file)
    try:
        listed = json.loads(text or b"")["batches"]
        known = [_Recall(int(first), int(last), b64decode(rows)) for first, last, rows in listed]
    except (ValueError, KeyError, TypeError):
        known = []
    gone = [each for each in known if since <= each.last < begin]
    there = []
    for piece in view.between({lane: max(since, begin) - 1}, {lane: view.ends()[lane]}):
        replays = Replays(identity)
        replays.expect(log.read(piece))
        there.append(_Recall(piece.first, piece.last, replays.snapshot()))
    found = [*gone, *there]
    written = [[first, last, b64encode(rows).decode()] for first, last, rows in found]
    log.store.put(file, json.dumps({"batches": written}).encode())
    return [each.rows for each in found]
