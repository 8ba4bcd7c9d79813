"""Figures: rates, percentiles, memory of a process."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def percentile(values: Sequence[float], share: float) -> float:
    assert values, "no values were measured"
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rss_mb(pid: int | None = None) -> float:
    pages = int(Path(f"/proc/{pid or os.getpid()}/statm").read_text(encoding="ascii").split()[1])
    return pages * _PAGE / 1e6
