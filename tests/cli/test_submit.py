"""``gear app submit``: what it checks, what it sends and what it prints."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from gearpy.cli.apps import submit as submitting
from gearpy.cli.main import app
from gearpy.cli.terminal.exits import FAILED, SUCCESS, WRONG_USE
from gearpy.cluster.client.client import ClusterClient
from gearpy.ids import AppId
from gearpy.messages.client import (
    ClusterSummary,
    GetArtifactPart,
    GetCluster,
    HasArtifact,
    Refused,
    SubmitApplication,
    Submitted,
    UploadArtifact,
)
from gearpy.storage.artifacts import ArtifactDesk, ArtifactStore
from tests.cluster.resume_build import a_store


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.store = ArtifactStore(folder, 10**6)
        self.desk = ArtifactDesk(self.store)
        self.submitted: list[SubmitApplication] = []

    def ask(self, message: Any) -> Any:
        if isinstance(message, HasArtifact | UploadArtifact | GetArtifactPart):
            return self.desk.answer(message)
        if isinstance(message, SubmitApplication):
            self.submitted.append(message)
            return Submitted(app_id=AppId(7))
        if isinstance(message, GetCluster):
            return ClusterSummary(cluster_id="k3f9a1c2")
        return Refused(reason="what?")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(tmp_path / "artifacts")

    @contextmanager
    def connected(_: object) -> Iterator[ClusterClient]:
        yield ClusterClient(made.ask)

    monkeypatch.setattr(submitting, "connected", connected)
    monkeypatch.chdir(tmp_path)
    return made


def a_program(path: str, name: str = "words", more: str = "") -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(
        f"import gearpy as gp\n{more}\napp = gp.StreamApp({name!r})\n"
        "app.read(gp.collection([1])).write(gp.to_list([]))\n",
        encoding="utf-8",
    )


def submit(*args: str) -> Any:
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["app", "submit", *args])


def refusal(*args: str, code: int = WRONG_USE) -> str:
    result = submit(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    return str(result.stderr)


def test_a_program_is_uploaded_and_started_under_its_name(cluster: Cluster) -> None:
    """The name is in the program; its id is what later commands take."""
    a_program("jobs.py")

    result = submit("jobs.py", "--executors", "3")

    assert result.stdout == "application 7 (words) submitted\n"
    assert result.exit_code == SUCCESS
    (sent,) = cluster.submitted
    assert (sent.name, sent.executors, sent.artifact.kind) == ("words", 3, "stored")
    assert cluster.store.has(sent.artifact.location)


@pytest.mark.parametrize("option", ["--namePrefix", "--name-prefix"])
def test_a_prefix_stands_before_the_name(cluster: Cluster, option: str) -> None:
    a_program("jobs.py")

    assert "(test_words)" in submit("jobs.py", option, "test_").stdout
    assert "(test_mine)" in submit("jobs.py", option, "test_", "--name", "mine").stdout
    assert [each.name for each in cluster.submitted] == ["test_words", "test_mine"]


@pytest.mark.parametrize("option", ["--set", "--config-override", "-c"])
def test_overrides_go_with_the_application(cluster: Cluster, option: str) -> None:
    a_program("jobs.py")

    submit("jobs.py", option, "streaming.batch-max-records=7", option, "worker.slots=2")

    assert cluster.submitted[0].config == {"streaming.batch-max-records": "7"}


def test_a_program_goes_on_from_a_checkpoint(cluster: Cluster, tmp_path: Path) -> None:
    a_program("jobs.py")
    folder = tmp_path / "checkpoints"
    a_store(folder, "k3f9a1c2/app3", "zzzzzzzz/app3")
    seen = ("--set", f"checkpoint.folder={folder}")

    older = submit("jobs.py", *seen, "--from-checkpoint", "3@6")
    newest = submit("jobs.py", *seen, "--from-checkpoint", "zzzzzzzz/app3@7")
    submit("jobs.py", *seen)

    said = " ".join(older.stderr.split())
    assert "application 3 has gone on from this epoch 6 to epoch 7: what its sinks" in said
    assert "gone on" not in newest.stderr

    points = [each.resume_from for each in cluster.submitted]
    assert points == ["k3f9a1c2/app3@6", "zzzzzzzz/app3@7", ""]


def test_a_checkpoint_that_is_not_there_is_told_before_the_upload(
    cluster: Cluster, tmp_path: Path
) -> None:
    a_program("jobs.py")
    a_store(tmp_path / "checkpoints", "k3f9a1c2/app3")

    for folder, name in (("checkpoints", "4"), ("checkpoints", "3@5"), ("none", "3")):
        path = tmp_path / folder
        said = refusal("jobs.py", "--set", f"checkpoint.folder={path}", "--from-checkpoint", name)
        assert f"--from-checkpoint {name}: checkpoint store" in said
        assert str(path) in said.replace("\n", "")

    assert cluster.submitted == []
    assert list((tmp_path / "artifacts").iterdir()) == []


def test_json_is_for_programs(cluster: Cluster) -> None:
    a_program("jobs.py")

    assert json.loads(submit("jobs.py", "--json").stdout) == {"app_id": 7, "name": "words"}


def test_arguments_go_to_the_program_here_and_there(cluster: Cluster) -> None:
    Path("jobs.py").write_text(
        "import gearpy as gp\n"
        "def main(args):\n"
        "    app = gp.StreamApp(args[0])\n"
        "    app.read(gp.collection([1])).write(gp.to_list([]))\n"
        "    return app\n",
        encoding="utf-8",
    )

    assert "(given)" in submit("jobs.py", "--", "given", "--json").stdout
    assert cluster.submitted[0].artifact.args == ("given", "--json")


def hints_in(result: Any) -> list[str]:
    lines = result.stderr.splitlines()
    return [line for line in lines if not line.startswith("guarantee: ")]


READS: Final = """\
import gearpy as gp
def main(args):
    app = gp.StreamApp("reads")
    app.read(gp.collection(args)).write(gp.text_file({}))
    return app
