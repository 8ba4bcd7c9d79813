"""A cluster inside Spark, whose processes and those of its Spark are killed."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from tests.spark.guest.guest_drives import Recovery, drives, is_exact


def guest_crash(folder: Path, *, kills: int, seed: int) -> Iterator[str]:
    """Yield lines about how long recoveries took, and whether each number was counted once."""
    took: dict[str, list[float]] = {}
    for each in drives(folder, kills=kills, seed=seed):
        if isinstance(each, Recovery):
            took.setdefault(each.kind, []).append(each.seconds)
            continue
        for kind, seconds in sorted(took.items()):
            yield _row(kind, seconds)
        yield _row("all", [each for seconds in took.values() for each in seconds])
        yield f"numbers {each['numbers']}, lost {each['lost']}, twice {each['twice']}"
        if not is_exact(each):
            raise SystemExit(1)


def _row(kind: str, seconds: list[float]) -> str:
    median, worst = statistics.median(seconds), max(seconds)
    return f"{kind:16} {len(seconds):3} killed, recovery p50 {median:5.1f} s, max {worst:5.1f} s"
