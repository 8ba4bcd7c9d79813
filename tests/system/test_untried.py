"""Programs that end, hang or eat memory when they are loaded, beside an application that runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gearpy.cli.terminal.connect import connected
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.programs.upload import upload
from gearpy.errors import SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import DescribeApplication, GetApplication, UpdateApplication
from tests.eventually import eventually
from tests.system.cluster_build import Scene

#: Counts without an end; the lines of others go before it.
_COUNTS: Final = """\
import itertools
import gearpy as gp

def main(args):
    app = gp.StreamApp("counts")
    numbers = app.read(gp.generate(itertools.count, rate=50), name="numbers")
    numbers.key_by(lambda n: n % 10).count(name="count").write(gp.jsonl_folder(args[0]))
    return app
"""
#: By the last line that the refusal names.
_BAD: Final = {
    "os._exit(3)": "import os\nos._exit(3)\n",
    "ctypes.string_at(0)": "import ctypes\nctypes.string_at(0)\n",
    "time.sleep(1000)": "import time\nopen(NOTE, 'w').close()\ntime.sleep(1000)\n",
    "kept.append(bytearray(64 << 20))": (
        "kept = []\nwhile True:\n    kept.append(bytearray(64 << 20))\n"
    ),
}
_SETTINGS: Final = {
    "application.load-timeout-seconds": "5",
    "application.load-memory-max-bytes": "1000000000",
    "application.trial-seconds": "1",
}


class Beside:
    def __init__(self, scene: Scene, client: ClusterClient) -> None:
        self.scene = scene
        self.client = client
        self.note = scene.folder / "note"
        self._program("counts.py", "")
        self.app_id = scene.submit("counts.py", "--", str(scene.folder / "out"))
        eventually(lambda: self.epoch > 0)
        self.before = self.processes()

    def _program(self, name: str, lines: str) -> str:
        text = lines.replace("NOTE", repr(str(self.note)))
        (self.scene.folder / name).write_text(f"{text}{_COUNTS}", encoding="utf-8")
        return name

    @property
    def epoch(self) -> int:
        return self.client.ask(GetApplication(app_id=AppId(self.app_id))).progress.epoch

    def processes(self) -> tuple[list[int], int]:
        """Return all processes of the application, and how often any was started again."""
        summary = self.client.ask(GetApplication(app_id=AppId(self.app_id)))
        return self.scene.cluster.launched(), summary.progress.restarts

    def goes_on(self) -> bool:
        """Wait for epochs from now on; tell whether all is as it was."""
        epoch = self.epoch
        eventually(lambda: self.epoch > epoch + 1)
        return self.processes() == self.before

    def message(self, lines: str, **options: Any) -> UpdateApplication:
        """Return the message for a program that was not loaded here, as by REST."""
        target = self._program("bad.py", lines)
        args = (str(self.scene.folder / "out"),)
        artifact = upload(
            self.client.send, str(self.scene.folder / target), self.scene.cluster.config, args=args
        )
        return UpdateApplication(app_id=AppId(self.app_id), artifact=artifact, **options)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    scene = Scene(tmp_path_factory.mktemp("untried"), workers=1, more=_SETTINGS)
    scene.settings = {k: v for k, v in scene.settings.items() if k not in _SETTINGS}
    with scene.cluster, connected(scene.cluster.config) as client:
        yield Beside(scene, client)


@pytest.mark.parametrize(
    ("last", "is_trial_run"), [*((each, True) for each in _BAD), ("os._exit(3)", False)]
)
def test_a_change_to_a_program_that_cannot_be_loaded_is_refused(
    beside: Beside, last: str, *, is_trial_run: bool
) -> None:
    with pytest.raises(SubmitRefused) as refused:
        beside.client.change(beside.message(_BAD[last], is_trial_run=is_trial_run))

    assert "operator 'import bad.py'" in str(refused.value)
    assert str(refused.value).endswith(last)
    assert beside.goes_on()


def test_epochs_are_stored_and_questions_answered_while_a_program_hangs(beside: Beside) -> None:
    beside.note.unlink(missing_ok=True)
    message = beside.message(_BAD["time.sleep(1000)"], is_trial_run=True)
    asked: list[object] = []
    ask = beside.client.send

    def note(question: Any) -> Any:
        asked.append(ask(question))
        if len(asked) == 1:
            eventually(beside.note.exists)
            assert beside.goes_on()
            assert beside.client.ask(DescribeApplication(app_id=AppId(beside.app_id))).why
        return asked[-1]

    with pytest.raises(SubmitRefused):
        ClusterClient(note).change(message)

    assert len(asked) > 1, "it was not refused before"


@pytest.mark.parametrize(
    "command",
    [
        ("app", "update", "counts", "bad.py"),
        ("app", "update", "--dry-run", "counts", "bad.py"),
        ("app", "shadow", "counts", "count", "bad.py"),
        ("app", "submit", "bad.py", "--", "out"),
    ],
)
def test_commands_tell_of_such_a_program_before_it_is_uploaded(
    beside: Beside, command: tuple[str, ...]
) -> None:
    """They load it in a process of its own, too, and so end as other commands do."""
    beside.message(_BAD["os._exit(3)"])

    said = beside.scene.gear(*command, code=1)

    assert "it has ended its process while it was loaded: exited with code 3" in said
    assert "os._exit(3)" in said
    assert "bad.py:2" in said
    assert beside.goes_on()


def test_an_application_whose_program_cannot_be_loaded_fails_with_its_name(beside: Beside) -> None:
    artifact = beside.message(_BAD["os._exit(3)"]).artifact
    assert artifact is not None

    running = beside.client.submit("bad", artifact)

    cause = beside.scene.ends(running.app_id)["cause"]
    assert cause["operator"] == "import bad.py"
    assert (cause["source"], cause["source_line"]) == ("bad.py:2", "os._exit(3)")
    assert beside.client.ask(GetApplication(app_id=running.app_id)).progress.restarts == 0
    assert beside.goes_on()


def test_what_runs_is_scaled_and_gone_back_to_without_being_loaded_there(beside: Beside) -> None:
    lines = "import os\nif os.path.exists(NOTE + '2'):\n    os._exit(3)\n"
    running = beside.client.running(AppId(beside.app_id))
    begun = beside.client.change(beside.message(lines))
    assert beside.client.wait_for_version(AppId(beside.app_id), begun.version).state == "running"
    Path(f"{beside.note}2").touch()
    beside.before = beside.processes()

    gone = "it has ended its process while it was loaded"
    with pytest.raises(SubmitRefused, match=gone):
        running.scale(count=2)
    with pytest.raises(SubmitRefused, match=gone):
        running.rollback(begun.version)
    assert beside.goes_on()