"""


@pytest.mark.parametrize(
    ("args", "sink", "shown"),
    [
        (["words.txt", "words.txt"], "'/x/out'", "words.txt"),
        (["*.txt", "2"], "'/x/out'", "*.txt"),
        (["--from=words.txt"], "'/x/out'", "words.txt"),
        (["-v", "", "none.txt", "/etc/passwd"], "'/x/out'", ""),
        ([], "'out.txt'", "out.txt"),
        (["words.txt"], "'out.txt'", "words.txt, out.txt"),
        (["a", "b", "words.txt", "jobs.py"], "'o'", "a, b, words.txt, ..."),
        (["x" * 5000, "a\\0b"], "'/x/out'", ""),
    ],
)
def test_relative_paths_are_hinted_at(
    cluster: Cluster, args: list[str], sink: str, shown: str
) -> None:
    """They mean this folder here and another one there; nobody finds that out easily."""
    Path("jobs.py").write_text(READS.format(sink), encoding="utf-8")
    for name in ("words.txt", "a", "b"):
        Path(name).write_text("", encoding="utf-8")

    result = submit("jobs.py", "--", *args)

    text = f"hint: a cluster may run programs in another folder: where {shown} is a file, "
    assert hints_in(result) == ([f"{text}give its absolute path"] if shown else [])
    assert result.stdout == "application 7 (reads) submitted\n"
    if not args:
        assert submit("jobs.py", "--json", "--", *args).stderr == ""


def test_limits_that_workers_decide_are_hinted_at(cluster: Cluster) -> None:
    """Who sets one here would believe in it."""
    a_program("jobs.py")

    said = submit("jobs.py", "--set", "executor.memory-max-bytes=1000000")

    assert hints_in(said) == [
        "hint: executor.memory-max-bytes counts where workers are started, not here"
    ]


def test_a_package_is_submitted_by_its_folder(cluster: Cluster) -> None:
    a_program("shop/__init__.py", "main")
    a_program("shop/daily.py", "daily", "from . import app as _\n")

    assert "(main)" in submit("shop").stdout
    assert "(daily)" in submit("shop:daily:app").stdout
    assert [each.artifact.module for each in cluster.submitted] == ["shop", "shop.daily"]


def test_requirements_are_checked_there_and_not_here(cluster: Cluster) -> None:
    a_program("jobs.py")
    Path("requirements.txt").write_text("no-such-package\n", encoding="utf-8")

    results = [submit("jobs.py"), submit("jobs.py", "--no-requirements-check")]

    assert [each.exit_code for each in results] == [SUCCESS] * 2, [each.output for each in results]
    assert [each.artifact.check_requirements for each in cluster.submitted] == [True, False]


def test_what_was_not_packed_is_missed_here(cluster: Cluster) -> None:
    a_program("by_text_s.py")
    a_program("jobs.py", more="import importlib\nimportlib.import_module('by_text_s')\n")

    assert "No module named 'by_text_s'" in refusal("jobs.py", code=FAILED)
    assert cluster.submitted == []


def test_mistakes_are_told_with_the_paths_of_the_user(cluster: Cluster, tmp_path: Path) -> None:
    a_program("jobs.py", more="import bad_s")
    Path("bad_s.py").write_text("\n1 / 0\n", encoding="utf-8")
    Path("none.py").write_text("import bad_t\n", encoding="utf-8")
    Path("bad_t.py").write_text("", encoding="utf-8")
    a_program("shop/__init__.py")
    Path("shop/daily.py").write_text("", encoding="utf-8")

    assert f"  at      {tmp_path}/bad_s.py:2\n" in refusal("jobs.py", code=FAILED)
    assert f"{tmp_path}/bad_s.py" in refusal("jobs.py", "--verbose", code=FAILED)
    assert "gearpy-check" not in refusal("jobs.py", "--verbose", code=FAILED)
    assert "no application in none.py:" in refusal("none.py")
    assert "no application in shop:shop.daily:" in refusal("shop:daily")
    assert cluster.submitted == []


def test_a_refusal_of_the_master_is_told(cluster: Cluster) -> None:
    a_program("jobs.py", more=f"# {'x' * 2_000_000}")

    assert "at most 1000000 are taken" in refusal("jobs.py")
