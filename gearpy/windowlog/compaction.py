"""Makes one file of several of a log, while others read and write it.

A reader that was about to read one of the old files finds the new one by its batches.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final
from uuid import uuid4

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.handover.window_log import (
    PENDING,
    LogPiece,
    LogSegment,
    LogView,
    groups_to_compact,
    newest_to_compact,
    segment_name,
    segments_of,
)
from gearpy.windowlog.bodies import PARQUET, BatchInfo, write_body
from gearpy.windowlog.log import WindowLog

#: Names of pending files begin with it, and the lane.
COMPACTION_PREFIX: Final = "compact-"
#: So many rows a compacted file has at most.
GROUP_ROWS_MAX: Final = 1_000_000


def compact_all(
    log: WindowLog, *, rows_max: int = GROUP_ROWS_MAX, compression: str = "zstd"
) -> list[LogSegment]:
    """Make as few files as may be; return the new ones."""
    view = log.view()
    made = []
    for lane in view.lanes:
        for group in groups_to_compact(view.pieces(lane), rows_max=rows_max):
            made += _compact(log, group, compression)
    _drop_hidden(log, log.view().hidden)
    return made


def compact_newest(
    log: WindowLog, view: LogView, lane: str, *, files_min: int, compression: str
) -> list[LogSegment]:
    """Make one file of the newest files of a lane, if that is worth the work; return it."""
    pieces = view.pieces(lane)
    group = newest_to_compact(pieces, files_min=files_min, rows_max=GROUP_ROWS_MAX)
    made = _compact(log, group, compression) if group else []
    _drop_hidden(log, [each for each in view.hidden if each.lane == lane])
    return made


def _compact(log: WindowLog, group: Sequence[LogPiece], compression: str) -> list[LogSegment]:
    parts = [log.read_file(piece.segment) for piece in group]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):  # A reader has purged them meanwhile, or another compacts.
        return []
    tables: list[pa.Table] = []
    batches: list[BatchInfo] = []
    for piece, (part, part_info) in zip(group, found, strict=True):
        begin = sum(batch.rows for batch in part_info.batches if batch.seq < piece.first)
        of_piece = [each for each in part_info.batches if piece.first <= each.seq <= piece.last]
        tables.append(part.slice(begin, sum(batch.rows for batch in of_piece)))
        batches += [batch._replace(run=batch.run or part_info.run) for batch in of_piece]
    table = pa.concat_tables(tables)
    info = replace(found[-1][1], batches=tuple(batches))
    store, newest = log.store, group[-1].segment
    name = segment_name(
        newest.lane,
        first=group[0].first,
        last=group[-1].last,
        rows=table.num_rows,
        epoch=info.batches[-1].epoch,
        run=newest.run,
        incarnation=newest.incarnation,
    )
    pending = f"{PENDING}{COMPACTION_PREFIX}{newest.lane}-{uuid4().hex}.parquet"
    with store.create(pending) as file:
        write_body(file, table.combine_chunks(), info, body=PARQUET, compression=compression)
        store.sync(file)
    store.sync_names(PENDING)
    if not store.move(pending, to=name):
        return []  # A new start of the writer has cleaned up.
    store.sync_names()  # Before any other is removed.
    (segment,) = segments_of([name])
    inside = [
        piece.segment
        for piece in group
        if piece.segment.name != segment.name
        and segment.first <= piece.segment.first
        and piece.segment.last <= segment.last
    ]
    _drop_hidden(log, inside)
    return [segment]


def _drop_hidden(log: WindowLog, segments: Iterable[LogSegment]) -> None:
    for segment in sorted(segments, key=lambda each: each.first):
        log.store.remove(segment.name)
