"""The files of the page, with types, entity tags and rules for caches; nothing else of the disk."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

_FOLDER: Final = Path(__file__).parent / "page"
_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_NOT_CHANGED: Final = 304


def page_routes() -> list[BaseRoute]:
    """Return a route for each file of the page; none of them looks at a path that is asked for."""
    return [
        Route(f"/{path.relative_to(_FOLDER).as_posix()}", _Served(path).answer, methods=["GET"])
        for path in sorted(_FOLDER.rglob("*"))
        if path.is_file() and path.suffix in _TYPES
    ]


def index(request: Request) -> Response:
    return _Served(_FOLDER / "index.html").answer(request)


class _Served:
    """Answers with one file. Runs on: the event loop of the services."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def answer(self, request: Request) -> Response:
        status = self._path.stat()
        content, tag = _content(self._path, status.st_mtime_ns, status.st_size)
        # Browsers ask each time, and a release changes all files at once.
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=_NOT_CHANGED, headers=headers)
        return Response(content, media_type=_TYPES[self._path.suffix], headers=headers)


@lru_cache(maxsize=500)
def _content(path: Path, _mtime_ns: int, _size: int) -> tuple[bytes, str]:
    content = path.read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'
