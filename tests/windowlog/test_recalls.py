"""What was shown behind a checkpoint is known, also when it is purged before it has come again."""

from typing import Any

import pytest

from gearpy.storage.folder.memory import MemoryFolder
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import WindowLog
from gearpy.windowlog.replays import Replays, recalled
from tests.windowlog.log_build import SCHEMA, a_log_of, rows_of

LANE = "windows-00000"
FILE = f"_owners/{LANE}.again.json"


def left_of(log: WindowLog, since: int, *keys: int) -> list[int]:
    replays = Replays(SCHEMA.identity)
    for rows in recalled(log, log.view(), LANE, since=since, identity=SCHEMA.identity):
        replays.restore(rows)
    found: list[int] = replays.without(rows_of(*keys))["key"].to_pylist()
    return found


def a_log_to_go_back_in() -> WindowLog:
    return a_log_of(MemoryFolder(), [[1], [2], [3], [4]])


def test_what_is_purged_later_is_still_known() -> None:
    """Once somebody has gone back behind it; to the same place, or to one that is newer."""
    log = a_log_to_go_back_in()
    left_of(log, 2)
    log.purge({LANE: 3})

    assert left_of(log, 2, 1, 2, 3, 4) == [1]
    assert left_of(log, 3, 1, 2, 3, 4) == [1, 2]


def test_what_is_compacted_and_purged_is_known_once() -> None:
    log = a_log_to_go_back_in()
    left_of(log, 2)
    compact_all(log, rows_max=2)
    assert left_of(log, 2, 2, 3, 4, 2) == []  # The one too many waits until it is settled.
    log.purge({LANE: 2})

    replays = Replays(SCHEMA.identity)
    for rows in recalled(log, log.view(), LANE, since=2, identity=SCHEMA.identity):
        replays.restore(rows)
    assert len(replays) == 3


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'{"batches": 5}', b'{"batches": [[1]]}', b'{"batches": [[1, 1, 5]]}'],
)
def test_a_damaged_note_is_none(text: Any) -> None:
    log = a_log_to_go_back_in()
    log.store.put(FILE, text)

    assert left_of(log, 2, 1, 2, 3, 4) == [1]
    assert log.store.read(FILE) not in {None, text}
