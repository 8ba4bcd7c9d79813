"""What is promised end to end, as `gear run` and `gear app submit` tell it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

import gearpy as gp
from gearpy.cli.apps import submit as submitting
from gearpy.cli.apps.submit import hints
from gearpy.cli.main import app
from gearpy.cli.terminal.output import print_guarantee
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.programs.outline import outline_of
from gearpy.config.schema import Config
from gearpy.ids import AppId
from gearpy.messages.client import (
    Artifact,
    GetArtifactPart,
    HasArtifact,
    Refused,
    SubmitApplication,
    Submitted,
    UploadArtifact,
)
from gearpy.storage.artifacts import ArtifactDesk, ArtifactStore

PROGRAM: Final = """
import gearpy as gp

class Once(gp.Task):
    def produce(self):
        self.context.output(gp.Message(1, 0))
        return gp.FINISHED

class Take(gp.Task):
    def on_next(self, message):
        pass

graph = gp.Graph().connect(gp.Processor(Once), gp.Processor(Take))
app = gp.StreamApplication("once", graph)
"""
SAID: Final = "guarantee: not known: Once begins anew after a failure, as it has no snapshot; "


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("once.py").write_text(PROGRAM, encoding="utf-8")


def gear(*args: str) -> Any:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, args)


RETRIES: Final = ("--set", "application.total-retries=2")


def test_a_run_that_cannot_go_on_after_a_failure_promises_nothing() -> None:
    assert "guarantee" not in gear("run", "once.py").stderr


def test_a_run_with_restarts_says_how_long_its_promise_lasts() -> None:
    result = gear("run", *RETRIES, "once.py")

    assert result.stderr.startswith(
        "guarantee: not known (Once; see gear plan), as long as this process lives\n"
    )
    assert result.stdout == ""


def test_a_run_that_can_be_resumed_says_what_it_promises(tmp_path: Path) -> None:
    result = gear("run", "--resume", str(tmp_path / "run"), "once.py")

    assert result.stderr.startswith("guarantee: not known (Once; see gear plan)\n")


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_run_says_nothing_to_scripts(option: str) -> None:
    assert "guarantee" not in gear("run", *RETRIES, "once.py", option).stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_submit_says_it_when_it_can_still_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    desk = ArtifactDesk(ArtifactStore(tmp_path / "artifacts", 10**6))

    def answer(message: Any) -> Any:
        if isinstance(message, HasArtifact | UploadArtifact | GetArtifactPart):
            return desk.answer(message)
        known = isinstance(message, SubmitApplication)
        return Submitted(app_id=AppId(7)) if known else Refused(reason="what?")

    @contextmanager
    def connected(_: object) -> Iterator[ClusterClient]:
        yield ClusterClient(answer)

    monkeypatch.setattr(submitting, "connected", connected)

    result = gear("app", "submit", "once.py", *options)

    assert (SAID in result.stderr) == (not options)
    assert "guarantee" not in result.stdout


@pytest.mark.parametrize("make", [gp.jsonl_folder, gp.parquet_folder])
def test_a_relative_folder_is_hinted_at(make: Any) -> None:
    """On a cluster it would be in the working folder of an executor, and gone with it."""
    app = gp.StreamApp("folders")
    app.read(gp.collection([1])).write(make("out"))

    program = Artifact(kind="memory", location="")
    (hint,) = hints(outline_of(app.build(), program, Config()), [], Config())

    assert "where out is a file, give its absolute path" in hint


def test_each_line_has_its_label(capsys: pytest.CaptureFixture[str]) -> None:
    print_guarantee(["exactly-once", "none: [bold]x[/bold]"])

    assert capsys.readouterr().err == "guarantee: exactly-once\nguarantee: none: [bold]x[/bold]\n"
