"""What is written down of batches: found again, never changed, and by one writer only."""

from pathlib import Path

import pytest

from gearpy.core.handover.handoff import HandoffBatch
from gearpy.core.handover.window_log import HANDOVERS
from gearpy.errors import GearpyError
from gearpy.spark.delivery.log import BatchLog
from gearpy.storage.folder.api import Folder
from gearpy.storage.folder.at import folder_at
from gearpy.storage.folder.local import LocalFolder


def a_batch(batch_id: int, *, rows: int = 5) -> HandoffBatch:
    before = {"windows-00000": batch_id - 1} if batch_id > 1 else {}
    return HandoffBatch(batch_id=batch_id, start=before, end={"windows-00000": batch_id}, rows=rows)


@pytest.fixture(params=["disk", "url"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    place = tmp_path / "log" if request.param == "disk" else f"memory://{tmp_path.name}/log"
    made = folder_at(place, key="window log")
    made.make(HANDOVERS)
    return made


def a_log(store: Folder, name: str = "spark") -> BatchLog:
    log = BatchLog(store, name)
    log.claim()
    return log


def test_nothing_is_written_down_at_first(store: Folder) -> None:
    assert a_log(store).read() == (None, None)


def test_what_was_written_is_found_by_the_next_start(store: Folder) -> None:
    log = a_log(store)
    for number in range(1, 12):
        log.write_intent(a_batch(number))
        log.write_done(a_batch(number))
    log.write_intent(a_batch(12))

    assert a_log(store).read() == (a_batch(11), a_batch(12))


def test_old_batches_are_forgotten(store: Folder) -> None:
    log = a_log(store)
    for number in range(1, 50):
        log.write_intent(a_batch(number))
        log.write_done(a_batch(number))

    assert sorted(store.names(HANDOVERS)) == [
        "spark.000000000049.done",
        "spark.000000000049.intent",
        "spark.owner",
    ]


def test_sinks_of_one_log_do_not_see_each_other(store: Folder) -> None:
    log, other = a_log(store), a_log(store, "spark-2")
    log.write_intent(a_batch(1))
    other.write_intent(a_batch(7))

    assert (log.read(), other.read()) == ((None, a_batch(1)), (None, a_batch(7)))


def test_an_intent_that_was_cut_short_counts_as_none(store: Folder) -> None:
    log = a_log(store)
    store.put(f"{HANDOVERS}spark.000000000001.intent", b'{"batch_id": 1, "sta')

    found = log.read()
    log.write_intent(a_batch(1))

    assert found == (None, None)
    assert log.read() == (None, a_batch(1))


def test_an_intent_never_changes(store: Folder) -> None:
    log = a_log(store)
    log.write_intent(a_batch(1))
    log.write_intent(a_batch(1))

    with pytest.raises(GearpyError, match="another start of sink 'spark'"):
        log.write_intent(a_batch(1, rows=9))


def test_who_was_given_up_writes_nothing_more(store: Folder) -> None:
    log = a_log(store)
    a_log(store)

    with pytest.raises(GearpyError, match="this one was given up"):
        log.write_intent(a_batch(1))
    with pytest.raises(GearpyError, match="this one was given up"):
        log.write_done(a_batch(1))


def test_damaged_owner_counts_as_another_one(store: Folder) -> None:
    log = a_log(store)
    store.put(f"{HANDOVERS}spark.owner", b"{")

    with pytest.raises(GearpyError, match="this one was given up"):
        log.write_intent(a_batch(1))


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"batch_id": 2, "start": {}, "end": {}, "rows": 1}']
)
def test_damaged_end_of_a_batch_is_refused(store: Folder, text: bytes) -> None:
    """Else batches would be numbered from the beginning again."""
    log = a_log(store)
    store.put(f"{HANDOVERS}spark.000000000003.done", text)

    with pytest.raises(GearpyError, match="is damaged: nobody knows which batch is next"):
        log.read()


def test_folder_is_made_in_logs_of_others(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()

    a_log(LocalFolder(tmp_path / "log"))

    assert (tmp_path / "log" / "_spark").is_dir()


def test_an_intent_that_another_writes_meanwhile_is_not_replaced(store: Folder) -> None:
    log = a_log(store)
    log.write_intent(a_batch(1))

    with pytest.raises(GearpyError, match="another start of sink 'spark'"):
        log.write_intent(a_batch(1, rows=9))

    assert log.read() == (None, a_batch(1))


def test_where_the_first_batch_begins_is_settled_once(store: Folder) -> None:
    first = a_log(store).begin({"windows-00000": 3})
    again = a_log(store).begin({"windows-00000": 8})

    assert first == again == {"windows-00000": 3}


@pytest.mark.parametrize("text", [b"", b"[]", b'{"start": 3}'])
def test_damaged_begin_is_refused(store: Folder, text: bytes) -> None:
    """Else rows would be left out and nobody knew."""
    store.put(f"{HANDOVERS}spark.begin", text)

    with pytest.raises(GearpyError, match="begin is damaged: remove it"):
        a_log(store).begin({})


def test_what_is_written_of_another_log_is_refused(store: Folder) -> None:
    log = BatchLog(store, "spark", log_id=lambda: "old")
    log.claim()
    log.begin({})
    log.write_intent(a_batch(1))
    log.write_done(a_batch(1))
    anew = BatchLog(store, "spark", log_id=lambda: "new")

    with pytest.raises(GearpyError, match="is about another log"):
        anew.read()
    with pytest.raises(GearpyError, match="is about another log"):
        anew.begin({})
