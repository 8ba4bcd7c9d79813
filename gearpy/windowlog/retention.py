"""Removes old files from a log."""

from gearpy.core.handover.window_log import Segment
from gearpy.windowlog.log import WindowLog

__all__ = ["expire"]


def expire(log: WindowLog, lane: str, *, before_ms: int) -> list[Segment]:
    """Remove the files of a lane that were shown before a time, the oldest first; return them.

    The last one stays, and so does one whose age nobody knows.
    """
    view = log.view()
    expired = 0
    for piece in view.pieces(lane)[:-1]:
        found = log.store.look(piece.segment.name)
        if found is None or not 0 < found.changed_ms < before_ms:
            break
        expired = piece.last
    removed = view.removable({lane: expired}) if expired else []
    for segment in removed:
        log.store.remove(segment.name)
    return removed
