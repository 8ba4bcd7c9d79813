"""A client of a WebSocket, for tests."""

import json
import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

_SECONDS = 30.0


class Refused(Exception):
    """The server has not accepted; has its status and its answer."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body.decode()}")
        self.status = status
        self.body = body


def messages_of(
    url: str, headers: Mapping[str, str] | None = None, *, says: str = ""
) -> Generator[Any]:
    """Connect, say something, and yield what comes, until the server ends it; see `Refused`."""
    parts = urlsplit(url)
    connection = WSConnection(ConnectionType.CLIENT)
    extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    with closing(socket.create_connection((parts.hostname, parts.port), _SECONDS)) as opened:
        request = Request(host=parts.netloc, target=target, extra_headers=extra)
        opened.sendall(connection.send(request))
        text, refused = "", 0
        for event in _events(opened, connection):
            if isinstance(event, AcceptConnection) and says:
                opened.sendall(connection.send(TextMessage(data=says)))
            elif isinstance(event, TextMessage):
                text += event.data
                if event.message_finished:
                    yield json.loads(text)
                    text = ""
            elif isinstance(event, RejectConnection):
                refused = event.status_code
            elif isinstance(event, RejectData) and event.data:
                raise Refused(refused, bytes(event.data))


def _events(opened: socket.socket, connection: WSConnection) -> Iterator[Event]:
    while data := opened.recv(65536):
        connection.receive_data(data)
        for event in connection.events():
            if isinstance(event, Ping):
                opened.sendall(connection.send(event.response()))
            elif isinstance(event, CloseConnection):
                return
            else:
                yield event
