"""State in a file."""

from itertools import count
from pathlib import Path

import pytest

from gearpy.errors import ConfigError
from gearpy.state.encoding.keys import encode_key
from gearpy.state.stores.delta import Reads
from gearpy.state.stores.disk import DiskStore, folder_of
from gearpy.state.stores.disk_cells import DiskCells
from tests.state.build import MAX_BYTES, a_table, stored

TABLE = a_table()
MAPS = a_table(kind="map")
MIB = 1 << 20


def a_disk_store(folder: Path, max_bytes: int = MAX_BYTES) -> DiskStore:
    return DiskStore(folder / "task", max_bytes, slice_writes=2)


def test_what_is_stored_moves_to_the_file(tmp_path: Path) -> None:
    store = a_disk_store(tmp_path)
    for number in range(100):
        store.put(TABLE, encode_key(number), b"1")
        store.put_entry(MAPS, encode_key("k"), encode_key(number), b"1")
    stored(store.snapshot())

    writes = count(1)
    while store._deltas:  # noqa: SLF001 -- what is in memory is not to be seen outside
        store.put(TABLE, encode_key("again"), b"%d" % next(writes))
        assert all(store.get(TABLE, encode_key(number)) == b"1" for number in range(100))
        assert len(store.entries(MAPS, encode_key("k"))) == 100

    assert next(writes) <= 110
    assert (tmp_path / "task" / "data.mdb").stat().st_size > 0
    store.close()


def test_what_an_earlier_process_has_left_is_deleted(tmp_path: Path) -> None:
    before = a_disk_store(tmp_path)
    for number in range(10):
        before.put(TABLE, encode_key(number), b"old")
    stored(before.snapshot())
    before.snapshot()
    assert (tmp_path / "task" / "data.mdb").exists()

    after = a_disk_store(tmp_path)
    after.time_queue("opens").add(1, b"cell")

    assert after.get(TABLE, encode_key(1)) is None
    assert before.get(TABLE, encode_key(1)) == b"old", "one that still lives is not disturbed"
    before.close()
    after.close()


def test_a_file_that_becomes_too_large_is_an_error_from_then_on(tmp_path: Path) -> None:
    store = a_disk_store(tmp_path, MIB)

    def fill() -> None:
        for number in range(100):
            store.put(TABLE, encode_key(number), bytes(100_000))
            stored(store.snapshot())

    with pytest.raises(ConfigError, match=r"outgrown 1048576 bytes in .* state\.disk-max-bytes"):
        fill()

    with pytest.raises(ConfigError, match="has outgrown"):
        store.snapshot()
    with pytest.raises(ConfigError, match="has outgrown"):
        store.get(TABLE, b"whatever is in the file")
    with pytest.raises(ConfigError, match="has outgrown"):
        store.entries(MAPS, b"")
    with pytest.raises(ConfigError, match="has outgrown"):
        list(store.keys(TABLE))
    with pytest.raises(ConfigError, match="has outgrown"):
        store.time_queue("some").add(1, b"cell")
    store.close()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "task").write_text("a file", encoding="utf-8")
    cells = DiskCells(tmp_path / "task" / "below", MAX_BYTES, Reads())

    with pytest.raises(OSError, match="task") as raised:
        cells.put_all([(b"\x01cell", b"")])
    assert raised.value.__cause__ is None
    with pytest.raises(OSError, match="task"):
        cells.get(b"\x01cell")


def test_a_database_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    cells = DiskCells(tmp_path / "task", 1 << 62, Reads())

    with pytest.raises(OSError, match=r"state in .*task cannot be written"):
        cells.put_all([(b"\x01cell", b"")])


def test_a_task_has_a_folder_below_that_of_all() -> None:
    assert folder_of("/state", "cluster/app3/2.0") == Path("/state/cluster/app3/2.0")
    assert folder_of("~/state", "a") == Path.home() / "state" / "a"


@pytest.mark.parametrize("name", ["", "/etc", "../a", "a/../../b"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="it must lead into its folder"):
        folder_of("/state", name)
