"""Savepoints in a store: listed, found, dropped, and gone on from."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cluster.checkpoints.changing import check_unused
from gearpy.cluster.checkpoints.resuming import resume_point
from gearpy.cluster.checkpoints.savepoints import (
    drop_savepoint,
    find_savepoint,
    stored_savepoints,
)
from gearpy.config.load import from_overrides
from gearpy.core.coordinator.savepoints import Savepoints
from gearpy.core.coordinator.views import ApplicationView
from gearpy.errors import ConfigError
from gearpy.storage.checkpoints import FolderCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog
from tests.cluster.resume_build import a_store

HERE = "k3f9a1c2"
SHOP, OTHER = f"{HERE}/app3", f"{HERE}/app4"


def named(store: FolderCheckpoints, prefix: str, name: str, epoch: int, *, app: str = "") -> None:
    log = CoordinatorLog(store, prefix, launch=2, source="app master", wall_ms=lambda: epoch)
    log.append(
        [*Savepoints(log.state).write(name, {0: epoch}), *ApplicationView(log.state).write(app)]
    )


@pytest.fixture
def store(tmp_path: Path) -> FolderCheckpoints:
    """Return a store with two applications, one with a savepoint of its newest epoch."""
    made = a_store(tmp_path, SHOP, OTHER)
    named(made, SHOP, "before", 7, app="shop")
    return made


def resume(text: str, folder: Path) -> str:
    """Ask for a checkpoint as a client of the cluster."""
    config = from_overrides({"checkpoint.folder": str(folder)})
    return resume_point(text, config=config, cluster_id=HERE)


def test_savepoints_are_listed_with_whose_they_are(store: FolderCheckpoints) -> None:
    named(store, OTHER, "early", 6)

    found = [(each.full_name, each.application) for each in stored_savepoints(store)]

    assert found == [(f"{OTHER}@early", ""), (f"{SHOP}@before", "shop")]
    assert not stored_savepoints(store, "zzzzzzzz")
    assert len(stored_savepoints(store, HERE)) == 2


def test_a_dropped_one_is_gone_and_its_epoch_stays(
    store: FolderCheckpoints, tmp_path: Path
) -> None:
    """Until the application is dropped, which is refused before."""
    with pytest.raises(ConfigError, match="has the savepoint before: drop it first"):
        check_unused(store, SHOP)

    drop_savepoint(store, find_savepoint(store, "before"), wall_ms=lambda: 0)

    check_unused(store, SHOP)
    with pytest.raises(ConfigError, match="no savepoint 'before'; there are: none"):
        find_savepoint(store, "before")
    assert resume("3", tmp_path) == f"{SHOP}@"


@pytest.mark.parametrize("text", ["before", "3@before", "shop@before", f"{SHOP}@before"])
def test_an_application_begins_with_a_savepoint(
    store: FolderCheckpoints, tmp_path: Path, text: str
) -> None:
    assert resume(text, tmp_path) == f"{SHOP}@"


def test_a_savepoint_stays_where_it_was(store: FolderCheckpoints, tmp_path: Path) -> None:
    named(store, SHOP, "older", 6, app="shop")

    assert resume("older", tmp_path) == f"{SHOP}@6"


def test_a_name_that_means_two_things_is_refused(store: FolderCheckpoints, tmp_path: Path) -> None:
    named(store, OTHER, "before", 6, app="later")
    for told in (lambda: resume("before", tmp_path), lambda: find_savepoint(store, "before")):
        with pytest.raises(
            ConfigError, match=f"several savepoints .*{OTHER}@before, {SHOP}@before"
        ):
            told()
    assert resume("4@before", tmp_path) == f"{OTHER}@6"

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
