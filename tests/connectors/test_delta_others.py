"""What others do to a Delta table while a task writes, and crashes between any two steps."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, cast

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, write_deltalake

from gearpy.connectors.delta.log import DeltaLog
from gearpy.connectors.delta.writer import DeltaOptions, DeltaWriter, PreparedRows, remote_folder
from gearpy.errors import GearpyError
from gearpy.storage.folder.local import LocalFolder
from tests.connectors.delta.test_table import numbers, opened, write
from tests.connectors.table_build import table_options


class Crashed(Exception):
    """The process was killed."""


class Disturbed:
    """A log, or files: something happens before and after each call of some methods."""

    def __init__(self, inner: Any, on_step: Callable[[str], None], names: frozenset[str]) -> None:
        self._inner = inner
        self._on_step = on_step
        self._names = names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._names:
            return found

        def call(*args: Any, **given: Any) -> Any:
            self._on_step(f"before {name}")
            result = found(*args, **given)
            self._on_step(f"after {name}")
            return result

        return call


LOG_STEPS = frozenset({"refresh", "create", "add_columns", "commit", "sync"})
FILE_STEPS = frozenset({"make", "create", "sync", "sync_names", "look"})


def disturbed(path: Path, on_step: Callable[[str], None], **options: Any) -> DeltaWriter:
    log = DeltaLog("delta_table", str(path), None, path)
    return DeltaWriter(
        cast("Any", Disturbed(log, on_step, LOG_STEPS)),
        cast("Any", Disturbed(LocalFolder(path), on_step, FILE_STEPS)),
        table_options("delta_table", partition_by="p"),
        DeltaOptions(url=str(path), **options),
        task=0,
        rng=Random(1),
        pause=lambda _: None,
    )


def test_others_may_write_meanwhile(tmp_path: Path) -> None:
    """Before every attempt; rows of theirs are no conflict."""
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"n": [0], "p": ["x"]}), partition_by="p")

    def on_step(step: str) -> None:
        if step == "before commit":
            write_deltalake(path, pa.table({"n": [0], "p": ["x"]}), mode="append")

    writer = disturbed(path, on_step)
    writer.recover({}, epoch=0, run="r", incarnation=1)
    for epoch in (1, 2):
        writer.commit(epoch, write(writer, epoch, epoch))

    assert numbers(path) == [0, 0, 0, 0, 1, 2]


def test_a_merge_between_looking_and_taking_back_is_found(tmp_path: Path) -> None:
    """The transaction is refused, so that nothing is removed that is not there any more."""
    path = tmp_path / "t"
    first = opened(path, partition_by="p")
    for epoch in (1, 2):
        first.commit(epoch, write(first, epoch, epoch * 3))

    def on_step(step: str) -> None:
        if step == "before commit":
            DeltaTable(path).optimize.compact()

    second = disturbed(path, on_step)
    with pytest.raises(GearpyError, match="were merged with others"):
        second.recover({}, epoch=1, run="r", incarnation=2)

    assert numbers(path) == [3, 6]


def test_others_who_never_pause_are_a_failure_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t"
    first = opened(path, partition_by="p")
    for epoch in (1, 2):
        first.commit(epoch, write(first, epoch, epoch))

    def on_step(step: str) -> None:
        if step == "before commit":
            write_deltalake(path, pa.table({"n": [0], "p": ["x"]}), mode="append")

    second = disturbed(path, on_step, attempts_max=3)
    with pytest.raises(GearpyError, match="before each of 3 attempts to write"):
        second.recover({}, epoch=1, run="r", incarnation=2)

    assert numbers(path) == [0, 0, 0, 1, 2]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Open files.
def test_a_crash_between_any_two_steps_changes_nothing(tmp_path: Path) -> None:
    """Rows of complete epochs are there once, whichever call was the last one; real tables."""
    steps = _killed_at(tmp_path / "all", 10**6)
    assert steps > 20

    for at in range(1, steps + 1):
        path = tmp_path / str(at)
        assert _killed_at(path, at) >= at
        assert numbers(path) == [1, 2], at


def _killed_at(path: Path, at: int) -> int:
    """Write two epochs, killed once in between, and go on from the newest complete one."""
    done = 0

    def on_step(_: str) -> None:
        nonlocal done
        done += 1
        if done == at:
            raise Crashed

    complete, told, incarnation = 0, dict[int, PreparedRows | None](), 0
    while complete < 2:
        incarnation += 1
        try:
            writer = disturbed(path, on_step)
            writer.recover(told, epoch=complete, run="r", incarnation=incarnation)
            for epoch in range(complete + 1, 3):
                prepared = write(writer, epoch, epoch)
                complete, told = epoch, {epoch: prepared}
                writer.commit(epoch, prepared)
        except Crashed:
            continue
    last = disturbed(path, lambda _: None)
    last.recover(told, epoch=complete, run="r", incarnation=incarnation + 1)
    return done


def test_a_table_elsewhere_is_written_by_the_library_of_its_store(tmp_path: Path) -> None:
    """A folder stands for an object store; in one there are no folders to make."""
    url = f"file://{tmp_path}/t"
    (tmp_path / "t").mkdir()
    writer = DeltaWriter(
        DeltaLog("delta_table", url, None, tmp_path / "t"),
        remote_folder(url, {}),
        table_options("delta_table", partition_by="p"),
        DeltaOptions(url=url),
        task=0,
    )
    writer.recover({}, epoch=0, run="r", incarnation=1)

    writer.commit(1, write(writer, 1, *range(1000)))

    assert numbers(tmp_path / "t") == list(range(1000))
