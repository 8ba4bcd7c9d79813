"""HDFS by its web interface, without Java: fsspec's client, with what it lacks.

That one has no time limits, moves nothing onto an existing name and says nothing of it, writes a
file in many requests of which none may be repeated, and takes a name node that has just started
for a mistake of the caller.
"""

import errno
import os
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import fsspec  # type: ignore[import-untyped]
from fsspec.implementations.webhdfs import WebHDFS  # type: ignore[import-untyped]
from requests import HTTPError

_CONNECT_S: Final = 10.0
#: A data node that is asked for a block may have to wait for a disk; nothing else is slow.
_ANSWER_S: Final = 30.0
_TEXT_MAX: Final = 500
_BINARY: Final = {"content-type": "application/octet-stream"}
#: Words in errors of a name node that cannot serve yet, or no more.
_PASSING: Final = (
    *("safe mode", "standby", "not started", "startup mode", "find datanode"),
    "could only be written to 0",
)


class WebHdfsFiles(WebHDFS):  # type: ignore[misc]
    """File system of ``webhdfs://`` for fsspec; options such as ``user`` and ``kerberos`` stay."""

    protocol = ("webhdfs", "webHDFS")

    def _connect(self) -> None:
        super()._connect()
        ask = self.session.request

        def asked(method: str, url: str, **options: Any) -> Any:
            return ask(method, url, timeout=(_CONNECT_S, _ANSWER_S), **options)

        self.session.request = asked

    def _call(self, op: str, *args: Any, **options: Any) -> Any:
        try:
            return super()._call(op, *args, **options)
        except RuntimeError as error:
            raise _told(str(error)) from error
        except HTTPError as error:
            if error.response is None or error.response.status_code != HTTPStatus.UNAUTHORIZED:
                raise
            at = urlsplit(self.url).netloc
            if self.session.auth is not None:
                raise PermissionError(
                    f"webhdfs://{at} takes no ticket of this user: look at klist, and run kinit"
                ) from error
            raise PermissionError(
                f"webhdfs://{at} asks for a login by Kerberos: set FSSPEC_WEBHDFS_KERBEROS=true in "
                "the environment of all processes, or give "
                'storage_options={"kerberos": True}, and have a ticket, by kinit'
            ) from error

    def unstrip_protocol(self, name: str) -> str:
        """Return the URL of a path: with the name node, so that others can open it."""
        user = f"{self.user}@" if self.user else ""
        return f"webhdfs://{user}{urlsplit(self.url).netloc}{self._strip_protocol(name)}"

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        """Move a file in place of the one that has the name, in one step."""
        self._call("RENAME", "put", path=path1, destination=path2, renameoptions="OVERWRITE")

    def move_new(self, path: str, to: str) -> bool:
        """Move a file, but only if there is none of the new name; False if there is one."""
        answer = self._call("RENAME", "put", path=path, destination=to)
        return answer.json()["boolean"] is True

    def block_hosts(self, path: str) -> list[tuple[int, list[str]]]:
        """Return the bytes of each block of a file, and the machines that have it."""
        answer = self._call("GETFILEBLOCKLOCATIONS", path=path).json()
        return [
            (block["length"], list(block["hosts"]))
            for block in answer["BlockLocations"]["BlockLocation"]
        ]

    def put_file(self, lpath: str | os.PathLike[str], rpath: str, **_: Any) -> None:
        """Write a file in one request, which may be repeated."""
        begun = self._call("CREATE", "put", path=rpath, redirect=False, overwrite="true")
        with Path(lpath).open("rb") as file:
            # An empty stream would be sent in chunks, of which there are none.
            data = file if os.fstat(file.fileno()).st_size else b""
            place = self._apply_proxy(begun.headers["Location"])
            answer = self.session.put(place, data=data, headers=_BINARY)
        if not answer.ok:
            raise _told(f"{rpath}: {answer.status_code}: {answer.text[:_TEXT_MAX]}")


def _told(text: str) -> OSError:
    is_passing = any(each in text.lower() for each in _PASSING)
    return OSError(errno.EBUSY if is_passing else errno.EIO, text)


def register() -> None:
    fsspec.register_implementation("webhdfs", WebHdfsFiles, clobber=True)
