"""A disk that is full: the error names the file, how full the disk is, and what to do."""

import errno
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import gearpy as gp
from gearpy.errors import LogBroken
from gearpy.messages.data import Batch
from gearpy.storage.checkpoints import checkpoints_at
from gearpy.storage.folder.files import create_file
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.log import FileLog
from tests.small_disk import small_disk


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Return a folder with room for 64 kB, and what an error says of it.

    It is a disk of its own; or, for who may not mount one, a limit of this process.
    """
    folder = tmp_path / "small"
    with small_disk(folder, "64k") as disk:
        if disk is None:
            with file_limit(64 << 10):
                yield folder, "raise executor.file-max-bytes, or what ulimit -f says"
        else:
            yield folder, f"of 65,536 bytes are free: make room in {folder}"


def fill_checkpoints(folder: Path) -> None:
    checkpoints_at(folder).save("k/app1/epoch1", [bytes(100_000)])


def fill_master_log(folder: Path) -> None:
    log = FileLog(folder)
    try:
        for _ in range(10):
            log.append([bytes(20_000)])
    finally:
        log.close()


def fill_text_file(folder: Path) -> None:
    writer = gp.text_file(str(folder / "out.txt")).open(0, 1)
    writer.restore(None)
    try:
        for _ in range(10):
            writer.write_batch(Batch(["x" * 20_000], [0]))
            writer.on_watermark(0)
    finally:
        (folder / "out.txt").write_bytes(b"")  # Room for what is left in the buffer.
        writer.close(completed=False)


def fill_results(folder: Path) -> None:
    """Write more into the file of a transactional folder than the disk has room for."""
    results = LocalFolder(folder / "results")
    results.make()
    file = results.create("part")
    try:
        for _ in range(10):
            file.write(bytes(20_000))
        results.sync(file)
    finally:
        with suppress(OSError):
            file.close()


FILLED: list[tuple[Callable[[Path], None], str]] = [
    (fill_checkpoints, "epoch1"),
    (fill_master_log, "segment-"),
    (fill_text_file, "out.txt"),
    (fill_results, "part"),
]


@pytest.mark.parametrize(("fill", "name"), FILLED, ids=lambda each: getattr(each, "__name__", each))
def test_a_full_disk_names_the_file_and_what_to_do(
    fill: Callable[[Path], None], name: str, full: tuple[Path, str]
) -> None:
    """Whoever writes: a snapshot, the master's log, results."""
    folder, advice = full

    with pytest.raises((OSError, LogBroken)) as caught:
        fill(folder)

    assert advice in str(caught.value)
    assert f"{folder}/" in str(caught.value)
    assert name in str(caught.value)


def test_a_limit_of_the_process_is_told_as_such(tmp_path: Path) -> None:
    """The disk has room; the text says which limit it is."""
    with create_file(tmp_path / "file", "xb", buffering=0) as file, file_limit(1000):
        file.write(bytes(1000))
        with pytest.raises(OSError, match=r"raise executor\.file-max-bytes") as caught:
            file.write(bytes(1000))
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(tmp_path / "file")
