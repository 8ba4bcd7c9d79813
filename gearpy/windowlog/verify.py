"""Reads a whole log to find what is missing, damaged, or there twice."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gearpy.core.handover.window_log import LogPiece
from gearpy.errors import WindowLogDamaged
from gearpy.windowlog.log import WindowLog
from gearpy.windowlog.replays import Replays

_SHOWN_MAX: Final = 3


class Finding(NamedTuple):
    """A mistake, and its place."""

    place: str
    problem: str


@dataclass(slots=True)
class Checked:
    """The count of rows read, and the mistakes found."""

    files: int = 0
    batches: int = 0
    rows: int = 0
    findings: list[Finding] = field(default_factory=list)


def verify(log: WindowLog) -> Checked:
    """Read all files of a log, which must be there.

    Rows are compared by the columns that tell them apart; where there are none, a row may come
    twice. A run that began anew, rather than from a checkpoint, may have the same windows again.
    """
    view = log.view()
    checked = Checked()
    for lane, first, last in view.holes:
        which = f"batch {first}" if first == last else f"batches {first} to {last}"
        checked.findings.append(Finding(lane, f"{which} missing: a file was removed"))
    known: dict[str, Replays] = {}
    for lane in view.lanes:
        for piece in view.pieces(lane):
            checked.findings += _read(log, piece, checked, known)
    return checked


def _read(
    log: WindowLog, piece: LogPiece, checked: Checked, known: dict[str, Replays]
) -> Iterator[Finding]:
    segment = piece.segment
    try:
        found = log.read_file(segment)
    except WindowLogDamaged as error:
        yield Finding(segment.name, error.reason)
        return
    if found is None:
        return  # It was compacted or purged meanwhile.
    table, info = found
    checked.files += 1
    checked.batches += piece.batches
    checked.rows += table.num_rows
    if info.run != segment.run:
        yield Finding(segment.name, f"it was written by run {info.run}")
    identity = log.schema.identity
    if not identity:
        return
    begin = 0
    for batch in info.batches:
        # All lanes of a run count: after a change of parallelism a key has another one.
        before = known.setdefault(batch.run or info.run, Replays(identity))
        twice = before.seen(table.slice(begin, batch.rows))
        begin += batch.rows
        if twice:
            shown = ", ".join(str(row) for row in twice[:_SHOWN_MAX])
            problem = f"{len(twice)} rows of batch {batch.seq} are there twice: {shown}"
            yield Finding(segment.name, problem)
