"""The system kills executors for want of memory: a real limit of a control group."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.eventually import eventually
from tests.system.cluster_build import Scene

_GROUPS: Final = Path("/sys/fs/cgroup/memory")
_LIMIT: Final = 600_000_000  # A worker, an app master and an executor have less than half of it.

#: Takes all memory at one record: once, or each time.
_GREEDY: Final = """\
from itertools import count
from pathlib import Path
import gearpy as gp

def main(args):
    out, always = Path(args[0]), args[1:] == ["always"]
    seen = out.with_name(out.name + ".seen")

    def check(n):
        if n == 300 and (always or not seen.exists()):
            seen.touch()
            taken = [bytearray(20_000_000) for _ in range(200)]
        return n

    app = gp.StreamApp(out.name)
    numbers = app.read(gp.generate(lambda: iter(range(1000)), rate=200))
    numbers.map(check).write(gp.jsonl_folder(out))
    return app
"""


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Scene]:
    """Return a cluster whose worker, with all that it starts, may have little memory."""
    group = _GROUPS / f"gearpy-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(_LIMIT))
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control group of the first version may be made here: {error}")
    made = Scene(tmp_path, workers=1, more={"executor.memory-max-bytes": "0"})
    made.settings["executor.memory-max-bytes"] = "0"
    (tmp_path / "greedy.py").write_text(_GREEDY, encoding="utf-8")
    with made.cluster:
        (group / "cgroup.procs").write_text(str(made.cluster.workers[0].pid))
        yield made
    eventually(lambda: not (group / "cgroup.procs").read_text(), "all have ended")
    group.rmdir()


def ends(scene: Scene, number: int) -> dict[str, Any]:
    """Wait until an application has ended; return its summary."""
    eventually(
        lambda: scene.summary(number)["status"] in {"succeeded", "failed"},
        within_s=180.0,
        every_s=0.5,
    )
    return scene.summary(number)


@pytest.mark.long
def test_an_executor_that_is_killed_for_memory_comes_back_and_at_last_ends_its_application(
    limited: Scene,
) -> None:
    """Killed by the kernel itself; the worker and the app master beside it are left alone."""
    once, always = limited.folder / "once", limited.folder / "always"
    once.mkdir()
    always.mkdir()
    number = limited.submit("greedy.py", "--", str(once))
    last = ends(limited, number)

    assert (last["status"], last["progress"]["restarts"]) == ("succeeded", 1), last
    shown = [int(n) for part in once.glob("*.jsonl") for n in part.read_text().split()]
    assert sorted(shown) == list(range(1000))

    retries = ("--set", "application.total-retries=1")
    number = limited.submit(*retries, "greedy.py", "--", str(always), "always")
    last = ends(limited, number)
    assert last["status"] == "failed"
    cause = last["cause"]["cause"]
    assert "killed by signal 9: out of memory: the processes of its worker may have 600 MB" in cause
    assert "gearpy-test-" in cause
    assert "out of memory" in limited.gear("app", "describe", str(number))
