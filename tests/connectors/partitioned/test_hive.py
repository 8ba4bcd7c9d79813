"""Partitioned folders of Parquet files: what is in them, and who may write there."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.connectors.folders.parts import PreparedPart
from gearpy.connectors.partitioned.hive import HiveWriter, hive_folder
from gearpy.errors import ConfigError
from gearpy.messages.data import Batch
from gearpy.task.api.window_result import WindowResult
from tests.connectors.table_build import a_batch

NAMES = ["de", "a/b", "x=1%", "é ~", None, "", "..", "01"]


def opened(
    path: Path,
    *,
    epoch: int = 0,
    incarnation: int = 1,
    run: str = "r",
    prepared: dict[int, list[PreparedPart] | None] | None = None,
    **given: Any,
) -> HiveWriter:
    writer = hive_folder(path, **({"partition_by": "p"} | given)).open(0, 1)
    assert isinstance(writer, HiveWriter)
    writer.recover(prepared or {}, epoch=epoch, run=run, incarnation=incarnation)
    return writer


def write(writer: HiveWriter, epoch: int, *numbers: int) -> list[PreparedPart] | None:
    writer.write_batch(a_batch(list(numbers)))
    return writer.prepare(epoch)


def numbers(path: Path) -> list[int]:
    files = sorted(path.glob("p=*/*.parquet"))
    return sorted(n for file in files for n in pq.ParquetFile(file).read()["n"].to_pylist())


def test_readers_see_an_epoch_when_it_is_complete(tmp_path: Path) -> None:
    writer = opened(tmp_path / "out")

    prepared = write(writer, 1, 0, 1)
    before = numbers(tmp_path / "out")
    writer.commit(1, prepared)
    writer.commit(1, prepared)
    writer.commit(2, write(writer, 2))
    writer.close(completed=True)

    files = [str(file.relative_to(tmp_path)) for file in (tmp_path / "out").glob("p=*/*")]
    name = "part-00000-0000000001-r-0000000000000001.parquet"
    assert (before, numbers(tmp_path / "out")) == ([], [0, 1])
    assert sorted(files) == [f"out/p=p0/{name}", f"out/p=p1/{name}"]
    assert list((tmp_path / "out" / "_pending").iterdir()) == []


def test_values_come_back_whatever_is_in_them(tmp_path: Path) -> None:
    writer = opened(tmp_path / "out", partition_by="name")
    records = [{"n": n, "name": name} for n, name in enumerate(NAMES)]

    writer.write_batch(Batch(records, [0] * len(records)))
    writer.commit(1, writer.prepare(1))

    schema = pa_dataset.partitioning(flavor="hive", schema=pa.schema([("name", pa.string())]))
    table = pa_dataset.dataset(tmp_path / "out", partitioning=schema).to_table()
    rows = sorted(table.to_pylist(), key=lambda row: int(row["n"]))
    assert [row["name"] for row in rows] == [name or None for name in NAMES]


def test_windows_are_partitioned_by_their_date(tmp_path: Path) -> None:
    writer = opened(tmp_path / "out", partition_by={"date": "date(window_start)"}, key="user")
    hour = 3_600_000
    results = [
        WindowResult("ada", 1, 23 * hour, 24 * hour),
        WindowResult("bob", 2, 24 * hour, 25 * hour),
        WindowResult("eve", 3, gp.MIN_MS, gp.MAX_MS),
    ]

    writer.write_batch(Batch(results, [0] * 3))
    writer.commit(1, writer.prepare(1))

    table = pa_dataset.dataset(
        tmp_path / "out", partitioning=pa_dataset.partitioning(flavor="hive")
    ).to_table(columns=["user", "window_start", "value", "date"])
    rows = sorted(table.to_pylist(), key=lambda row: str(row["user"]))
    assert [(row["user"], row["date"]) for row in rows] == [
        ("ada", str(date(1970, 1, 1))),
        ("bob", str(date(1970, 1, 2))),
        ("eve", None),
    ]
    assert rows[0]["window_start"] == datetime(1970, 1, 1, 23, tzinfo=UTC)


def test_going_back_removes_what_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    other = opened(out, run="other")
    other.commit(7, write(other, 7, 100))
    first = opened(out)
    for epoch in (1, 2):
        first.commit(epoch, write(first, epoch, epoch))

    opened(out, epoch=1, incarnation=2)

    assert numbers(out) == [1, 100]
    assert "back to epoch 1, so 1 files are removed" in caplog.text


def test_files_of_earlier_runs_stay_or_go(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for run, given, expected in (
        ("a", {}, [1]),
        ("b", {}, [1, 1]),
        ("c", {"overwrite": True}, [1]),
        ("d", {"overwrite": True, "prefix": "mine"}, [1, 1]),
    ):
        writer = opened(out, run=run, **given)
        (out / "p=p1").mkdir(exist_ok=True)
        (out / "p=p1" / "README").write_text("not ours")
        writer.commit(1, write(writer, 1, 1))
        assert numbers(out) == expected

    assert (out / "p=p1" / "README").exists()


def test_what_is_not_prepared_is_removed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gearpy.connectors.partitioned.files._GROUP_ROWS", 1)
    writer = opened(tmp_path / "out")
    prepared = write(writer, 1, 1)
    writer.write_batch(a_batch([2, 3]))

    writer.close(completed=False)

    left = [each.name for each in (tmp_path / "out" / "_pending").iterdir()]
    assert left == [each["pending"] for each in prepared or []]


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="does not exist: make it first"):
        hive_folder(tmp_path / "no" / "out", partition_by="p").open(0, 1)
    with pytest.raises(ConfigError, match="is a file: give a folder"):
        hive_folder(tmp_path / "file", partition_by="p").open(0, 1)
    with pytest.raises(ConfigError, match="partition_by is empty"):
        hive_folder(tmp_path, partition_by=[])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_pending").write_text("")
    with pytest.raises(ConfigError, match="cannot write"):
        opened(tmp_path / "out")
