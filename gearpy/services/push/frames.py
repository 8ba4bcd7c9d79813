"""Events as they are sent, by the rules of server-sent events."""

import re
from typing import Final

#: Keeps a connection alive through whatever is in between, and shows that it is.
HEARTBEAT: Final = b": alive\n\n"
#: The first thing a viewer gets: how soon to come back.
HELLO: Final = b"retry: 2000\n\n"
_ID: Final = re.compile(r"[0-9]{1,15}", re.ASCII)


def frame(event: str, data: bytes, *, event_id: int | None = None) -> bytes:
    assert b"\n" not in data, "JSON of one line"
    given_id = b"" if event_id is None else b"id: %d\n" % event_id
    return b"%sevent: %s\ndata: %s\n\n" % (given_id, event.encode(), data)


def as_message(sent: bytes) -> str:
    """Return a frame as JSON with ``event``, ``id`` and ``data``, for a WebSocket.

    Empty for what is none: a sign of life, or when to come back.
    """
    fields = dict(line.split(": ", 1) for line in sent.decode().split("\n") if line)
    if "data" not in fields:
        return ""
    event, event_id, data = fields["event"], fields.get("id", "null"), fields["data"]
    return f'{{"event":"{event}","id":{event_id},"data":{data}}}'


def id_of(header: str | None) -> int | None:
    return int(header) if header is not None and _ID.fullmatch(header) else None
