"""A window log in a real store: written, read, compacted and purged."""

import pytest

from gearpy.storage.folder.api import Folder
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import WindowLog
from tests.storage.folder_build import REAL, real_folder
from tests.windowlog.log_build import a_log_of, keys_in

LANE = "windows-00000"


@pytest.fixture(params=REAL)
def store(request: pytest.FixtureRequest) -> Folder:
    return real_folder(request.param, request)


def test_batches_come_back_in_order(store: Folder) -> None:
    log = a_log_of(store, [[1], [2], [3]])
    before = keys_in(WindowLog(store))
    compact_all(WindowLog(store))

    assert (before, keys_in(WindowLog(store))) == ([1, 2, 3], [1, 2, 3])
    assert log.view().holes == []


def test_what_was_purged_is_gone(store: Folder) -> None:
    log = a_log_of(store, [[1], [2], [3]])
    log.purge({LANE: 2})

    assert WindowLog(store).view().ends() == {LANE: 3}
    assert keys_in(WindowLog(store)) == [3]
