"""Applications that write a window log: finished windows, each once, whatever fails."""

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import gearpy as gp
from gearpy.testing import Simulation
from gearpy.windowlog.log import WindowLog
from gearpy.windowlog.verify import verify


def windows_of(app: gp.StreamApp, path: Any, **options: Any) -> None:
    numbers = app.read(gp.collection(range(2000), timestamp=lambda n: n * 10))
    counts = numbers.key_by(lambda n: n % 10).window(gp.tumbling("1s")).count()
    counts.write(gp.window_log_folder(path, key="digit", **options))


def rows_in(path: Any) -> Counter[tuple[int, int, int]]:
    log = WindowLog(path)
    table = log.read_between({}, log.view().ends())
    starts = [int(each.timestamp() * 1000) for each in table["window_start"].to_pylist()]
    return Counter(zip(starts, table["digit"].to_pylist(), table["value"].to_pylist(), strict=True))


EXPECTED = Counter({(start * 1000, digit, 10): 1 for start in range(20) for digit in range(10)})


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("place", ["folder", "url"])
def test_finished_windows_are_in_the_log(tmp_path: Path, tasks: int, place: str) -> None:
    """Each once, in the lane of its task, here or at a URL; and nothing else."""
    path = tmp_path / "log" if place == "folder" else f"memory://{uuid4().hex}"
    app = gp.StreamApp("digits", parallelism=tasks)
    windows_of(app, path)

    Simulation(app).run()

    assert rows_in(path) == EXPECTED
    assert len(WindowLog(path).view().lanes) == tasks
    assert verify(WindowLog(path)).findings == []
