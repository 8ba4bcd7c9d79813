"""What is stored of an application, told without a cluster."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from gearpy.cluster.checkpoints.changing import (
    Orphan,
    PlannedPlace,
    check_unused,
    find_orphans,
    needed_files,
    plan_places,
    set_places,
)
from gearpy.cluster.checkpoints.reading import (
    StoredEpochs,
    TaskChange,
    TaskContents,
    Unreadable,
    compare,
    find_application,
    open_store,
    plain,
    verify,
)
from gearpy.core.coordinator.views import EpochManifests
from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.task.api.snapshots import decode_state
from tests.cluster.checkpoint_build import (
    COUNT,
    FILES,
    NOON_MS,
    PREFIX,
    a_manifest,
    a_snapshot,
    an_application,
    overrides_of,
)

EPOCH18 = f"{PREFIX}/epochs/region0/epoch18-attempt2-executor0"


@pytest.fixture
def store() -> MemoryCheckpoints:
    made = MemoryCheckpoints()
    an_application(made)
    return made


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere is not there"):
        open_store(str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()

    assert open_store(str(tmp_path)).place == str(tmp_path)
    assert open_store("memory://somewhere").place == "memory:///somewhere"
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be read"):
        open_store(f"file://{tmp_path}/file")


# -- what is in it ---------------------------------------------------------------------------


def test_an_epoch_has_places_and_tasks(store: MemoryCheckpoints) -> None:
    epochs = StoredEpochs(store, PREFIX)

    contents = epochs.contents(epochs.find(18)[0])

    assert contents.offsets == {FILES: {"a.txt": 70, "b=c.txt": ("line", 5)}}
    assert contents.overrides == {}
    assert contents.tasks == [
        TaskContents(task=FILES, operator="files", head_bytes=5, state_bytes=0),
        TaskContents(task=COUNT, operator="count(word)", head_bytes=18, state_bytes=43),
    ]
    assert contents.damage == ""


def test_a_damaged_epoch_is_shown_as_far_as_it_is_known(store: MemoryCheckpoints) -> None:
    store.save(EPOCH18, [b"damaged"])
    epochs = StoredEpochs(store, PREFIX)

    contents = epochs.contents(epochs.find()[0])

    assert EPOCH18 in contents.damage
    assert contents.tasks == []
    assert contents.offsets[FILES]["a.txt"] == 95


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (None, None),
        ({"a": (1, b"\0")}, {"a": [1, {"base64": "AA=="}]}),
        ({1: 2.5}, {"1": 2.5}),
        (Unreadable(b"\1"), {"base64": "AQ=="}),
        (dt.date(2026, 1, 1), "datetime.date(2026, 1, 1)"),
    ],
)
def test_places_are_shown_as_json(place: Any, shown: Any) -> None:
    assert plain(place) == shown


# -- is it whole -----------------------------------------------------------------------------


def test_epochs_are_whole_or_damaged(store: MemoryCheckpoints) -> None:
    assert not any(each.damage for each in verify(StoredEpochs(store, PREFIX)))
    store.save(EPOCH18, [store.load(EPOCH18)[:-1]])
    epochs = StoredEpochs(store, PREFIX)

    found = verify(epochs)

    assert [(each.epoch, len(each.damage)) for each in found] == [(19, 1), (18, 1), (17, 0)]
    assert [each.epoch for each in verify(epochs, 18)] == [18, 17]
    assert [each.epoch for each in verify(epochs, 17)] == [17]
    store.drop(EPOCH18)
    assert EPOCH18 in verify(epochs, 18)[0].damage[0]
    with pytest.raises(ConfigError, match="no epoch 16"):
        verify(epochs, 16)


class Running(MemoryCheckpoints):
    """A store in which an application goes on when somebody looks at a file of its epochs."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[int] = []  #: Epochs that are retired, one by one.

    def open(self, location: str) -> Any:
        if "/epochs/" in location and self.waiting:
            epoch = self.waiting.pop(0)
            log = CoordinatorLog(self, PREFIX, launch=1, source="", wall_ms=lambda: NOON_MS)
            log.append(EpochManifests(log.state).drop_messages(0, epoch))
            self.drop(EPOCH18.replace("18", str(epoch)))
        return super().open(location)


