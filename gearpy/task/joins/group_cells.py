"""Tables as cells of keyed state: one for each group of keys, which moves with its group."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.base.stable_hash import KEY_GROUPS
from gearpy.state.encoding.coders import MSGPACK
from gearpy.state.stores.many import groups_of_keys
from gearpy.task.joins.runs import Numbers, joined_rows


def cells_of_groups(rows: pa.RecordBatch, groups: Numbers) -> dict[int, bytes]:
    """Return the records of each group of keys, in their order, by a key that is in it."""
    order = np.argsort(groups, kind="stable")
    rows = rows.take(pa.array(order))
    used, starts = np.unique(groups[order], return_index=True)
    cells = dict[int, bytes]()
    bounds = pairwise([*starts.tolist(), len(groups)])
    for group, (start, stop) in zip(used.tolist(), bounds, strict=True):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows.slice(start, stop - start))
        cells[_keys_of_groups()[group]] = MSGPACK.encode(sink.getvalue().to_pybytes())
    return cells


def rows_of_cells(cells: Mapping[Any, bytes]) -> pa.RecordBatch:
    tables = [pa.ipc.open_stream(each).read_all() for each in cells.values()]
    return joined_rows([batch for table in tables for batch in table.to_batches()])


@lru_cache(maxsize=1)
def _keys_of_groups() -> dict[int, int]:
    """Return the smallest number of each key group."""
    found: dict[int, int] = {}
    at = 0
    while len(found) < KEY_GROUPS:
        for key, group in enumerate(groups_of_keys(list(range(at, at + KEY_GROUPS))), at):
            found.setdefault(group, key)
        at += KEY_GROUPS
    return found
