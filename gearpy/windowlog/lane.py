"""The writing half of a lane: batches that are not seen before they are shown, each once.

A writer owns its lane: it is the last start of the last run, and it looks whether it still is
before it shows anything. What others have prepared, and was not to be shown, it removes first; so
who was given up can show nothing after its successor has looked at what there is.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, BinaryIO, Final, NamedTuple, TypedDict
from uuid import uuid4

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.handover.lanes import LaneOwner
from gearpy.core.handover.window_log import (
    LOG_FOLDERS,
    OWNERS,
    PENDING,
    LogView,
    lane_name,
    segment_name,
)
from gearpy.errors import ConfigError, StoreAway
from gearpy.storage.folder.api import reveal
from gearpy.windowlog.bodies import (
    ARROW,
    PARQUET,
    BatchNotes,
    Body,
    ParquetBody,
    SegmentInfo,
    write_body,
)
from gearpy.windowlog.compaction import COMPACTION_PREFIX
from gearpy.windowlog.log import WindowLog

_log = logging.getLogger(__name__)
_ENDING: Final = ".pending"
#: Rows wait in memory until they are so many.
_GROUP_ROWS: Final = 1 << 20
_GROUP_BYTES: Final = 128 << 20
_OF_SPARK: Final = re.compile(r"spark(query|txn|once)-")


class PreparedBatch(TypedDict):
    """A pending file that is complete, and how to show it."""

    pending: str
    name: str
    seq: int
    rows: int
    size: int
    lane: str


class _Part(NamedTuple):
    """A pending file that has rows already, as there are too many to wait."""

    name: str
    file: BinaryIO
    rows: ParquetBody


class LaneWriter:
    """Writes the batches of one task of a writer.

    Runs on: one thread at a time. Restart: `begin`, then `show` what was prepared and is to be
    seen, then `clean` and `number_on`.
    """

    def __init__(self, log: WindowLog, *, writer: str, task: int, compression: str) -> None:
        self._log = log
        self._store = log.store
        self._writer = writer
        self._task = task
        self._compression = compression
        self.lane = lane_name(writer, task)
        self.owner = LaneOwner(run="", incarnation=0)
        self._pending_number = 0
        self._next = 0  # Batch; 0 before `number_on`.
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = self._waiting_rows = 0
        self._notes = BatchNotes()
        self._part: _Part | None = None

    # -- begin -----------------------------------------------------------------------------

    def begin(self, *, run: str, incarnation: int, is_there: bool = False) -> None:
        """Take the lane from its owner."""
        if is_there:
            self._store.sync_names(PENDING)
        else:
            self._store.make(*LOG_FOLDERS)
        for each in LOG_FOLDERS:
            self._store.hold(each.rstrip("/"))
        owner = LaneOwner(run=run, incarnation=incarnation, id=uuid4().hex)
        self.owner = owner.succeeds(self._read_owner(), lane=self.lane)
        self._store.put(self._owner_file, self.owner.to_json())

    def clean(self) -> None:
        for name in self._store.names(PENDING):
            if name.startswith((f"{self.lane}-", f"{COMPACTION_PREFIX}{self.lane}-")):
                self._store.remove(PENDING + name)
        self._store.sync_names(PENDING)

    def number_on(self, *, behind: int = 0) -> LogView:
        """Look where the lane ends, and write on from there.

        Raises:
            ConfigError: Spark writes the lane.
        """
        view = self._log.view()
        pieces = view.pieces(self.lane)
        if pieces and _OF_SPARK.match(pieces[-1].segment.run):
            raise ConfigError(
                f"window log {self._log.place}: lane {self.lane} is written by Spark: give this "
                "sink another name, as in writer='results'"
            )
        self._next = max(view.ends().get(self.lane, 0), behind) + 1
        if not self.owner.since:
            self.owner = replace(self.owner, since=self._next)
            self._store.put(self._owner_file, self.owner.to_json())
        return view

    @property
    def next_seq(self) -> int:
        assert self._next, "number_on() comes first"
        return self._next

    # -- write -----------------------------------------------------------------------------

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            table = self._waiting_table()
            if self._part is None:
                name = self._pending_name(PARQUET)
                file = self._store.create(PENDING + name)
                self._part = _Part(name, file, ParquetBody(file, table.schema, self._compression))
            self._part.rows.write(table)

    @property
    def rows(self) -> int:
        return self._notes.rows + self._waiting_rows

    def prepare(
        self, epoch: int, *, body: Body, about: Mapping[str, Any], watermark: int | None = None
    ) -> PreparedBatch | None:
        """Make the batch durable, so that showing it cannot fail; None if it has no rows."""
        if not self.rows:
            return None
        table = self._waiting_table() if self._waiting else None
        notes, self._notes = self._notes, BatchNotes()
        seq, owner = self.next_seq, self.owner
        batch = notes.info(seq=seq, epoch=epoch, watermark=watermark)
        info = SegmentInfo(
            run=owner.run,
            writer=self._writer,
            task=self._task,
            epoch=epoch,
            batches=(batch,),
            **about,
        )
        pending, size = self._finish(table, info, PARQUET if self._part else body)
        name = segment_name(
            self.lane,
            first=seq,
            last=seq,
            rows=notes.rows,
            epoch=epoch,
            run=owner.run,
            incarnation=owner.incarnation,
            body=ARROW if f".{ARROW}" in pending else PARQUET,
        )
        self._next = seq + 1
        return {
            "pending": pending,
            "name": name,
            "seq": seq,
            "rows": notes.rows,
            "size": size,
            "lane": owner.id,
        }

    def show(self, prepared: PreparedBatch) -> None:
        """Let readers see a batch; the same again if they do already."""
        found = self._read_owner()
        if found is None:
            raise StoreAway(
                f"window log {self._log.place}: {self._owner_file} is not there any more: bring "
                "the log back"
            )
        who = f"window log {self._log.place}: lane {self.lane}"
        if not self.owner.still_owns(found, writer=who):  # Both began at once.
            self._store.put(self._owner_file, self.owner.to_json())
        pending, name = PENDING + prepared["pending"], prepared["name"]
        size = prepared["size"]
        if not reveal(self._store, pending, to=name, written=size, who="window log"):
            missing = (
                f"window log {self._log.place}: batch {prepared['seq']} of lane {self.lane}, which "
                f"was written before, is not there as {prepared['name']}"
            )
            is_elsewhere = prepared["lane"] != self.owner.id  # The program writes there no more.
            pieces = [] if is_elsewhere else self._log.view().pieces(self.lane)
            is_purged = bool(pieces) and pieces[0].first > prepared["seq"]
            covering = [each for each in pieces if each.first <= prepared["seq"] <= each.last]
            if is_elsewhere:
                _log.warning("%s: it was written into another log", missing)
            elif not is_purged and (not covering or covering[0].segment.batches == 1):
                raise StoreAway(
                    f"{missing}: it was removed, another run has begun to write the lane "
                    "meanwhile, or this is not the same folder on all machines; go on from another "
                    "checkpoint"
                )
        self._store.sync_names()  # Another start may have given the name.

    def close(self) -> None:
        """Remove unfinished files; a successor may need the prepared ones."""
        self._waiting, self._waiting_rows, self._notes = [], 0, BatchNotes()
        part, self._part = self._part, None
        if part is not None:
            part.rows.abandon()
            part.file.close()
            self._store.remove(PENDING + part.name)

    # -- one file --------------------------------------------------------------------------

    def _finish(self, table: pa.Table | None, info: SegmentInfo, body: Body) -> tuple[str, int]:
        if self._part is None:
            name = self._pending_name(body)
            file = self._store.create(PENDING + name)
        else:
            name, file, _ = self._part
        with file:
            if self._part is None:
                assert table is not None, "there are rows, and none was written before"
                write_body(file, table, info, body=body, compression=self._compression)
            else:
                if table is not None:
                    self._part.rows.write(table)
                self._part.rows.finish(info)
            size = file.tell()
            self._store.sync(file)
        self._part = None
        self._store.sync_names(PENDING)
        return name, size

    def _waiting_table(self) -> pa.Table:
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._waiting_bytes, self._waiting_rows = [], 0, 0
        if table.column(0).num_chunks > 1:
            table = table.combine_chunks()
        for batch in table.to_batches():
            self._notes.add(batch)
        return table

    def _pending_name(self, body: Body) -> str:
        assert self.owner.run, "begin() comes first"
        self._pending_number += 1
        owner = f"{self.owner.run}-{self.owner.incarnation:016x}"
        return f"{self.lane}-{owner}-{self._pending_number:06d}.{body}{_ENDING}"

    # -- whose it is -----------------------------------------------------------------------

    @property
    def _owner_file(self) -> str:
        return f"{OWNERS}{self.lane}.json"

    def _read_owner(self) -> LaneOwner | None:
        file = self._owner_file
        return LaneOwner.parse(self._store.read(file), file=self._store.location(file))
