"""The number of files and connections that this process may have open."""

import resource
from contextlib import suppress
from typing import Final

#: As many as a daemon asks for.
_WANTED: Final = 65_536


def allow_open_files(wanted: int = _WANTED) -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return wanted if soft == resource.RLIM_INFINITY else soft
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        return allowed
    return soft
