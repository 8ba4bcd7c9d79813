"""Rows shown behind a checkpoint that a run has gone back to, also if they are purged since.

Rows that come again are told by the rows that were shown. A reader that has done with them may let
them be removed before they have come again; after another restart from the same checkpoint nobody
could tell them any more. So who goes back notes what they were, in a file beside that of the owner.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Final, NamedTuple

from gearpy.core.handover.window_log import OWNERS, LogView
from gearpy.windowlog.log import WindowLog
from gearpy.windowlog.replays import Replays

_ENDING: Final = ".again.json"


class _Recall(NamedTuple):
    """The memory of `Replays` of the rows of some batches."""

    first: int
    last: int
    rows: bytes


def recalled(
    log: WindowLog, view: LogView, lane: str, *, since: int, identity: Sequence[str]
) -> list[bytes]:
    """Return the memory of `Replays` for the batches of a lane, and note it for a later start.

    Not known is what was removed before anybody went back behind it.
    """
    file = f"{OWNERS}{lane}{_ENDING}"
    begin = view.begins()[lane]
    try:
        listed = json.loads(log.store.read(file) or b"")["batches"]
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
