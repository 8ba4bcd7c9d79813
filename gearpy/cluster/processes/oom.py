"""Processes that the system has killed for want of memory: in this control group, and anywhere."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

from msgspec import Struct

_OOM_KILLS: Final = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_GROUPS: Final = Path("/proc/self/cgroup")
_ROOT: Final = Path("/sys/fs/cgroup")
_OF_MACHINE: Final = Path("/proc/vmstat")
#: A limit above this is none: the first version writes the largest number of pages there is.
_LIMIT_MAX: Final = 1 << 60
#: Processes of applications go before the worker, with which all of them would end.
_SCORE: Final = 500


class _Files(NamedTuple):
    kills: str
    limit: str


_OF_FIRST: Final = _Files("memory.oom_control", "memory.limit_in_bytes")
_OF_SECOND: Final = _Files("memory.events", "memory.max")


class OomKills(Struct, frozen=True):
    """The numbers of processes that were killed for want of memory, so far.

    ``limit`` is the file that has the limit of the control group, with what it says.
    """

    in_group: int
    anywhere: int
    limit: tuple[Path, int] | None = None

    @classmethod
    def now(cls, groups: Path = _GROUPS, root: Path = _ROOT, machine: Path = _OF_MACHINE) -> Self:
        kills, limit = 0, None
        for folder, files in _places(groups, root):
            kills += _count(folder / files.kills)
            if limit is None and (found := _limit(folder / files.limit)) is not None:
                limit = (folder / files.limit, found)
        return cls(kills, _count(machine), limit)

    def why_since(self, before: "OomKills") -> str:
        if self.in_group > before.in_group:
            if self.limit is None:
                return "out of memory"
            path, limit = self.limit
            return (
                f"out of memory: the processes of its worker may have {limit / 1e6:,.0f} MB "
                f"together ({path}); raise that, set executor.memory-max-bytes, or give the worker "
                "fewer slots"
            )
        return "maybe out of memory" if self.anywhere > before.anywhere else ""


def prefer_to_kill(score: int = _SCORE) -> None:
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(score), encoding="ascii")


def _places(groups: Path, root: Path) -> Iterator[tuple[Path, _Files]]:
    """Yield the folders of the control groups that count the memory of this process."""
    try:
        lines = groups.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "memory":
            base, files = root / "memory", _OF_FIRST
        elif not controllers:
            base, files = root, _OF_SECOND
        else:
            continue
        own = base / name.lstrip("/")
        yield (own if (own / files.kills).exists() else base), files


def _count(path: Path) -> int:
    try:
        match = _OOM_KILLS.search(path.read_bytes())
    except OSError:
        return 0
    return int(match[1]) if match else 0


def _limit(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        limit = int(path.read_bytes())
        return limit if limit < _LIMIT_MAX else None
    return None
