"""``gear checkpoint``: what it prints of epochs, and what it changes."""

import json
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import FAILED, WRONG_USE
from gearpy.core.coordinator.views import EpochManifests
from gearpy.storage.checkpoints import FolderCheckpoints, checkpoints_at
from gearpy.storage.coordinator_log import CoordinatorLog
from gearpy.task.api.snapshots import decode_state
from tests.cli.build import Gear
from tests.cli.test_commands import fits
from tests.cli.test_commands_page import PAGE, keys_of, plain
from tests.cluster.checkpoint_build import NOON_MS, a_manifest, an_application, overrides_of

#: Of the cluster that tests ask: 3 has failed, 2 is active.
STOPPED: Final = "k3f9a1c2/app3"
RUNNING: Final = "k3f9a1c2/app2"
EPOCH18: Final = f"{STOPPED}/epochs/region0/epoch18-attempt2-executor0"
ORPHAN: Final = f"{STOPPED}/epochs/region0/epoch20-attempt2-executor0"

Checkpoint = Callable[..., str]

SUMMARY: Final = {
    "region": int,
    "epoch": int,
    "attempt": int,
    "clock_ms": int,
    "cut_time_ms": int,
    "files": int,
    "size_bytes": int,
    "stored_ms": int,
    "newest": bool,
}
FILE: Final = {
    "location": str,
    "sha256": str,
    "tasks": [str],
    "size_bytes": int,
    "taken": [{"task": str, "source": str, "via": str, "first": int, "last": int}],
}
TASK: Final = {"task": str, "operator": str, "head_bytes": int, "state_bytes": int}
VERDICT: Final = {
    "region": int,
    "epoch": int,
    "files": int,
    "damage": [str],
    "segments": int,
    "changelog_damage": [str],
    "is_rebuildable": bool,
}
APPLICATION: Final = {"app_id": int, "prefix": str}
SHAPES: Final[dict[str, Any]] = {
    "list 3": {**APPLICATION, "epochs": [SUMMARY]},
    "verify 3": {**APPLICATION, "epochs": [VERDICT], "resumes": [{"region": int, "epoch": int}]},
    "clean": {
        "applied": bool,
        "applications": [
            {**APPLICATION, "files": [{"location": str, "size_bytes": int}], "passed_over": str}
        ],
    },
    "drop 3": {**APPLICATION, "applied": bool, "files": int},
    "repair 3": {
        **APPLICATION,
        "applied": bool,
        "damage": [str],
        "lost_epochs": [str],
        "lost_messages": int,
        "epochs": {"0": [int]},
        "aside": str,
    },
}


@pytest.fixture
def store(tmp_path: Path) -> FolderCheckpoints:
    made = checkpoints_at(tmp_path / "checkpoints")
    for prefix in (STOPPED, RUNNING):
        an_application(made, prefix)
    return made


@pytest.fixture
def checkpoint(gear: Gear, tmp_path: Path, store: FolderCheckpoints) -> Checkpoint:
    """Return ``gear checkpoint``, for the store; what it says on standard error if it fails."""
    asked = ("--master", gear.address, "--set", f"transport.secret-file={gear.secret_file}")

    def run(*args: str, code: int = 0) -> str:
        where = asked if args[0] in {"set", "clean", "drop", "repair"} else ()
        folder = ("--checkpoints", str(tmp_path / "checkpoints"))
        command = ["checkpoint", *args, *folder, *where]
        result = CliRunner(env={"COLUMNS": "120"}).invoke(app, command)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.stderr
        return str(result.stderr if code == WRONG_USE else result.output)

    return run


# -- what is there ---------------------------------------------------------------------------


