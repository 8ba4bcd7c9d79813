"""The reading half of a log."""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from gearpy.errors import ConfigError, WindowLogDamaged, WindowLogGap
from gearpy.storage.folder.memory import MemoryFolder
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import SCHEMA_FILE, ReaderReport, WindowLog, positions_of
from tests.windowlog.log_build import ARROW, SCHEMA, a_lane, a_log, a_log_of, keys_in, shown

LANE = "windows-00000"


def test_a_folder_that_is_no_log_says_so(tmp_path: Path) -> None:
    log = WindowLog(tmp_path / "x")

    assert not log.exists
    assert log.view().lanes == ()
    with pytest.raises(ConfigError, match="is no window log: no writer has begun it"):
        _ = log.schema


def test_a_log_that_is_begun_later_is_seen(tmp_path: Path) -> None:
    log = WindowLog(tmp_path)
    before = log.exists

    a_log(tmp_path)

    assert (before, log.exists, log.schema) == (False, True, SCHEMA)


@pytest.mark.parametrize("body", ["parquet", "arrow"])
def test_rows_are_read_as_they_were_written(tmp_path: Path, body: str) -> None:
    log = a_log(tmp_path)
    lane = a_lane(log)
    shown(lane, 1, 1, 2, body=body)  # type: ignore[arg-type]
    (piece,) = log.view().between({}, {LANE: 1})

    table = log.read(piece)

    assert table.schema.equals(ARROW, check_metadata=True)
    assert table["key"].to_pylist() == [1, 2]
    assert Path(log.path_of(piece.segment)).is_file()


def test_a_url_is_read_like_a_folder() -> None:
    log = a_log_of("memory://read-like-a-folder/log", [[1], [2, 3]])

    assert keys_in(WindowLog("memory://read-like-a-folder/log")) == [1, 2, 3]
    assert log.path_of(log.segments()[0]).startswith("memory://")


def test_a_file_that_was_compacted_meanwhile_is_found_again() -> None:
    log = a_log_of(MemoryFolder(), [[1], [2], [3]])
    pieces = log.view().between({}, {LANE: 3})
    compact_all(WindowLog(log.store))

    assert [log.read(piece)["key"].to_pylist() for piece in pieces] == [[1], [2], [3]]


def test_a_file_that_was_purged_meanwhile_is_a_gap() -> None:
    log = a_log_of(MemoryFolder(), [[1], [2], [3]])
    (piece, *_) = log.view().between({}, {LANE: 3})
    WindowLog(log.store).purge({LANE: 2})

    with pytest.raises(WindowLogGap, match="no batch 1 any more, the next one kept is"):
        log.read(piece)


def test_a_listing_that_misses_files_is_made_again() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1], [2], [3]])
    everything = store.names()
    listings = iter([[name for name in everything if "-000000000002-" not in name]])

    def names(folder: str = "") -> list[str]:
        return [] if folder else next(listings, everything)

    store.names = names  # type: ignore[method-assign]

    assert WindowLog(store).view().ends() == {LANE: 3}
    assert log.view().holes == []


def test_a_file_that_was_removed_by_hand_is_a_hole() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1], [2], [3]])
    store.remove(log.segments()[1].name)

    assert WindowLog(store).view().holes == [(LANE, 2, 2)]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"nonsense" * 100])
@pytest.mark.parametrize("body", ["parquet", "arrow"])
def test_a_damaged_file_is_named(data: bytes, body: str) -> None:
    store = MemoryFolder()
    log = a_log(store)
    shown(a_lane(log), 1, 1, body=body)  # type: ignore[arg-type]
    (segment,) = log.segments()
    store.files[segment.name].data = data

    with pytest.raises(WindowLogDamaged, match=segment.name):
        log.read_range(LANE, 1, 1)
    with pytest.raises(WindowLogDamaged, match=segment.name):
        log.info(segment)


def test_a_file_that_is_not_what_its_name_says_is_damaged() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1], [2, 3]])
    first, second = sorted(log.segments())
    (store.files[first.name], store.files[second.name]) = (
        store.files[second.name],
        store.files[first.name],
    )

    with pytest.raises(WindowLogDamaged, match="it notes batches"):
        log.read_range(LANE, 1, 1)


def test_a_file_with_other_columns_is_damaged() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1]])
    text = store.files[SCHEMA_FILE].data
    assert text
    log.schema.arrow.field(0)
    log._schema = SCHEMA._replace(arrow=pa.schema({"x": pa.int8()}))  # noqa: SLF001

    with pytest.raises(WindowLogDamaged, match=r"its columns are not those of _schema\.json"):
        log.read_range(LANE, 1, 1)


def test_a_file_that_is_gone_notes_nothing() -> None:
    store = MemoryFolder()
    log = a_log_of(store, [[1]])
    (segment,) = log.segments()
    store.remove(segment.name)

    with pytest.raises(WindowLogDamaged, match="it is not there any more"):
        log.info(segment)


def test_readers_say_how_far_they_are(tmp_path: Path) -> None:
    """The last report of each counts; what else they say is kept."""
    log = a_log(tmp_path)
    early = ReaderReport(name="a", lanes={LANE: 1}, at_ms=1)
    late = ReaderReport(
        name="a", lanes={LANE: 2}, at_ms=2, rows_per_s=5.5, batch_id=7, more={"query": "q"}
    )
    other = ReaderReport(name="b.2", lanes={LANE: 1, "x-00000": 3}, at_ms=3)
    for report in (early, late, other):
        log.report(report)
    (tmp_path / "_readers" / "broken.json").write_text("{")

    assert log.readers() == [late, other]
    assert positions_of(log.readers()) == {LANE: 1, "x-00000": 0}


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".a", "a" * 101])
def test_a_reader_has_a_name_for_a_file(name: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        a_log(MemoryFolder()).report(ReaderReport(name=name, lanes={}, at_ms=1))
