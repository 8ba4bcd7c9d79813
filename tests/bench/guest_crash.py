"""A cluster inside Spark, whose processes and those of its Spark are killed."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.spark.guest.guest_drives import Recovery, drives, is_exact, standalone


def guest_crash(folder: Path, *, kills: int, seed: int) -> Iterator[str]:
    """Yield lines about how long recoveries took, and whether each number was counted once.

    A recovery has two parts: until Spark has begun a task for a worker, and ours.
    """
    with standalone(folder) as url:
        yield from _lines_of(drives(folder, kills=kills, seed=seed, master=url))


def _lines_of(drives: Iterable[Recovery | dict[str, Any]]) -> Iterator[str]:
    found: dict[str, list[Recovery]] = {}
    for each in drives:
        if isinstance(each, Recovery):
            found.setdefault(each.kind, []).append(each)
            continue
        for kind, recoveries in sorted(found.items()):
            yield _row(kind, recoveries)
        yield _row("all", [each for recoveries in found.values() for each in recoveries])
        yield f"numbers {each['numbers']}, lost {each['lost']}, twice {each['twice']}"
        if not is_exact(each):
            raise SystemExit(1)


def _row(kind: str, recoveries: Sequence[Recovery]) -> str:
    took = [each.seconds for each in recoveries]
    of_spark = [each.of_spark for each in recoveries]
    ours = [each.seconds - each.of_spark for each in recoveries]
    return (
        f"{kind:16} {len(took):3} killed, recovery p50 {statistics.median(took):5.1f} s, "
        f"max {max(took):5.1f} s; waiting for Spark p50 {statistics.median(of_spark):5.1f} s, "
        f"after that p50 {statistics.median(ours):5.1f} s, max {max(ours):5.1f} s"
    )
