"""Runs of this user on this machine are found by others, as long as they go on."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gearpy as gp
from gearpy.cli.main import app as commands
from gearpy.cluster.client.client import ClusterClient, RunningApplication
from gearpy.cluster.client.runs import RunClient, last_report, live_runs, runtime_folder
from gearpy.cluster.embedded.background import BackgroundRun
from gearpy.cluster.embedded.registry import registered
from gearpy.errors import ConnectionLost, GearpyError, StoreAway
from gearpy.ids import AppId
from gearpy.messages.client import GetApplication
from tests.eventually import DEADLINE_S, eventually


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("GEARPY_CLUSTER_MASTERS", "")
    monkeypatch.delenv("GEARPY_CLUSTER_MASTERS")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def started(name: str, folder: Path | None = None) -> BackgroundRun:
    app = gp.StreamApp(name)
    numbers = app.read(gp.generate(itertools.count, rate=200))
    numbers.key_by(lambda n: n % 3).count(name="count").write(gp.to_list([]))
    run = gp.start(app, checkpoint=folder)
    eventually(lambda: run.summary.progress.epoch > 1)
    return run


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[BackgroundRun]:
    run = started("shop", tmp_path / "first")
    yield run
    run.kill()


def gear(*words: str) -> tuple[int, str]:
    # A port that nobody listens at, so that there is no cluster.
    result = CliRunner(env={"COLUMNS": "120"}).invoke(
        commands, [*words, "--set", "cluster.masters=127.0.0.1:9"]
    )
    return result.exit_code, result.output


def test_a_run_is_found_while_it_goes_on_and_leaves_a_report(tmp_path: Path) -> None:
    run = started("shop", tmp_path / "first")
    (entry,) = live_runs()
    assert (entry.application, entry.folder, entry.pid) == (
        "shop",
        str(tmp_path / "first"),
        os.getpid(),
    )
    client = RunClient(entry)
    assert client.ask(GetApplication(app_id=client.find("any"))).name == "shop"
    run.stop()

    assert live_runs() == []
    with pytest.raises(ConnectionLost, match="has ended"):
        client.ask(GetApplication(app_id=AppId(1)))
    report = last_report("shop")
    assert report is not None
    assert report.answers["appmaster/1/view"]["status"] == "terminated"
    assert last_report("other") is None


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (StoreAway("the disk is full"), StoreAway, "^the disk is full$"),
        (KeyError("odd"), GearpyError, "^KeyError: 'odd'$"),
    ],
)
def test_an_error_arrives_as_what_it_is(
    error: Exception, kind: type[GearpyError], text: str
) -> None:
    def ask(_: object) -> object:
        raise error

    running = RunningApplication(ClusterClient(ask), AppId(1), "odd")
    with registered(running, ask, None, "runs"):
        (entry,) = live_runs()
        with pytest.raises(kind, match=text) as raised:
            RunClient(entry).ask(GetApplication(app_id=AppId(1)))

    assert type(raised.value) is kind


def test_what_dead_processes_have_left_is_removed(shop: BackgroundRun) -> None:
    folder = runtime_folder()
    assert folder is not None
    (path,) = folder.glob("*.json")
    left = path.with_name("999999999-0.json")
    left.write_bytes(path.read_bytes().replace(b"%d" % os.getpid(), b"999999999"))
    (folder / "odd.json").write_text("{")

    assert len(live_runs()) == 1
    assert [each.name for each in folder.glob("*.json")] == [path.name]


def test_a_folder_that_others_may_enter_is_not_used(own_folder: Path) -> None:
    (own_folder / "gearpy").mkdir()
    (own_folder / "gearpy").chmod(0o755)

    assert runtime_folder() is None
    assert live_runs() == []


def test_commands_find_the_only_run(shop: BackgroundRun, tmp_path: Path) -> None:
    place = str(tmp_path / "first")
    for names in ([], ["shop"], [place], ["1"], [str(os.getpid())]):
        code, said = gear("why", *names)
        assert (code, "what holds the clock of application 1 (shop)" in said) == (0, True), said
    assert gear("top", "--once")[1].startswith("shop  active  application 1")
    assert gear("info")[1].startswith("application 1 (shop) active")
    assert "running of count, epoch" in gear("state", "query", "shop", "count")[1]
    assert gear("report")[1].startswith("wrote shop-1.html")
    assert "what it prints is there, and with --verbose its log" in gear("app", "logs")[1]
    named = f"{place} (process {os.getpid()})"
    assert gear("quarantine", "list")[1] == f"run {named} has no record in quarantine\n"
    none = f"error: no run is called 'other', and there is no cluster; runs: {named}\n"
    assert gear("why", "other") == (2, none)
    assert gear("app", "kill", "7") == (2, none.replace("other", "7")), "it is of a cluster"
    assert shop.summary.status == "active"


def test_of_several_runs_one_has_to_be_named(shop: BackgroundRun, tmp_path: Path) -> None:
    other = started("other")
    both = f"{tmp_path / 'first'} (process {os.getpid()}), other (process {os.getpid()})"
    assert gear("why") == (2, f"error: 2 runs go on here: name one of {both}\n")
    assert "(other)" in gear("why", "other")[1]
    code, said = gear("app", "list")
    assert (code, [line.split()[1] for line in said.splitlines()[2:]]) == (0, ["shop", "other"])
    other.stop()

    code, said = gear("info", "other")
    assert code == 0
    assert said.startswith("run other terminated\n  ended    ")
    assert said.endswith("'gear report other' writes all that is known of it\n")
    assert gear("report", "other")[1].startswith("wrote other-1.html")


def test_what_an_ended_run_advises_works_there(tmp_path: Path) -> None:
    kept, other = started("kept", tmp_path / "kept"), started("other")
    for run in (kept, other):
        run.stop()

    epoch = kept.summary.progress.epoch
    assert kept.metrics().headline.advice == (
        f"gp.start with the same checkpoint= goes on from epoch {epoch}"
    )
    assert (
        other.metrics().headline.advice
        == "the next one begins anew; with checkpoint=FOLDER it goes on"
    )
    report = last_report("other")
    assert report is not None
    assert "gear app restart" not in str(report.answers)


def test_a_run_that_ends_is_not_started_again_from_elsewhere(shop: BackgroundRun) -> None:
    code, told = gear("app", "restart", "shop")

    assert code == 2
    assert "first cannot be started again from here: stop it with 'gear app stop shop" in told
    assert shop.summary.status == "active"


def test_where_no_cluster_is_a_run_is_told_of_with_what_works_beside_it(
    shop: BackgroundRun, tmp_path: Path
) -> None:
    (program := tmp_path / "p.py").write_text(
        "import gearpy as gp\napp = gp.StreamApp('p')\n"
        "app.read(gp.collection([1])).write(gp.console())\n"
    )

    code, told = gear("app", "submit", str(program))

    assert code == 3
    assert f"first (process {os.getpid()})) for gear top, why" in told
    assert shop.summary.status == "active"


def test_a_run_that_is_drained_by_a_command_is_told_to_its_end(tmp_path: Path) -> None:
    """Its own process ends with it, so the last that is known is what it has left."""
    (tmp_path / "p.py").write_text(
        "import itertools, gearpy as gp\napp = gp.StreamApp('p')\n"
        "app.read(gp.generate(itertools.count, rate=100)).write(gp.jsonl_folder('out'))\n"
    )
    words = [sys.executable, "-m", "gearpy", "run", "--resume", "./first", "p.py"]
    with subprocess.Popen(words, cwd=tmp_path) as run:
        eventually(lambda: len(live_runs()) == 1)
        (entry,) = live_runs()
        eventually(lambda: RunClient(entry).running("p").summary().progress.epoch > 0)

        code, told = gear("app", "stop", "p", "--drain")

        assert run.wait(DEADLINE_S) == 0
    assert code == 0
    assert "drained" in told
