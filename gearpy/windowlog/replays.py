"""Rows that were shown before and come again, as a run went back behind them."""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain, repeat
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["Replays"]

_DIGEST_BYTES: Final = 16


class Replays:
    """The rows that are still expected to come again; each is left out as often as it was shown.

    A row is known by the columns of its identity, or by all of them. So the row of a window whose
    value is another this time is left out, too: readers have the first one.

    Args:
        identity: names of columns; empty for all of them.
    """

    def __init__(self, identity: Sequence[str] = ()) -> None:
        self._identity = list(identity)
        self._expected: Counter[bytes] = Counter()

    def __len__(self) -> int:
        return self._expected.total()

    def expect(self, table: pa.Table) -> None:
        """Remember rows that were shown."""
        self._expected.update(self._digests(table))

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that were not shown before."""
        if not self._expected:
            return batch
        is_new = [self._is_new(digest) for digest in self._digests(batch)]
        return batch if all(is_new) else batch.filter(pa.array(is_new, pa.bool_()))

    def seen(self, table: pa.Table) -> list[dict[str, Any]]:
        """Remember rows, and return the identity of those that were there before."""
        known = table.select(self._identity) if self._identity else table
        places = []
        for place, digest in enumerate(self._digests(table)):
            if digest in self._expected:
                places.append(place)
            self._expected[digest] += 1
        rows: list[dict[str, Any]] = known.take(pa.array(places, pa.int64())).to_pylist()
        return rows

    def snapshot(self) -> bytes:
        """Return what is still expected."""
        rows = self._expected.items()
        return b"".join(chain.from_iterable(repeat(digest, times) for digest, times in rows))

    def restore(self, state: bytes) -> None:
        """Expect what a snapshot has."""
        places = range(0, len(state), _DIGEST_BYTES)
        self._expected.update(state[place : place + _DIGEST_BYTES] for place in places)

    def _is_new(self, digest: bytes) -> bool:
        times = self._expected.get(digest, 0)
        if times > 1:
            self._expected[digest] = times - 1
        elif times:
            del self._expected[digest]
        return not times

    def _digests(self, table: pa.Table | pa.RecordBatch) -> list[bytes]:
        known = table.select(self._identity) if self._identity else table
        columns = [column.to_pylist() for column in known.columns]
        return [
            blake2b(repr(row).encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
            for row in zip(*columns, strict=True)
        ]
