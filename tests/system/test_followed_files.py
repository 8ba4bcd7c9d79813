"""A run follows folders and a log whose files are cut, replaced, packed and rotated meanwhile.

A row that was there to be read is shown once, or the log of the run names its file.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tests.eventually import DEADLINE_S, eventually

PROGRAM: Final = """\
import gearpy as gp

follow = {"follow": True, "poll": "20ms", "settle": "50ms", "on_bad": "skip"}
app = gp.StreamApp("followed")
of_csv = app.read(gp.csv("csv/*", schema={"id": str}, **follow))
of_json = app.read(gp.jsonl("jsonl/*", schema={"id": str}, **follow))
of_log = app.read(gp.files("log/app.log", follow=True, poll="20ms")).map(lambda id: {"id": id})
of_csv.merge(of_json, of_log).write(gp.jsonl_folder("out"))
"""
FILES: Final = 24


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    for name in ("csv", "jsonl", "log"):
        (tmp_path / name).mkdir()
    (tmp_path / "log" / "app.log").touch()
    (tmp_path / "followed.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_no_row_is_lost_in_silence_and_none_is_shown_twice(folder: Path, seed: int) -> None:
    rng, writer = Random(seed), Writer(folder)
    run = (sys.executable, "-m", "gearpy", "run", "followed.py")
    with subprocess.Popen(run, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        for number in range(FILES):
            ending = rng.choice(["csv", "jsonl"])
            file = writer.put(ending, number)
            if rng.random() < 0.5:
                eventually(partial(writer.is_shown, file), "it was read")
            getattr(writer, rng.choice(["leave", "pack", "replace", "cut", "grow"]))(file, rng)
            writer.log(rng, may_cut=number % 4 == 0)
        last = {writer.put(ending, FILES) for ending in ("csv", "jsonl")}
        ids = set().union(*(writer.wanted[file] for file in last)) | writer.log_ids
        eventually(lambda: ids <= writer.shown().keys(), "the last rows are shown")
        running.send_signal(signal.SIGTERM)
        said = running.communicate(timeout=DEADLINE_S)[1].decode()

    assert running.returncode == 0, said
    shown = writer.shown()
    assert shown.keys() <= writer.ids
    assert not [each for each, times in shown.items() if times > 1]
    for file, ids in writer.wanted.items():
        assert ids <= shown.keys() or str(file) in said, file


class Writer:
    """Writes files with ids of their own, and does to them what other programs do.

    Attributes:
        wanted: those that a file has now, by its first name.
    """

    def __init__(self, folder: Path) -> None:
        self.ids: set[str] = set()
        self.wanted: dict[Path, set[str]] = {}
        self.log_ids: set[str] = set()
        self._folder = folder
        self._log = folder / "log" / "app.log"
        self._rotated = 0

    def put(self, ending: str, number: int) -> Path:
        file = self._folder / ending / f"{number:03}.{ending}"
        self._put(file, self._content(file, "a", 50))
        return file

    def shown(self) -> Counter[str]:
        files = [file.read_text().splitlines() for file in (self._folder / "out").glob("*.jsonl")]
        return Counter(json.loads(line)["id"] for lines in files for line in lines)

    def is_shown(self, file: Path) -> bool:
        return self.wanted[file] <= self.shown().keys()

    def leave(self, file: Path, rng: Random) -> None:
        """Do nothing."""

    def pack(self, file: Path, rng: Random) -> None:
        ending = rng.choice([".gz", ".zst"])
        data = file.read_bytes()
        packed = gzip.compress(data) if ending == ".gz" else pa.compress(data, "zstd", asbytes=True)
        self._put(file.with_name(file.name + ending), packed)
        file.unlink()

    def replace(self, file: Path, rng: Random) -> None:
        """Put another file in the place of it; with as many bytes, or more, or fewer."""
        self._put(file, self._content(file, "b", rng.choice([20, 50, 80])))

    def cut(self, file: Path, rng: Random) -> None:
        if rng.random() < 0.5:
            left = file.read_bytes()[: file.stat().st_size // 2]
            os.truncate(file, len(left))
            self.wanted[file] = set()  # Nobody wants rows that are not there.
            self.ids.add(left.decode().rpartition("\n")[2])  # The last row of CSV has no end.
        else:
            file.write_bytes(self._content(file, "c", rng.choice([20, 50, 80])))

    def grow(self, file: Path, rng: Random) -> None:
        before = self.wanted[file]
        with file.open("ab") as added:
            added.write(self._content(file, "d", 10).removeprefix(b"id\n"))
        self.wanted[file] |= before

    def log(self, rng: Random, *, may_cut: bool) -> None:
        """Add lines to the log; rotate it, or cut it when all of it was read."""
        ids = {f"log {len(self.log_ids) + at}" for at in range(rng.choice([1, 30]))}
        if may_cut:
            eventually(lambda: self.log_ids <= self.shown().keys(), "the log was read")
            if rng.random() < 0.5:
                self._rotated += 1
                self._log.rename(self._log.with_name(f"app.log.{self._rotated}"))
            else:
                ids |= {f"log {len(self.log_ids) + at}" for at in range(len(self.log_ids) + 100)}
                os.truncate(self._log, 0)
        self.log_ids |= ids
        self.ids |= ids
        with self._log.open("a") as lines:
            lines.write("".join(f"{each}\n" for each in sorted(ids)))

    def _content(self, file: Path, mark: str, count: int) -> bytes:
        ids = [f"{file.name} {mark} {number:04}" for number in range(count)]
        self.ids |= {*ids}
        self.wanted[file] = {*ids}
        if file.suffix == ".csv":
            return "".join(f"{each}\n" for each in ["id", *ids]).encode()
        return "".join(f'{{"id": "{each}"}}\n' for each in ids).encode()

    @staticmethod
    def _put(file: Path, data: bytes) -> None:
        hidden = file.with_name(f".{file.name}.new")
        hidden.write_bytes(data)
        hidden.replace(file)
