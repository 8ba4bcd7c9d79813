"""Removes from a window log what is old, if it was handed over."""

from gearpy.core.handover.window_log import Position, Segment
from gearpy.windowlog.log import WindowLog

__all__ = ["expire"]


def expire(log: WindowLog, taken: Position, *, before_ms: int) -> list[Segment]:
    """Remove files of batches that were taken and shown before a time; return them.

    The last file of a lane stays, and so does one whose age nobody knows.
    """
    view = log.view()
    expired: dict[str, int] = {}
    for lane in view.lanes:
        for piece in view.pieces(lane)[:-1]:
            found = log.store.look(piece.segment.name)
            is_taken = piece.last <= taken.get(lane, 0)
            if not is_taken or found is None or not 0 < found.changed_ms < before_ms:
                break
            expired[lane] = piece.last
    removed = view.removable(expired)
    for segment in removed:
        log.store.remove(segment.name)
    return removed
