"""A real server that notes requests, and answers them as a test says."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

#: Status and headers; None: the connection is closed without an answer.
Answer = tuple[int, dict[str, str]] | None


class Posted(NamedTuple):
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def key(self) -> str:
        return self.headers["Idempotency-Key"]


class Receiver:
    """Has what was posted, also what it did not take; ``taken`` leaves out keys that were seen."""

    def __init__(self, url: str, answer: Callable[[Posted, int], Answer]) -> None:
        self.url = url
        self.answer = answer
        self.posted: list[Posted] = []
        self._taken: dict[str, Posted] = {}
        self._lock = threading.Lock()

    def on_post(self, request: Posted) -> Answer:
        with self._lock:
            tries = sum(each.key == request.key for each in self.posted)
            self.posted.append(request)
        answer = self.answer(request, tries)
        if answer is None or answer[0] < 300:  # A server may die behind the work.
            with self._lock:
                before = self._taken.setdefault(request.key, request)
            assert before.body == request.body
        return answer

    def taken(self, path: str = "/") -> list[Any]:
        with self._lock:
            found = [each.body for each in self._taken.values() if each.path == path]
        return [record for body in found for record in (body if isinstance(body, list) else [body])]


@contextmanager
def receiver(
    answer: Callable[[Posted, int], Answer] = lambda _request, _tries: (200, {}),
) -> Iterator[Receiver]:
    """Serve on a free port; ``answer(request, earlier tries of it)`` says what to answer."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                body = json.loads(data)
            except ValueError:  # The sender was closed in the middle.
                self.close_connection = True
                return
            told = made.on_post(Posted(self.path, dict(self.headers), body))
            if told is None:
                self.close_connection = True
                return
            text = b"no such thing" if told[0] >= 300 else b""
            self.send_response(told[0])
            for name, value in {"Content-Length": str(len(text)), **told[1]}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:  # The sender was killed.
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made = Receiver(f"http://127.0.0.1:{server.server_port}/", answer)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
