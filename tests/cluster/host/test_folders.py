"""Temporary folders: locked by the process that has them, and removed when it is dead."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gearpy.cluster.host.folders import TemporaryFolder

HOLD = """\
import sys
from gearpy.cluster.host.folders import TemporaryFolder
print(TemporaryFolder().path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a place for temporary folders that nobody else has."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_the_folder_of_a_process_that_was_killed_is_removed_by_the_next(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        first = TemporaryFolder()
        assert theirs.exists()
        other.kill()
        other.wait()
        second = TemporaryFolder()
        assert not theirs.exists()
    assert {first.path, second.path} == {*place.iterdir()}
    first.remove()
    second.remove()


def test_what_a_run_that_was_killed_had_prepared_is_removed(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "_pending"
    out.mkdir(parents=True)
    mine, other = (f"part-00000-{run}~2fapp1-0000000100000001-000001" for run in ("mine", "other"))
    for name in (f"{mine}.jsonl.pending", f"{other}.jsonl.pending", f"{mine}.jsonl"):
        (out / name).touch()
    code = f"""
import os
from pathlib import Path
from gearpy.cluster.host.folders import TemporaryFolder
TemporaryFolder().note_pending("mine/app1", [Path({str(out)!r}), Path("/nowhere")])
os._exit(1)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len([*out.iterdir()]) == 3

    TemporaryFolder().remove()

    assert {each.name for each in out.iterdir()} == {f"{other}.jsonl.pending", f"{mine}.jsonl"}
    assert not [*place.glob("gearpy-local-*")]


def test_a_folder_that_is_just_being_made_is_left_alone(place: Path) -> None:
    young, old, other = (place / f"{name}-x" for name in ("gearpy-local", "gearpy-local-old", "my"))
    for each in (young, old, other):
        each.mkdir()
    os.utime(old, (0, 0))

    TemporaryFolder().remove()

    assert {*place.iterdir()} == {young, other}