def test_the_event_time_of_a_cut_is_shown(checkpoint: Checkpoint, store: FolderCheckpoints) -> None:
    log = CoordinatorLog(store, STOPPED, launch=2, source="", wall_ms=lambda: 0)
    manifest = replace(a_manifest(19, []), epoch=20, cut_time_ms=NOON_MS)
    log.append(EpochManifests(log.state).messages_for(manifest))

    row = re.split("  +", checkpoint("list", "3").splitlines()[-1].strip())
    assert row[:5] == ["0", "20", "2", "2026-01-01T12:00:19Z", "2026-01-01T12:00:00Z"]
    assert "  cut     2026-01-01T12:00:00Z\n" in checkpoint("show", "3")


def test_an_application_without_epochs_is_told(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    CoordinatorLog(store, "k3f9a1c2/app5", launch=1, source="", wall_ms=lambda: 0)

    assert checkpoint("list", "5") == "k3f9a1c2/app5 has no complete epoch\n"
    assert json.loads(checkpoint("list", "5", "--json"))["epochs"] == []
    assert "has no complete epoch" in checkpoint("show", "5", code=WRONG_USE)


def test_an_epoch_is_shown_by_its_number(checkpoint: Checkpoint) -> None:
    other = checkpoint("show", "3", "17")

    assert "epoch 17 of region 0, attempt 2\n" in other
    assert re.search(r'b=c\.txt +\["line", 3\]', other)
    assert "has no epoch 20; there are: 17, 18, 19" in checkpoint("show", "3", "20", code=WRONG_USE)


def test_what_is_shown_can_be_read_by_programs(checkpoint: Checkpoint) -> None:
    (shown,) = json.loads(checkpoint("show", "3", "18", "--json"))["epochs"]

    places, overrides = shown.pop("offsets"), shown.pop("overrides")
    assert places == {"0.0": {"a.txt": 70, "b=c.txt": ["line", 5]}}
    assert overrides == {}
    assert fits(shown, {**SUMMARY, "tasks": [TASK], "files": [FILE], "damage": str})


def test_a_damaged_epoch_is_shown_without_the_sizes_of_its_tasks(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    store.drop(EPOCH18)

    shown = checkpoint("show", "3", "18")

    assert f"error: snapshot {EPOCH18}" in shown
    assert "a.txt" in shown
    assert EPOCH18 in json.loads(checkpoint("show", "3", "18", "--json"))["epochs"][0]["damage"]


def test_damage_is_found_and_told_with_what_remains(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    assert "error" not in checkpoint("verify", "3")
    store.save(EPOCH18, [b"damaged"])

    told = checkpoint("verify", "3", code=FAILED)

    assert "epoch 19 of region 0: damaged, 3 files" in told
    assert f"error: snapshot {EPOCH18}: byte 7: the file has 7 bytes" in told
    assert told.endswith("region 0 would go back to epoch 17\n")
    values = json.loads(checkpoint("verify", "3", "18", "--json", code=FAILED))
    assert [each["epoch"] for each in values["epochs"]] == [18, 17]
    assert values["resumes"] == [{"region": 0, "epoch": 17}]
    assert "epoch 17 of region 0: whole, 1 file\n" in checkpoint("verify", "3", "17")


def test_nothing_remains_when_all_is_damaged(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    store.drop(EPOCH18.replace("18", "17"))

    assert "region 0 would begin from the beginning" in checkpoint("verify", "3", code=FAILED)
    assert json.loads(checkpoint("verify", "3", "--json", code=FAILED))["resumes"] == [
        {"region": 0, "epoch": None}
    ]


@pytest.mark.parametrize("command", SHAPES)
def test_json_has_these_keys(
    command: str, checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    """Programs that read it must not break when gearpy changes inside."""
    store.save(ORPHAN, [b"half"])
    printed = checkpoint(*command.split(), "--json")

    assert printed.count("\n") == 1
    assert fits(json.loads(printed), SHAPES[command]), printed


def test_what_is_not_there_is_told(checkpoint: Checkpoint, tmp_path: Path) -> None:
    for command in (("list", "9"), ("verify", "9"), ("drop", "9"), ("clean", "9")):
        assert "nothing of application 9" in checkpoint(*command, code=WRONG_USE)
    nowhere = ["checkpoint", "clean", "--checkpoints", str(tmp_path / "nowhere")]
    assert "is not there" in CliRunner().invoke(app, nowhere).stderr


# -- a damaged log ---------------------------------------------------------------------------


def log_file(tmp_path: Path, at: int, prefix: str = STOPPED) -> Path:
    """Return a file of the coordinator log: a base, then one for the graph and for each epoch."""
    return sorted((tmp_path / "checkpoints" / prefix / "coordinator").glob("[bs]*-*"))[at]


def test_a_damaged_log_loses_what_was_in_the_damaged_file(
    checkpoint: Checkpoint, store: FolderCheckpoints, tmp_path: Path
) -> None:
    """First it is told what; then the log is written anew, and copies of its files are kept."""
    assert checkpoint("repair", "3", "--apply") == f"the coordinator log of {STOPPED} is whole\n"
    newest = log_file(tmp_path, 4)
    whole = newest.read_bytes()
    newest.write_bytes(bytes([*whole[:-1], whole[-1] ^ 1]))
    assert f"{newest.name} is damaged" in checkpoint("list", "3", code=FAILED)

    told = checkpoint("repair", "3", code=FAILED)

    assert f"error: {STOPPED}/coordinator/{newest.name}: byte" in told
    assert "lost: 1 message, with them epoch 19 of region 0" in told
    assert "region 0 would go back to epoch 18" in told
    assert told.endswith(
        "--apply writes the log anew without them, and keeps its files as they are aside\n"
    )
    checkpoint("list", "3", code=FAILED)
    aside = json.loads(checkpoint("repair", "3", "--apply", "--json"))["aside"]
    assert store.load(f"{aside}/{newest.name}")[:-1] == whole[:-1]
    epochs = json.loads(checkpoint("list", "3", "--json"))["epochs"]
    assert [each["epoch"] for each in epochs] == [17, 18]
    assert "is whole" in checkpoint("repair", "3")


def test_a_log_of_which_nothing_is_left_is_not_repaired(
    checkpoint: Checkpoint, store: FolderCheckpoints, tmp_path: Path
) -> None:
    """The next launch would begin from the beginning, and nobody would have asked for that."""
    before = store.names(STOPPED)
    for at in (2, 3, 4):
        log_file(tmp_path, at).write_bytes(b"")

    assert "region 0 has nothing left" in checkpoint("repair", "3", code=FAILED)
    assert "bring the files" in checkpoint("repair", "3", "--apply", code=WRONG_USE)
    assert store.names(STOPPED) == before


def test_the_log_of_a_running_application_is_left_alone(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    log_file(tmp_path, 4, RUNNING).write_bytes(b"")

    checkpoint("repair", "2", code=FAILED)
    assert "is active: stop it first" in checkpoint("repair", "2", "--apply", code=WRONG_USE)


# -- other places ----------------------------------------------------------------------------


def overridden(store: FolderCheckpoints, prefix: str = STOPPED) -> dict[str, Any]:
    return {name: decode_state(at) for name, at in overrides_of(store, prefix, 19).items()}


def test_places_are_set_only_on_demand(checkpoint: Checkpoint, store: FolderCheckpoints) -> None:
    """First it is told what would be done."""
    told = checkpoint("set", "3", "0.0", "a.txt=12", 'b=c.txt=["line", 1]')

    assert re.search(r"a\.txt +19 +95 +12", told)
    assert re.search(r'b=c\.txt +19 +finished +\["line", 1\]', told)
    assert told.endswith("2 places would be set; --apply sets them\n")
    assert overridden(store) == {}
    applied = checkpoint("set", "3", "0.0", "a.txt=12", "--apply")
    assert "1 place set" in applied
    assert overridden(store) == {"a.txt": 12}
    assert re.search(r"a\.txt +95 +12", checkpoint("show", "3"))
    assert "reads from there already" in checkpoint("set", "3", "0.0", "a.txt=12", "--apply")


def test_places_are_set_from_what_was_shown(
    checkpoint: Checkpoint, store: FolderCheckpoints, tmp_path: Path
) -> None:
    shown = checkpoint("show", "3", "--json")
    file = tmp_path / "places.json"

    file.write_text(shown.replace('"a.txt": 95', '"a.txt": 7'))
    values = json.loads(checkpoint("set", "3", "--from", str(file), "--apply", "--json"))
    assert values["applied"]
    assert [(each["partition"], each["new"]) for each in values["offsets"]] == [("a.txt", 7)]
    assert overridden(store) == {"a.txt": 7}
    file.write_text('{"0.0": {"a.txt": 8}}')
    checkpoint("set", "3", "--from", str(file), "--apply")
    assert overridden(store) == {"a.txt": 8}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "name a task"),
        (("0.0",), "say where to read"),
        (("0.0", "a.txt=1", "--from", "FILE"), "not both"),
        (("0.0", "a.txt"), "is no PARTITION=PLACE"),
        (("0.0", "a.txt=x"), "the place is no JSON"),
        (("0.0", "a.txt="), "the place is no JSON"),
        (("0.0", 'a.txt="x"'), "cannot take the place of 95"),
        (("0.0", "a.txt=null"), "null is no place"),
        (("0.0", "c.txt=1"), "reads no partition 'c.txt'"),
        (("1.0", "a.txt=1"), "'1.0' is no task that reads a source"),
        (("--from", "NOWHERE"), "cannot be used"),
        (("--from", "FILE"), "has no places"),
    ],
)
def test_mistakes_set_nothing(
    arguments: tuple[str, ...],
    why: str,
    checkpoint: Checkpoint,
    store: FolderCheckpoints,
    tmp_path: Path,
) -> None:
    (tmp_path / "FILE").write_text("[1]")
    given = [str(tmp_path / each) if each in {"FILE", "NOWHERE"} else each for each in arguments]

    told = checkpoint("set", "3", *given, "--apply", code=WRONG_USE)

    assert why in " ".join(told.split())
    assert overridden(store) == {}


def test_an_application_that_runs_is_left_alone(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    """It would overwrite what is set; and files that it writes now are in no log yet."""
    names = store.names("")

    for command in (("set", "2", "0.0", "a.txt=1"), ("clean", "2"), ("drop", "2")):
        told = checkpoint(*command, "--apply", code=WRONG_USE)
        assert "application 2 is active: stop it first" in told
        assert ("--force" in told) == (command[0] == "set")

    assert overridden(store, RUNNING) == {}
    assert store.names("") == names
    checkpoint("set", "2", "0.0", "a.txt=1")
    checkpoint("set", "2", "0.0", "a.txt=1", "--apply", "--force")
    assert overridden(store, RUNNING) == {"a.txt": 1}


def test_what_a_tool_has_written_is_no_sign_of_life(
    gear: Gear, checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    an_application(store, "00000000/app9")

    for place in ("1", "2"):
        checkpoint("set", "9", "0.0", f"a.txt={place}", "--apply")

    assert overridden(store, "00000000/app9") == {"a.txt": 2}
    log = CoordinatorLog(
        store, "00000000/app9", launch=2, source="", wall_ms=lambda: time.time_ns() // 1_000_000
    )
    log.append(EpochManifests(log.state).drop_messages(0, 17))
    told = checkpoint("set", "9", "0.0", "a.txt=3", "--apply", code=WRONG_USE)
    assert "no master says whether application 9 runs" in told


# -- files -----------------------------------------------------------------------------------


def test_files_that_nobody_needs_are_removed_on_demand(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    needed = store.names("")
    store.save(ORPHAN, [b"half an epoch"])

    told = checkpoint("clean", "3")

    assert ORPHAN in told
    assert told.endswith("1 file, 13 bytes would be removed; --apply removes them\n")
    assert ORPHAN in store.names("")
    assert "1 file, 13 bytes removed" in checkpoint("clean", "3", "--apply")
    assert store.names("") == needed
    assert checkpoint("clean", "3") == "there is nothing to remove\n"


def test_a_whole_store_is_cleaned(checkpoint: Checkpoint, store: FolderCheckpoints) -> None:
    for name in (ORPHAN, ORPHAN.replace("app3", "app2"), "k3f9a1c2/app1/epochs/x"):
        store.save(name, [b"half"])

    values = json.loads(checkpoint("clean", "--apply", "--json"))

    passed = {each["prefix"]: each["passed_over"] for each in values["applications"]}
    assert passed.keys() == {"k3f9a1c2/app1", RUNNING, STOPPED}
    assert "has no coordinator log" in passed["k3f9a1c2/app1"]
    assert "is active" in passed[RUNNING]
    assert passed[STOPPED] == ""
    assert ORPHAN not in store.names("")
    assert ORPHAN.replace("app3", "app2") in store.names("")
    assert "there is nothing to remove" in checkpoint("clean")


def test_an_application_is_dropped_on_demand(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    assert re.search(r"app3: \d+ files would be removed; --apply", checkpoint("drop", "3"))
    assert store.names(STOPPED)
    assert re.search(r"app3: \d+ files removed", checkpoint("drop", "3", "--apply"))
    assert store.names(STOPPED) == []
    assert store.names(RUNNING)


@pytest.mark.parametrize("command", ["clean 3 --apply", "drop 3 --apply", "diff 3 17 18"])
def test_a_store_that_fails_is_told(
    command: str, checkpoint: Checkpoint, store: FolderCheckpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a line, and not as a traceback."""

    def fail(*_: object) -> None:
        raise OSError("the disk is on fire")

    store.save(ORPHAN, [b"half"])
    for name in ("drop", "drop_all"):
        monkeypatch.setattr(FolderCheckpoints, name, fail)
    if command.startswith("diff"):
        monkeypatch.setattr("gearpy.cluster.checkpoints.reading.SnapshotChain", fail)

    told = checkpoint(*command.split(), code=FAILED)

    assert "k3f9a1c2/app3: the checkpoint store fails: the disk is on fire" in told


def test_what_another_application_has_gone_on_from_stays(
    checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    snapshots = EpochManifests(
        CoordinatorLog(store, STOPPED, launch=None, source="", wall_ms=lambda: 0).state
    ).manifests(0)[0]
    other = CoordinatorLog(store, "k3f9a1c2/app4", launch=1, source="", wall_ms=lambda: 0)
    manifest = a_manifest(17, list(snapshots.snapshots))
    other.append(EpochManifests(other.state).messages_for(manifest))

    told = checkpoint("drop", "3", "--apply", code=WRONG_USE)

    assert "k3f9a1c2/app4 has gone on from k3f9a1c2/app3" in told
    assert store.names(STOPPED)


# -- the page --------------------------------------------------------------------------------

EXAMPLES: Final = re.findall(
    r"^```console\n\$ bin/gear checkpoint ([^\n]*)\n(.*?)^```$",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_a_command_prints_what_the_page_shows(
    command: str, shown: str, checkpoint: Checkpoint, store: FolderCheckpoints
) -> None:
    """Who compares the two finds them equal."""
    store.save(ORPHAN, [b"half an epoch"])
    assert without_ages(checkpoint(*shlex.split(command))) == without_ages(shown)


def without_ages(text: str) -> str:
    text = re.sub(r"[\d,]+ d \d\d h", "0 d 00 h", plain(text))
    return re.sub(r" +", " ", text)


def test_every_command_has_an_example_and_its_keys_are_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))

    commands = {"list", "show", "verify", "diff", "set", "clean", "drop", "repair"}
    assert {command.split()[0] for command, _ in EXAMPLES} == commands
    keys = set(keys_of([*SHAPES.values(), FILE, TASK]))
    others = {"overrides", "operator", "partition", "old", "new", "cells", "regions"}
    assert keys | others <= named
