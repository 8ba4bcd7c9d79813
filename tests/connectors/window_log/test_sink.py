"""The sink of a window log: what it takes, what it keeps to, and what it recognises."""

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.columns.log_columns import GATHERED_ROWS_MAX
from gearpy.connectors.window_log import sink as window_log_sink
from gearpy.connectors.window_log.sink import LogOptions, WindowLogWriter, window_log_folder
from gearpy.errors import ConfigError, GearpyError, OperatorError
from gearpy.messages.data import Batch
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.task.api.window_result import WindowResult
from gearpy.windowlog.log import SCHEMA_FILE, WindowLog

LANE = "windows-00000"


def a_writer(store: Any, *, task: int = 0, **options: Any) -> WindowLogWriter:
    return WindowLogWriter(LogOptions(place="memory", **options), WindowLog(store), task=task)


def started(
    store: Any,
    state: Any = None,
    *,
    epoch: int = 0,
    run: str = "r",
    incarnation: int = 1,
    **more: Any,
) -> WindowLogWriter:
    writer = a_writer(store, **more)
    writer.restore(state)
    writer.recover({}, epoch=epoch, run=run, incarnation=incarnation)
    return writer


def write(writer: WindowLogWriter, *values: Any) -> None:
    writer.write_batch(Batch(list(values), [7] * len(values)))


def results(*keys: int, value: Any = 1) -> list[Any]:
    return [WindowResult(key, value, key * 10, key * 10 + 10) for key in keys]


def commit(writer: WindowLogWriter, epoch: int, *values: Any) -> Any:
    """Write an epoch and show it; return the state of the writer at its end."""
    write(writer, *values)
    prepared = writer.prepare(epoch)
    state = writer.snapshot()
    writer.commit(epoch, prepared)
    return state


def keys_in(store: Any) -> list[int]:
    log = WindowLog(store)
    keys: list[int] = log.read_between({}, log.view().ends())["key"].to_pylist()
    return keys


