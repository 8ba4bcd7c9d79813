"""Tables as cells of keyed state: one for each group of keys, which moves with its group."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import count, pairwise
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.base.stable_hash import KEY_GROUPS
from gearpy.core.window.windows import DisjointWindows, OverlappingWindows
from gearpy.messages.table import joined_rows
from gearpy.state.encoding.coders import MSGPACK
from gearpy.state.stores.many import groups_of_keys
from gearpy.task.joins.join_schema import SIDE_NAMES, JoinSchema
from gearpy.task.joins.runs import Numbers
from gearpy.task.joins.side_tables import SideSchema
from gearpy.task.time.pieces import TimePieces

#: The column of what joins over windows keep that has the piece of time.
PIECE: Final = "#piece"
#: And of what joins over sessions keep, that has the event time.
TIME: Final = "#time"
PieceWindows: TypeAlias = DisjointWindows | OverlappingWindows


def cells_of_groups(
    rows: pa.RecordBatch, groups: Numbers, of: Iterable[int] = ()
) -> dict[int, bytes | None]:
    """Return the records of each group of keys, in their order, by a key that is in it.

    Args:
        of: groups that are told, too, where there are no records; with None.
    """
    order = np.argsort(groups, kind="stable")
    rows = rows.take(pa.array(order))
    used, starts = np.unique(groups[order], return_index=True)
    cells: dict[int, bytes | None] = {_keys_of_groups()[int(group)]: None for group in of}
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


def kept_by_side(cells: Mapping[Any, bytes]) -> tuple[pa.RecordBatch, Numbers]:
    """Return the records of a side that joins over sessions have kept, and their event times."""
    rows = rows_of_cells(cells)
    return rows.drop_columns([TIME]), rows.column(TIME).to_numpy()


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


# -- joins over windows ----------------------------------------------------------------------


def kept_tables(
    cells: Mapping[Any, Mapping[Any, bytes]], windows: PieceWindows
) -> Iterator[tuple[Any, dict[int, pa.RecordBatch]]]:
    """Yield the records of each namespace that has tables by piece, in their order."""
    piece_of = TimePieces(windows).of
    for namespace in sorted(cells, key=itemgetter(1)):
        rows = rows_of_cells(cells[namespace])
        starts, rows = rows.column(PIECE).to_numpy(), rows.drop_columns([PIECE])
        yield (
            namespace,
            {
                piece_of(each): rows.take(pa.array(np.flatnonzero(starts == each)))
                for each in np.unique(starts).tolist()
            },
        )


def kept_in_sessions(
    cells: Mapping[Any, Mapping[Any, bytes]], schema: JoinSchema
) -> Iterator[tuple[list[Any], list[int]]]:
    """Yield the records of each side that joins over sessions have kept, and their event times."""
    for (name, _), of_side in cells.items():
        rows, times = kept_by_side(of_side)
        yield SideSchema.of(schema, SIDE_NAMES.index(name)).rows(rows), times.tolist()


def kept_records(
    cells: Mapping[Any, Mapping[Any, bytes]], windows: PieceWindows, schema: JoinSchema
) -> dict[int, dict[Any, list[Any]]]:
    """Return what tables have as `WindowJoin` keeps it: by piece and key."""
    found: dict[int, dict[Any, list[Any]]] = {}
    number = count(1).__next__
    for (name, _), pieces in kept_tables(cells, windows):
        side = SideSchema.of(schema, SIDE_NAMES.index(name))
        for piece, rows in pieces.items():
            by_key = found.setdefault(piece, {})
            for of, key, record in side.rows(rows):
                by_key.setdefault(key, []).extend((number(), of, piece, record, False))
    return found
