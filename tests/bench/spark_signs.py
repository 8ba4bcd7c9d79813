"""What of a hand-off to Spark can be seen from outside: files, and processes."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from gearpy.core.handover.window_log import segments_of
from tests.bench.epoch_signs import EpochSigns, names_in
from tests.bench.process_cluster import children_of
from tests.bench.spark_program import HANDED, LOG, NAIVE, OUTSIDE, SINK
from tests.bench.spark_reader import PROGRESS

_NUMBER: Final = re.compile(r"(\d+)(\.compact)?")
_HANDED: Final = re.compile(re.escape(SINK) + r"\.(\d+)\.(intent|done)")


class SparkSigns(EpochSigns):
    """Tells also how far calls of the function, and the job outside, are."""

    def __init__(self, checkpoints: Path, results: Path) -> None:
        super().__init__(checkpoints, results)
        self._results = results

    def pending(self) -> frozenset[str]:
        folders = (self._results / name / "_pending" for name in (LOG, HANDED))
        return frozenset(f"{folder}/{name}" for folder in folders for name in names_in(folder))

    def newest_shown(self) -> int:
        return max((each.epoch for each in segments_of(names_in(self._results / LOG))), default=0)

    # -- the sink that calls a function on Spark -------------------------------------------

    def intended(self) -> int:
        """Return the newest batch that the function was, or is about to be, called with."""
        return self._handed("intent")

    def done(self) -> int:
        return self._handed("done")

    def appended(self) -> frozenset[str]:
        return frozenset(
            each for each in names_in(self._results / NAIVE) if each.startswith("part-")
        )

    def _handed(self, kind: str) -> int:
        found = (_HANDED.fullmatch(name) for name in names_in(self._results / HANDED / "_spark"))
        return max((int(each[1]) for each in found if each and each[2] == kind), default=0)

    # -- the job outside -------------------------------------------------------------------

    def batch_begun(self) -> int:
        """Return the newest batch that Spark has begun to read; -1 if there is none."""
        return _newest(self._results / PROGRESS / "offsets")

    def batch_in_table(self) -> int:
        return _newest(self._results / OUTSIDE / "_spark_metadata")

    def batch_committed(self) -> int:
        return _newest(self._results / PROGRESS / "commits")


def jvm_of(pid: int) -> int | None:
    for child in children_of(pid):
        with suppress(OSError):
            if Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip() == "java":
                return child
    return None


def _newest(folder: Path) -> int:
    found = (_NUMBER.fullmatch(name) for name in names_in(folder))
    return max((int(each[1]) for each in found if each), default=-1)
