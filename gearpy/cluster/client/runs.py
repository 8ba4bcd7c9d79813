"""The runs of this user on this machine, as others find and ask them.

A run listens at a socket in a folder that its user alone may enter, so it asks for no token.
"""

import os
import re
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any, Final, NoReturn, Self

import msgspec
from msgspec import Struct

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.report import Report
from gearpy.cluster.processes.framed import framed, read_framed
from gearpy.errors import AskTimeout, ConnectionLost, GearpyError, SubmitRefused
from gearpy.ids import AppId
from gearpy.transport.security.secret import make_private_folders
from gearpy.wire.codec import decode_answer, encode_control

RUN_APP: Final = AppId(1)  #: A run has one application.
LAST: Final = "last"  #: The folder of the last reports, in that of the runs.
_ANSWER_S: Final = 30.0


class RunEntry(Struct, frozen=True, kw_only=True):
    """A run that goes on: its names, its process, its folder if it has one, and its socket."""

    name: str
    application: str
    pid: int
    folder: str
    socket: str
    began_ms: int

    def is_called(self, name: str) -> bool:
        return name in {self.name, self.application, self.folder, str(self.pid)}

    @property
    def goes_on(self) -> bool:
        """Whether its process lives; it may have no one who answers any more."""
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})"


class RunClient(ClusterClient):
    """A client of one run: whatever it is asked about is its only application."""

    def __init__(self, entry: RunEntry) -> None:
        super().__init__(lambda message: _asked(entry, message))
        self.entry = entry  #: The run.

    def find(self, text: str | None = None) -> AppId:
        return RUN_APP

    def restart(
        self, app_id: AppId, *, from_beginning: bool = False, checkpoint_folder: str = ""
    ) -> NoReturn:
        """Refuse it: a run ends with its application, and its process with it.

        Raises:
            SubmitRefused: always.
        """
        name = self.entry.application
        raise SubmitRefused(
            f"run {self.entry.name} cannot be started again from here: stop it with 'gear app stop "
            f"{name} --drain', then start its program with --resume; 'gear app restart-tasks "
            f"{name}' has its tasks begin again while it runs"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def runtime_folder() -> Path | None:
    """Return the folder of the runs of this user; None if it cannot be theirs alone."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    name = "gearpy" if base else f"gearpy-{os.getuid()}"
    folder = Path(base or tempfile.gettempdir()) / name
    try:
        make_private_folders(folder / LAST)
        info = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()
    return folder if is_ours and not info.st_mode & 0o077 else None


def live_runs() -> list[RunEntry]:
    """Return the runs that go on, the oldest first; what dead processes have left is removed."""
    found: list[RunEntry] = []
    folder = runtime_folder()
    for path in folder.glob("*.json") if folder is not None else ():
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=RunEntry)
            os.kill(entry.pid, 0)
            with _connected(entry):
                found.append(entry)
        except (OSError, msgspec.DecodeError):
            path.unlink(missing_ok=True)
            path.with_suffix(".sock").unlink(missing_ok=True)
    return sorted(found, key=lambda each: each.began_ms)


def last_report(name: str) -> Report | None:
    """Return the report that the last run of this name has left; None if there is none."""
    folder = runtime_folder()
    path = None if folder is None else folder / LAST / f"{safe_name(name)}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report) if path else None
    except (OSError, msgspec.DecodeError):
        return None


def safe_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)[-100:]


def _asked(entry: RunEntry, message: Any) -> Any:
    question = framed(encode_control(message))
    try:
        with _connected(entry) as asker:
            asker.settimeout(_ANSWER_S)
            asker.sendall(question)
            reply = read_framed(asker.recv)
    except TimeoutError as error:
        raise AskTimeout(f"run {entry} has not answered for {_ANSWER_S:g} s") from error
    except (OSError, EOFError) as error:
        raise ConnectionLost(f"run {entry} has ended") from error
    answer = decode_answer(reply)
    if isinstance(answer, GearpyError):
        raise answer
    return answer


def _connected(entry: RunEntry) -> socket.socket:
    asker = socket.socket(socket.AF_UNIX)
    try:
        asker.connect(entry.socket)
    except OSError:
        asker.close()
        raise
    return asker
