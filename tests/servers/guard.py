"""A small program that starts a server, and ends it when the test run is gone, however that ended.

Usage: ``guard.py OWNER USER COMMAND ...``, in the folder of the server, where ``pid`` names the
process as long as it lives, and ``log`` has what it says. It returns when the process was started,
and goes on in the background. Needs nothing but Python.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_POLL_S = 0.05
_STOP_S = 10.0


def main(owner: int, user: str, command: list[str]) -> int:
    started, starting = os.pipe()
    if os.fork():
        os.close(starting)
        return 0 if os.read(started, 1) else 1
    os.setsid()
    with Path("log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        user=user or None,
        extra_groups=[] if user else None,
    )
    Path("pid").write_text(str(server.pid))
    os.write(starting, b".")
    os.close(starting)
    _watch(owner, server)
    return 0


def _watch(owner: int, server: "subprocess.Popen[bytes]") -> None:
    while server.poll() is None and _lives(owner):
        time.sleep(_POLL_S)
    is_owned = _lives(owner)
    with suppress(ProcessLookupError):
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGCONT)
            os.killpg(server.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.wait(_STOP_S)
        os.killpg(server.pid, signal.SIGKILL)  # What it has started itself.
    server.wait()
    Path("pid").unlink(missing_ok=True)
    if not is_owned:
        shutil.rmtree(Path("data").resolve(), ignore_errors=True)


def _lives(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
