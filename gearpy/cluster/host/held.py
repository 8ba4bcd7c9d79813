"""A call that holds the interpreter so that no thread goes on, such as one regular expression.

Nothing written in Python can tell of it then. A thread of `faulthandler`, which needs no
interpreter, writes to standard error where all threads are. If nothing follows, the worker ends the
process, a moment before others would give it up as silent, and finds the call in that.
"""

import faulthandler
import re
import sys
import threading
from contextlib import suppress
from itertools import takewhile
from time import monotonic
from types import SimpleNamespace
from typing import Any, Final

#: A process that was let go so soon behind the dump goes on: it may have been frozen, or starved.
GRACE_S: Final = 0.6
#: Of the time after which a silent process counts as lost.
_SHARE: Final = 0.7
_AGAIN: Final = 0.05
_OVER: Final = "the interpreter goes on"

_DUMP: Final = re.compile(r"^Timeout \((\d+):(\d+):(\d+(?:\.\d+)?)\)!$", re.MULTILINE)
_FRAME: Final = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
#: Threads whose innermost frame is in one of these let others go on.
_WAITS: Final = ("threading.py", "selectors.py", "queue.py", "socket.py", "subprocess.py")


def tell_if_held(heartbeat_timeout_ms: int) -> None:
    """Have standard error told where all threads are when none goes on for most of a time-out."""
    timeout_s = heartbeat_timeout_ms * _SHARE / 1000
    pause = threading.Event()

    def watch() -> None:
        while True:
            begun_s = monotonic()
            with suppress(RuntimeError, MemoryError):  # There is no thread to be had just now.
                faulthandler.dump_traceback_later(timeout_s)
            pause.wait(timeout_s * _AGAIN)
            if monotonic() - begun_s >= timeout_s:
                sys.stderr.write(f"{_OVER}\n")

    threading.Thread(target=watch, name="gearpy-held", daemon=True).start()


def held_by(text: str) -> str:
    """Return which call holds the interpreter of a process with this standard error, if one does.

    It names the operator, if a task works, the line, and for how long.
    """
    dump = next(reversed([*_DUMP.finditer(text)]), None)
    if dump is None or _OVER in text[dump.end() :]:
        return ""
    from gearpy.task.runtime.turns import TURN_OF  # noqa: PLC0415 - no worker needs it before

    hours, minutes, seconds = map(float, dump.groups())
    stacks = [_FRAME.findall(each) for each in text[dump.end() :].split("\n\n")]
    working = [each for each in stacks if each and not each[0][0].endswith(_WAITS)]
    turns = [each for each in working if any(name.startswith(TURN_OF) for *_, name in each)]
    stack = next(iter(turns or working), [])
    operator = next((name for *_, name in stack if name.startswith(TURN_OF)), "")
    named = operator.removeprefix(TURN_OF).encode("latin-1", "replace").decode("unicode_escape")
    inside = takewhile(lambda frame: not frame[2].startswith(TURN_OF), stack)
    return (
        f"{f'operator {named!r}: ' if named else ''}a call has held the interpreter for "
        f"{(hours * 60 + minutes) * 60 + seconds:g} s, so that no other thread went on, heartbeats "
        f"included, as a regular expression may that tries too much{_place_of([*inside])}: let it "
        "do less at a time"
    )


def _place_of(stack: list[tuple[str, str, str]]) -> str:
    from gearpy.task.api.failure import source_in  # noqa: PLC0415 - as above

    frames: Any = [
        (SimpleNamespace(f_code=SimpleNamespace(co_filename=file)), int(line))
        for file, line, _ in reversed(stack)
    ]
    source, line = source_in(frames)
    return f", at {source}{f' ({line})' if line else ''}" if source else ""