def test_epochs_that_go_while_they_are_read_are_not_damaged() -> None:
    """An application that runs deletes the files of the oldest; nothing is wrong with that."""
    store = Running()
    log = CoordinatorLog(store, PREFIX, launch=1, source="", wall_ms=lambda: NOON_MS)
    for epoch in (17, 18, 19):
        manifest = a_manifest(epoch, [a_snapshot(store, PREFIX, epoch)])
        log.append(EpochManifests(log.state).messages_for(manifest, manifest.offsets))
    store.waiting = [18, 17]

    found = verify(StoredEpochs(store, PREFIX))
    store.waiting = [19]
    with pytest.raises(ConfigError, match="no complete epoch"):
        verify(StoredEpochs(store, PREFIX))

    assert [(each.epoch, each.is_damaged) for each in found] == [(19, False)]


def test_changelog_stands_for_files_that_are_damaged() -> None:
    store = MemoryCheckpoints()
    an_application(store, epochs=(17, 18), has_changelog=True)
    epochs = StoredEpochs(store, PREFIX)
    whole = verify(epochs)

    store.drop(EPOCH18.replace("18", "17"))
    newest, oldest = verify(epochs)
    store.drop(f"{PREFIX}/changelog/partition-1/epoch18")
    lost, _ = verify(epochs)

    assert [(each.files, each.segments, each.is_usable) for each in whole] == [
        (2, 4, True),
        (1, 2, True),
    ]
    assert not any(each.damage or each.is_rebuildable for each in whole)
    assert (len(newest.damage), newest.is_rebuildable, newest.is_usable) == (1, True, True)
    assert (len(oldest.damage), oldest.is_rebuildable, oldest.is_usable) == (1, False, False)
    assert (len(lost.changelog_damage), lost.is_rebuildable, lost.is_usable) == (1, False, False)


def test_segments_that_no_epoch_needs_are_orphans() -> None:
    store = MemoryCheckpoints()
    an_application(store, has_changelog=True)
    orphan = f"{PREFIX}/changelog/partition-1/epoch20"
    store.save(orphan, [b"12345"])

    assert find_orphans(store, PREFIX, needed_files(store)) == [Orphan(orphan, 5)]


# -- what has changed ------------------------------------------------------------------------


def test_epochs_differ_in_places_and_cells(store: MemoryCheckpoints) -> None:
    (found,) = compare(StoredEpochs(store, PREFIX), 17, 19)

    assert [(each.partition, each.old, each.new) for each in found.offsets] == [
        ("a.txt", 40, 95),
        ("b=c.txt", ("line", 3), None),
    ]
    assert found.tasks[1] == TaskChange(
        task=COUNT,
        operator="count(word)",
        head_bytes=(17, 19),
        state_bytes=(9, 10),
        cells=(3, 3),
        added=1,
        changed=2,
        deleted=1,
    )


def test_damaged_epochs_cannot_be_compared(store: MemoryCheckpoints) -> None:
    store.drop(EPOCH18)

    with pytest.raises(SnapshotDamaged, match=EPOCH18):
        compare(StoredEpochs(store, PREFIX), 17, 18)


# -- other places ----------------------------------------------------------------------------


def planned(store: MemoryCheckpoints, **places: Any) -> list[PlannedPlace]:
    names = {"a": "a.txt", "b": "b=c.txt"}
    wanted = {names.get(name, name): place for name, place in places.items()}
    return plan_places(StoredEpochs(store, PREFIX), {"0.0": wanted})


def test_places_count_once_they_are_set(store: MemoryCheckpoints) -> None:
    for places in ({"a": 12}, {"b": ["line", 1]}, {"a": 13}):
        epochs = StoredEpochs(store, PREFIX)
        set_places(epochs, planned(store, **places), segments_max=64, wall_ms=lambda: 0)

    found = overrides_of(store, PREFIX, 19)

    assert {name: decode_state(place) for name, place in found.items()} == {
        "a.txt": 13,
        "b=c.txt": ["line", 1],
    }
    epochs = StoredEpochs(store, PREFIX)
    assert epochs.contents(epochs.find()[0]).overrides == {
        FILES: {"a.txt": 13, "b=c.txt": ["line", 1]}
    }
    assert [each.old for each in planned(store, a=14)] == [13]


def test_places_keep_the_types_that_json_lacks(store: MemoryCheckpoints) -> None:
    """A source that gets a list for its tuple would fail in the middle of its start."""
    an_application(store, "k3f9a1c2/app4", epochs=(17,))
    epochs = StoredEpochs(store, "k3f9a1c2/app4")

    (found,) = plan_places(epochs, {"0.0": {"b=c.txt": ["line", 9]}})

    assert found == PlannedPlace(
        task=FILES,
        operator="files",
        partition="b=c.txt",
        epoch=17,
        old=("line", 3),
        new=("line", 9),
    )


