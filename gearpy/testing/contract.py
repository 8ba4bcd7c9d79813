"""The rules that hold for sources and sinks alike: plain data, nothing kept open, clear errors."""

import gc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gearpy.columns.values import field_names, has_fields
from gearpy.errors import ContractBroken, GearpyError
from gearpy.task.api.snapshots import decode_state, encode_state

#: A thread, a file or a connection that each of so many openings leaves is no accident.
_OPENINGS: Final = 3
_CLOSED_WITHIN_S: Final = 5.0
_FILES: Final = Path("/proc/self/fd")


def plain(name: str, state: Any) -> Any:
    try:
        found = decode_state(encode_state(name, state))
    except GearpyError as error:
        raise ContractBroken(f"{name} cannot be stored: {error}") from error
    if found != state:
        raise ContractBroken(
            f"{name} is {state!r:.200} and comes back from a checkpoint as {found!r:.200}: return "
            "numbers, text, bytes, lists, tuples and dicts"
        )
    return found


def comparable(value: Any) -> Any:
    """Return a value that equal records share, and that can be counted, whatever a dict's order.

    Of a record of a class it is that of its fields, as steps get such records of columns.
    """
    if has_fields(value):
        value = {name: getattr(value, name) for name in field_names(value)}
    if isinstance(value, Mapping):
        return tuple(sorted((str(key), comparable(each)) for key, each in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(comparable(each) for each in value)
    return value if isinstance(value, str | bytes | int | float | None) else repr(value)


def check_releases(name: str, use: Callable[[], object]) -> None:
    """Check that a call that opens and closes something keeps nothing open, however often.

    What the first time leaves, such as a connection that all share, may stay.

    Raises:
        ContractBroken: threads or open files become more with each time.
    """
    use()
    before = _held()
    for _ in range(_OPENINGS):
        use()
    until_s, pause_s = time.monotonic() + _CLOSED_WITHIN_S, 0.01
    while any(more := [now - then for now, then in zip(_held(), before, strict=True)]):
        if max(more) < _OPENINGS:
            return
        if time.monotonic() > until_s:
            what = "threads" if more[0] >= _OPENINGS else "files or connections"
            raise ContractBroken(
                f"{name} was opened and closed {_OPENINGS} times, and {max(more)} {what} are left: "
                "release in close() what was opened"
            )
        time.sleep(pause_s)
        pause_s *= 2  # Each look goes through all objects of the process.


def _held() -> tuple[int, int]:
    gc.collect()
    files = len(list(_FILES.iterdir())) if _FILES.is_dir() else 0
    return threading.active_count(), files
