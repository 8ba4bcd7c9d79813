"""Savepoints in a store: listed, found, dropped, and gone on from."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cluster.checkpoints.changing import check_unused
from gearpy.cluster.checkpoints.resuming import resume_point, shown_since
from gearpy.cluster.checkpoints.stored_savepoints import (
    drop_savepoint,
    find_savepoint,
    stored_savepoints,
)
from gearpy.config.load import from_overrides
from gearpy.core.coordinator.savepoints import Savepoint
from gearpy.core.coordinator.views import ApplicationView, DagVersion, EpochManifests
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError, SnapshotDamaged
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.storage.checkpoints import FolderCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.storage.savepoints import save_savepoint
from tests.cluster.resume_build import a_store

HERE = "k3f9a1c2"
SHOP, OTHER = f"{HERE}/app3", f"{HERE}/app4"


def named(store: FolderCheckpoints, prefix: str, name: str, epoch: int, *, app: str = "") -> None:
    """Give an epoch a name; it has a file, which the log of the application does not name."""
    log = CoordinatorLog(store, prefix, launch=2, source="app master", wall_ms=lambda: epoch)
    log.append(ApplicationView(log.state).write(app))
    stored = store.save(f"{prefix}/epochs/region0/epoch{epoch}", [b"state"])
    save_savepoint(
        store,
        prefix,
        Savepoint(
            name=name,
            application=app,
            graph=DagVersion(0, "", (), {}),
            manifests=(a_manifest(epoch, stored.location),),
            stored_ms=epoch,
        ),
    )


def a_manifest(epoch: int, *files: str) -> Manifest:
    snapshots = tuple(
        SnapshotFile(location=each, sha256="", tasks=(TaskId(0, 0),)) for each in files
    )
    return Manifest(region=0, epoch=epoch, attempt=1, clock_ms=0, snapshots=snapshots)


@pytest.fixture
def store(tmp_path: Path) -> FolderCheckpoints:
    """Return a store with two applications, one with a savepoint of its newest epoch."""
    made = a_store(tmp_path, SHOP, OTHER)
    named(made, SHOP, "before", 7, app="shop")
    return made


def resume(text: str, folder: Path) -> str:
    config = from_overrides({"checkpoint.folder": str(folder)})
    return resume_point(text, config=config, cluster_id=HERE)


def test_what_was_shown_behind_a_savepoint_is_told(
    store: FolderCheckpoints, tmp_path: Path
) -> None:
    named(store, OTHER, "early", 6)
    config = from_overrides({"checkpoint.folder": str(tmp_path)})

    assert "from this epoch 6 to epoch 7" in shown_since(f"{OTHER}@early", config=config)
    assert not shown_since(f"{SHOP}@before", config=config)
    assert not shown_since(f"{SHOP}@", config=config)


def test_savepoints_are_listed_with_whose_they_are(store: FolderCheckpoints) -> None:
    named(store, OTHER, "early", 6)

    found = [(each.full_name, each.savepoint.application) for each in stored_savepoints(store)]

    assert found == [(f"{OTHER}@early", ""), (f"{SHOP}@before", "shop")]
    assert not stored_savepoints(store, "zzzzzzzz")
    assert len(stored_savepoints(store, HERE)) == 2


def test_a_dropped_one_is_gone_with_the_files_that_only_it_needs(store: FolderCheckpoints) -> None:
    """The application is not dropped before, and may run: nothing is written to its log."""
    named(store, SHOP, "older", 6, app="shop")
    with pytest.raises(ConfigError, match="has the savepoint before, older: drop it first"):
        check_unused(store, SHOP)
    names = store.names(f"{SHOP}/coordinator")

    drop_savepoint(store, find_savepoint(store, "before"))

    assert store.names(f"{SHOP}/coordinator") == names
    assert store.load(f"{SHOP}/epochs/region0/epoch6") == b"state"
    with pytest.raises(SnapshotDamaged):
        store.load(f"{SHOP}/epochs/region0/epoch7")
    with pytest.raises(ConfigError, match="no savepoint 'before'; there are: older"):
        find_savepoint(store, "before")
    drop_savepoint(store, find_savepoint(store, "older"))
    check_unused(store, SHOP)


def test_files_that_the_application_still_needs_stay(store: FolderCheckpoints) -> None:
    needed = f"{SHOP}/epochs/region0/epoch7"
    needs(store, SHOP, needed)

    drop_savepoint(store, find_savepoint(store, "before"))

    assert store.load(needed) == b"state"


def test_one_that_another_application_has_begun_with_is_not_dropped(
    store: FolderCheckpoints,
) -> None:
    needs(store, OTHER, f"{SHOP}/epochs/region0/epoch7")

    with pytest.raises(ConfigError, match=f"{OTHER} has begun with savepoint before"):
        drop_savepoint(store, find_savepoint(store, "before"))

    assert find_savepoint(store, "before").savepoint.epochs == {0: 7}


def needs(store: FolderCheckpoints, prefix: str, file: str) -> None:
    log = CoordinatorLog(store, prefix, launch=3, source="app master", wall_ms=lambda: 0)
    log.append(EpochManifests(log.state).messages_for(a_manifest(8, file)))


@pytest.mark.parametrize("text", ["before", "3@before", "shop@before", f"{SHOP}@before"])
def test_an_application_begins_with_a_savepoint(
    store: FolderCheckpoints, tmp_path: Path, text: str
) -> None:
    assert resume(text, tmp_path) == f"{SHOP}@before"


def test_a_name_that_means_nothing_is_answered_with_the_savepoints(
    store: FolderCheckpoints, tmp_path: Path
) -> None:
    named(store, SHOP, "older", 6, app="shop")

    with pytest.raises(ConfigError, match=r"savepoints are: before, older; .* checkpoint\.folder="):
        resume("befor", tmp_path)


def test_a_savepoint_stays_where_it_was(store: FolderCheckpoints, tmp_path: Path) -> None:
    named(store, SHOP, "older", 6, app="shop")

    assert resume("older", tmp_path) == f"{SHOP}@older"


def test_a_name_that_means_two_things_is_refused(store: FolderCheckpoints, tmp_path: Path) -> None:
    named(store, OTHER, "before", 6, app="later")
    for told in (lambda: resume("before", tmp_path), lambda: find_savepoint(store, "before")):
        with pytest.raises(
            ConfigError, match=f"several savepoints .*{OTHER}@before, {SHOP}@before"
        ):
            told()
    assert resume("4@before", tmp_path) == f"{OTHER}@before"

    named(store, SHOP, "later", 7, app="shop")
    with pytest.raises(ConfigError, match="an application and a savepoint are called 'later'"):
        resume("later", tmp_path)
    assert resume("later@", tmp_path) == f"{OTHER}@"


def test_commands_list_and_drop_them(store: FolderCheckpoints, tmp_path: Path) -> None:
    def savepoint(*args: str) -> str:
        done = CliRunner().invoke(app, ["savepoint", *args, "--checkpoints", str(tmp_path)])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert json.loads(savepoint("list", "--json")) == {
        "savepoints": [
            {
                "name": "before",
                "application": "shop",
                "prefix": SHOP,
                "epochs": {"0": 7},
                "stored_ms": 7,
            }
        ]
    }
    assert savepoint("list").splitlines()[2].split()[:4] == ["before", "shop", SHOP, "7"]
    assert savepoint("drop", "before") == f"savepoint before of {SHOP} is dropped\n"
    assert savepoint("list").startswith("no savepoint is in checkpoint store ")
