"""Figures: rates, percentiles, memory of a process."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share (0 to 1) of the values lies."""
    assert values, "no values were measured"
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rss_mb(pid: int | None = None) -> float:
    """Return the resident memory of a process (this one), MB."""
    pages = int(Path(f"/proc/{pid or os.getpid()}/statm").read_text(encoding="ascii").split()[1])
    return pages * _PAGE / 1e6