# -- what it is given ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"body": "csv"}, "body is 'csv', must be one of parquet, arrow, auto"),
        ({"compression": "zip"}, "compression is 'zip', must be one of lz4"),
        ({"writer": "a-b"}, "writer 'a-b' cannot begin names of files"),
        ({"compact_files": 1}, "compact_files is 1, must be 2 or more"),
        ({"retain": "0s"}, "retain is 0 ms: nothing would be kept"),
        ({"key": ("a", "a")}, "give each part another name"),
        ({"schema": 5}, "schema is 5, need a pyarrow.Schema"),
        ({"schema": pa.schema({"a": pa.uint64()})}, "map it to int64"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(options: Any, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        window_log_folder("x", **options)


def test_all_mistakes_are_told_together() -> None:
    with pytest.raises(ConfigError) as caught:
        window_log_folder("x", body="csv", writer="")  # type: ignore[arg-type]
    assert len(caught.value.mistakes) == 2


def test_the_folder_above_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist: make it first"):
        window_log_folder(tmp_path / "x" / "y").open(0, 1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file: give a folder"):
        window_log_folder(tmp_path / "file").open(0, 1)


def test_a_folder_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "_pending").write_text("")
    writer = window_log_folder(tmp_path / "log").open(0, 1)
    assert isinstance(writer, WindowLogWriter)

    with pytest.raises(ConfigError, match=f"cannot write {tmp_path}/log: "):
        writer.recover({}, epoch=0, run="r", incarnation=1)


# -- columns ---------------------------------------------------------------------------------


def test_the_first_records_give_the_columns() -> None:
    store = MemoryFolder()
    commit(started(store), 1, *results(1, value={"n": 1}))
    commit(started(store, task=1), 1, *results(2, value={}))

    log = WindowLog(store)
    assert log.schema.arrow.names[2:4] == ["key", "n"]
    assert log.schema.identity == ("window_start", "window_end", "key", "firing", "retracts")
    table = log.read_between({}, log.view().ends())
    assert table.select(["key", "n"]).to_pylist() == [{"key": 1, "n": 1}, {"key": 2, "n": None}]


def test_of_two_tasks_the_first_gives_the_columns() -> None:
    store = MemoryFolder()
    first, second = started(store), started(store, task=1)
    commit(first, 1, *results(1, value=1.5))
    commit(second, 1, *results(2, value=1))

    assert WindowLog(store).schema.arrow.field("value").type == pa.float64()
    assert keys_in(store) == [1, 2]


@pytest.mark.parametrize(
    ("given", "difference"),
    [
        ({"other": pa.int64()}, "there is no column 'other'"),
        ({"value": pa.string()}, "column 'value' is int64, not string"),
    ],
)
def test_another_schema_than_that_of_the_log_is_refused(given: Any, difference: str) -> None:
    store = MemoryFolder()
    commit(started(store), 1, *results(1))

    with pytest.raises(ConfigError, match=difference):
        started(store, incarnation=2, schema=pa.schema(given))
    started(store, incarnation=3, schema=pa.schema({"value": pa.int64()}))


@pytest.mark.parametrize(
    ("record", "difference"),
    [
        ({"a": 1}, "field 'a' is not in the schema"),
        (WindowResult(1, {"n": 1}, 0, 1), "column 'value' is int64"),
        (WindowResult("x", 1, 0, 1), "column 'key' is int64"),
    ],
)
def test_records_that_are_nothing_like_the_log_are_a_mistake(record: Any, difference: str) -> None:
    """It is the wrong folder; no policy for bad records may swallow all of them."""
    store = MemoryFolder()
    commit(started(store), 1, *results(1))

    with pytest.raises(ConfigError, match=difference):
        write(started(store, incarnation=2), record)


def test_a_record_that_does_not_fit_is_refused_alone() -> None:
    """Nothing of its batch was taken; the others are tried one by one."""
    store = MemoryFolder()
    writer = started(store)
    commit(writer, 1, *results(1))

    with pytest.raises(OperatorError, match="column 'key' is int64"):
        write(writer, *results(2), WindowResult("x", 1, 0, 1))
    commit(writer, 2, *results(3))

    assert writer.atomic
    assert keys_in(store) == [1, 3]


@pytest.mark.parametrize("first", ["x", 2])
def test_a_bad_record_behind_a_restart_is_refused_alone(first: Any) -> None:
    """Whether it is the first of its batch or not; the others are like the log."""
    store = MemoryFolder()
    state = commit(started(store), 1, *results(1))
    writer = started(store, state, epoch=1, incarnation=2)
    last = 2 if first == "x" else "x"

    with pytest.raises(OperatorError, match="column 'key' is int64") as caught:
        write(writer, *results(), WindowResult(first, 1, 0, 1), WindowResult(last, 1, 0, 1))
    assert "'x'" in caught.value.record
    with pytest.raises(OperatorError, match="column 'key' is int64"):
        write(writer, WindowResult("y", 1, 0, 1))
    commit(writer, 2, *results(2))

    assert keys_in(store) == [1, 2]


def test_of_first_records_those_that_fit_together_are_written_one_by_one() -> None:
    store = MemoryFolder()
    writer = started(store)
    bad, *good = ({"key": 1, "value": value} for value in ("x", 1, 2.5))

    with pytest.raises(OperatorError) as caught:
        write(writer, *good, bad)
    for record in good:
        write(writer, record)
    commit(writer, 1)

    assert caught.value.record == repr(bad)
    log = WindowLog(store)
    assert log.read_range(LANE, 1, 1)["value"].to_pylist() == [1, 2.5]


def test_windows_of_streams_that_were_merged_come_again_in_another_order() -> None:
    """Both have the same window, key and firing: that which was shown is left out."""
    store = MemoryFolder()
    begun = started(store).snapshot()
    commit(started(store, incarnation=2), 1, *results(1, value="a"))
    again = started(store, begun, incarnation=3)
    write(again, *results(1, value="b"))
    commit(again, 1, *results(1, value="a"))

    assert keys_in(store) == [1, 1]
    table = WindowLog(store).read_range(LANE, 1, 2)
    assert table["value"].to_pylist() == ["a", "b"]


def test_a_record_among_few_is_refused_at_once_and_alone() -> None:
    store = MemoryFolder()
    writer = started(store)
    commit(writer, 1, *results(1))
    write(writer, *results(2))

    with pytest.raises(OperatorError, match=r"1\.5 is no whole number") as caught:
        write(writer, *results(3), *results(4, value=1.5))
    assert "key=4" in str(caught.value.record)
    write(writer, *results(5))
    write(writer, *results(*range(6, 200)))
    commit(writer, 2, *results(200))

    assert keys_in(store) == [1, 2, 5, *range(6, 201)]


def test_a_value_that_its_owner_changes_later_is_written_as_it_was() -> None:
    store = MemoryFolder()
    writer = started(store)
    value: dict[str, Any] = {"n": 1, "pages": ["a"]}
    plain: dict[str, Any] = {"n": 1}

    write(writer, WindowResult("a", value, 0, 10), WindowResult("b", value, 0, 10))
    write(writer, WindowResult("c", value, 0, 10))
    write(writer, WindowResult("d", plain, 0, 10))
    value["n"] = plain["n"] = 2
    value["pages"].append("b")
    commit(writer, 1, WindowResult("e", plain, 0, 10))

    log = WindowLog(store)
    table = log.read_between({}, log.view().ends())
    assert table["n"].to_pylist() == [1, 1, 1, 1, 2]
    assert table["pages"].to_pylist() == [["a"], ["a"], ["a"], None, None]


def test_many_small_batches_do_not_wait_for_the_end_of_the_epoch() -> None:
    store = MemoryFolder()
    writer = started(store)
    write(writer, *results(0))
    end = GATHERED_ROWS_MAX + 8
    for key in range(1, end, 8):
        write(writer, *results(*range(key, key + 8)))

    assert writer._columns.gathered_rows == 8  # noqa: SLF001 - nobody else can see it

    commit(writer, 1)
    assert keys_in(store) == list(range(end + 1))


def test_no_records_are_no_file() -> None:
    store = MemoryFolder()
    writer = started(store)
    write(writer)

    assert writer.prepare(1) is None
    writer.commit(1, None)
    assert store.read(SCHEMA_FILE) is None


# -- going back ------------------------------------------------------------------------------


def test_windows_that_come_again_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryFolder()
    writer = started(store)
    state = commit(writer, 1, *results(1))
    commit(writer, 2, *results(2, 3))

    with caplog.at_level(logging.WARNING):
        again = started(store, state, epoch=1, incarnation=2)
    commit(again, 2, *results(3, 2, 4, value=99))

    assert keys_in(store) == [1, 2, 3, 4]
    assert "lane windows-00000, so 2 rows that were committed" in caplog.text


def test_a_run_that_goes_on_from_another_one_recognises_its_windows() -> None:
    """That one had gone on behind the checkpoint; also before there was a log at all."""
    store = MemoryFolder()
    old = started(store, run="old")
    old.prepare(1)
    empty = old.snapshot()
    commit(old, 2, *results(1, 2))

    commit(started(store, empty, epoch=1, run="new"), 2, *results(1, 2, 3))

    assert keys_in(store) == [1, 2, 3]


def test_a_lane_with_windows_that_come_again_does_not_end() -> None:
    """They come to other tasks now; one without them may."""
    store = MemoryFolder()
    writer = started(store)
    state = commit(writer, 1, *results(1))
    started(store, state, epoch=1, incarnation=2).leave()
    commit(writer := started(store, state, epoch=1, incarnation=3), 2, *results(2, 3))
    writer.close(completed=False)

    with pytest.raises(GearpyError, match=r"2 rows of lane windows-00000 .* keep the parallelism"):
        started(store, state, epoch=1, incarnation=4).leave()


def test_what_is_still_to_come_again_survives_another_restart() -> None:
    """It is in the checkpoint: by then the numbers of batches have gone on."""
    store = MemoryFolder()
    writer = started(store)
    first = commit(writer, 1, *results(1))
    commit(writer, 2, *results(2, 3))
    second = commit(started(store, first, epoch=1, incarnation=2), 2, *results(2, 4))

    commit(started(store, second, epoch=2, incarnation=3), 3, *results(3, 5))

    assert keys_in(store) == [1, 2, 3, 4, 5]
    assert started(store, incarnation=4, epoch=3).snapshot()["lane"] == first["lane"]


def test_records_without_windows_are_recognised_as_a_whole() -> None:
    store = MemoryFolder()
    writer = started(store)
    state = commit(writer, 1, {"key": 1})
    commit(writer, 2, {"key": 2}, {"key": 2})

    commit(started(store, state, epoch=1, incarnation=2), 2, {"key": 2}, {"key": 2}, {"key": 2})

    assert keys_in(store) == [1, 2, 2, 2]


def test_what_was_purged_is_not_expected_again() -> None:
    store = MemoryFolder()
    writer = started(store)
    state = commit(writer, 1, *results(1))
    for epoch in (2, 3):
        commit(writer, epoch, *results(epoch))
    WindowLog(store).purge({LANE: 2})

    commit(started(store, state, epoch=1, incarnation=2), 2, *results(2, 3))

    log = WindowLog(store)
    assert log.read_range(LANE, 3, 4)["key"].to_pylist() == [3, 2]


def test_what_is_purged_while_it_comes_again_is_expected_after_another_restart() -> None:
    store = MemoryFolder()
    writer = started(store)
    begun = commit(writer, 1, *results(1))
    for epoch in (2, 3):
        commit(writer, epoch, *results(epoch))
    started(store, begun, epoch=1, incarnation=2)
    WindowLog(store).purge({LANE: 2})
    again = started(store, begun, epoch=1, incarnation=3)
    assert again.snapshot()["next"] == 4

    commit(started(store, begun, epoch=1, incarnation=4), 2, *results(3, 2, 4))

    log = WindowLog(store)
    assert log.read_range(LANE, 3, 4)["key"].to_pylist() == [3, 4]
    for at, text in enumerate([b"{", b"[]", b'{"batches": [[1]]}', b'{"batches": 5}']):
        store.put(f"_owners/{LANE}.again.json", text)
        assert started(store, begun, epoch=1, incarnation=5 + at).snapshot()["again"] is not None


# -- files -----------------------------------------------------------------------------------


def test_tiny_files_that_come_fast_are_arrow() -> None:
    now_s = 0.0
    store = MemoryFolder()
    options = LogOptions(place="memory", body="auto")
    writer = WindowLogWriter(options, WindowLog(store), task=0, clock_s=lambda: now_s)
    writer.recover({}, epoch=0, run="r", incarnation=1)
    for epoch, (at_s, rows) in enumerate([(0.0, 1), (0.5, 1), (5.0, 1), (5.1, 5000)], start=1):
        now_s = at_s
        commit(writer, epoch, *results(*range(epoch * 10_000, epoch * 10_000 + rows)))

    bodies = [each.name.rpartition(".")[2] for each in sorted(WindowLog(store).segments())]
    assert bodies == ["parquet", "arrow", "parquet", "parquet"]


def test_small_files_become_one_now_and_then() -> None:
    store = MemoryFolder()
    writer = started(store, compact_files=3)
    for epoch in range(1, 8):
        commit(writer, epoch, *results(epoch))

    spans = [(each.first, each.last) for each in sorted(WindowLog(store).segments())]
    assert spans == [(1, 6), (7, 7)]
    assert keys_in(store) == list(range(1, 8))


def test_old_files_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_log_sink, "_EXPIRE_EVERY_S", 0.0)
    store = MemoryFolder(now_ms=1)
    writer = started(store, retain_ms=60_000)
    for epoch in (1, 2, 3):
        commit(writer, epoch, *results(epoch))

    assert WindowLog(store).view().begins() == {LANE: 3}
