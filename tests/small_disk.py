"""Disks of a few kilobytes, which tests fill, and where nothing may be written for a while."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NAME: Final = "gearpy-test"
_BLOCK: Final = bytes(4096)


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / ".filler"
        self._is_forbidden = False

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            while True:
                try:
                    file.write(_BLOCK)
                except OSError:
                    return

    def forbid(self) -> None:
        """Let nothing be opened to write; what is open stays so."""
        here = str(self.folder)
        assert _mount("--bind", here, here)
        assert _mount("-o", "remount,bind,ro", here)
        self._is_forbidden = True

    def mend(self) -> None:
        if self._is_forbidden:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
            self._is_forbidden = False
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk | None]:
    """Mount a disk of a size such as ``64k`` at a new folder; None for who may not mount one."""
    folder.mkdir()
    options = f"size={size},mode=0700"
    if os.geteuid() or not _mount("-t", "tmpfs", "-o", options, _NAME, str(folder)):
        yield None
        return
    disk = SmallDisk(folder)
    try:
        yield disk
    finally:
        disk.mend()
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(*args: str) -> bool:
    return not subprocess.run(["mount", *args], check=False, capture_output=True).returncode
