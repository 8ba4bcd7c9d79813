"""From what a user calls a checkpoint to the one that an application begins with."""

from pathlib import Path

import pytest

from gearpy.cluster.checkpoints.resuming import resume_point
from gearpy.config.load import from_overrides
from gearpy.core.coordinator.views import EpochManifests
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError
from gearpy.storage.coordinator_log import CoordinatorLog
from tests.cluster.resume_build import a_store

HERE = "k3f9a1c2"


def resume(text: str, folder: Path | str) -> str:
    """Ask for a checkpoint in a store, as a client of the cluster ``HERE``."""
    config = from_overrides({"checkpoint.folder": str(folder)})
    return resume_point(text, config=config, cluster_id=HERE)


def refusal(text: str, folder: Path | str) -> str:
    with pytest.raises(ConfigError) as caught:
        resume(text, folder)
    assert str(caught.value).startswith(f"--from-checkpoint {text}: checkpoint store {folder}")
    return str(caught.value)


def test_an_application_of_another_cluster_is_named_with_it(tmp_path: Path) -> None:
    a_store(tmp_path, f"{HERE}/app3", "zzzzzzzz/app3")

    assert resume("zzzzzzzz/app3@7", tmp_path) == "zzzzzzzz/app3@7"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3@5", "has no epoch 5; there are: 6, 7"),
        *((text, "has no complete epoch") for text in ("4", "yyyyyyyy/app3")),
        *((text, "nothing of application") for text in ("", "words", "²", "9" * 5000)),
        ("../app3", "each of letters, digits, dots"),
        ("3@x", "3 has no savepoint 'x'"),
        ("3@1x", "names no checkpoint"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, text: str, why: str) -> None:
    a_store(tmp_path, f"{HERE}/app3")

    assert why in refusal(text, tmp_path)


def test_an_epoch_that_a_region_lacks_is_refused(tmp_path: Path) -> None:
    prefix = f"{HERE}/app3"
    log = CoordinatorLog(a_store(tmp_path, prefix), prefix, launch=2, source="", wall_ms=lambda: 0)
    for epoch in (5, 7):
        manifest = Manifest(region=1, epoch=epoch, attempt=1, clock_ms=0, snapshots=())
        log.append(EpochManifests(log.state).messages_for(manifest))

    assert resume("3@7", tmp_path) == f"{prefix}@7"
    assert "epoch 6 of some regions only, and not of [1]" in refusal("3@6", tmp_path)


def test_a_store_out_of_sight_is_told_and_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"

    said = f"checkpoint store {folder} is not there: name the folder, as this machine sees it"
    assert f"{said}, with checkpoint.folder" in refusal("3", folder)

    assert not folder.exists()


def test_a_store_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    assert "is not there" in refusal("3", tmp_path / "file")
    assert "cannot be read: " in refusal("3", f"file://{tmp_path}/file/below")
    with pytest.raises(ConfigError, match=r"checkpoint\.folder .no-such://x/y. cannot be"):
        resume("3", "no-such://x/y")