def test_all_mistakes_are_told_together(store: MemoryCheckpoints) -> None:
    epochs = StoredEpochs(store, PREFIX)
    wanted: dict[str, dict[str, Any]] = {
        "0.0": {"a.txt": "x", "c.txt": 1},
        "1.0": {"a.txt": 1},
        "files": {},
    }

    with pytest.raises(ConfigError) as refused:
        plan_places(epochs, wanted)

    assert [*refused.value.mistakes] == [
        (
            "task 0.0, partition a.txt: 'x' cannot take the place of 95 (int): write one of the "
            "same kind"
        ),
        "task 0.0 reads no partition 'c.txt'; it reads: a.txt, b=c.txt",
        "'1.0' is no task that reads a source; there are: 0.0",
        "'files' is no task that reads a source; there are: 0.0",
    ]
    with pytest.raises(ConfigError, match="null is no place"):
        planned(store, a=None)


# -- files -----------------------------------------------------------------------------------


def test_what_no_epoch_needs_is_an_orphan(store: MemoryCheckpoints) -> None:
    store.save(f"{PREFIX}/epochs/region0/epoch20-attempt2-executor0", [b"half an epoch"])

    assert find_orphans(store, PREFIX, needed_files(store)) == [
        Orphan(f"{PREFIX}/epochs/region0/epoch20-attempt2-executor0", 13)
    ]


def test_files_that_another_application_needs_are_no_orphans(store: MemoryCheckpoints) -> None:
    file = a_snapshot(store, "k3f9a1c2/app5", 17)
    other = CoordinatorLog(store, "k3f9a1c2/app6", launch=1, source="", wall_ms=lambda: 0)
    other.append(EpochManifests(other.state).messages_for(a_manifest(17, [file])))
    CoordinatorLog(store, "k3f9a1c2/app5", launch=1, source="", wall_ms=lambda: 0)

    assert find_orphans(store, "k3f9a1c2/app5", needed_files(store)) == []
    with pytest.raises(ConfigError, match="app6 has gone on from k3f9a1c2/app5 and needs 1 files"):
        check_unused(store, "k3f9a1c2/app5")
    check_unused(store, "k3f9a1c2/app6")
    check_unused(store, PREFIX)


def test_without_a_log_nobody_knows_what_is_needed(store: MemoryCheckpoints) -> None:
    """Files are not deleted because something else is missing."""
    store.drop_all(f"{PREFIX}/coordinator")

    with pytest.raises(ConfigError, match="has no coordinator log"):
        find_orphans(store, PREFIX, needed_files(store))


# -- which applications there are -----------------------------------------------------------


def a_store(*names: str) -> MemoryCheckpoints:
    checkpoints = MemoryCheckpoints()
    for each in names:
        checkpoints.save(each, [b""])
    return checkpoints


STORE = a_store(
    "k3f9a1c2/app3/epochs/region0/e1",
    "k3f9a1c2/app3/coordinator/open-1",
    "k3f9a1c2/app30/epochs/e1",
    "0a0a0a0a/app3/epochs/e1",
    "app4/region0/e1",
    "other/thing/app5/x",
    "app6",
)


def test_the_only_one_is_found() -> None:
    assert find_application(STORE, "30") == "k3f9a1c2/app30"
    assert find_application(STORE, "4") == "app4"


def test_one_of_several_is_chosen_by_its_cluster() -> None:
    assert find_application(STORE, "3", cluster="0a0a0a0a") == "0a0a0a0a/app3"
    assert find_application(STORE, "4", cluster="") == "app4"
    with pytest.raises(ConfigError, match="clusters, 0a0a0a0a, k3f9a1c2: choose one with --cluste"):
        find_application(STORE, "3")


def test_what_is_not_there_is_told_with_what_is() -> None:
    with pytest.raises(ConfigError, match=r"of application 7 in the .* only of: 0a0a0a0a/a"):
        find_application(STORE, "7")
    with pytest.raises(ConfigError, match="of application 3 of cluster 'x' in the"):
        find_application(STORE, "3", cluster="x")
    with pytest.raises(ConfigError, match="only of: none; what succeeded is deleted after"):
        find_application(a_store(), "7")


def test_many_others_are_counted() -> None:
    store = a_store(*(f"k/app{each}/x" for each in range(15)))

    with pytest.raises(ConfigError, match="k/app8, k/app9 and 5 more;"):
        find_application(store, "99")


def test_a_cluster_without_a_name_is_told_as_such() -> None:
    with pytest.raises(ConfigError, match="several clusters, '', k:"):
        find_application(a_store("app3/x", "k/app3/x"), "3")
