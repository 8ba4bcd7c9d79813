"""``gear coordinator-log``: what it prints of a coordinator log, and what it appends to one."""

import json
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import FAILED, WRONG_USE
from gearpy.core.coordinator.log import draft
from gearpy.core.coordinator.views import DagVersion, DagVersions, EpochManifests, SourcePlaces
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import AskTimeout
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TaskOffsets
from gearpy.messages.client import ClusterSummary, GetCluster
from gearpy.storage.checkpoints import checkpoints_at
from gearpy.storage.coordinator_log import CoordinatorLog, survey_log
from gearpy.wire.values.payload import encode_value
from tests.cli.build import NOON_MS, Gear
from tests.cli.test_commands_page import PAGE, plain

CLUSTER: Final = "k3f9a1c2"
PREFIX: Final = f"{CLUSTER}/app2"
#: Of the cluster that tests ask: it has ended.
ENDED: Final = f"{CLUSTER}/app1"
SOURCE: Final = TaskId(0, 0)

Log = Callable[..., str]


def open_log(
    folder: Path, prefix: str = PREFIX, *, launch: int | None = 1, wall_ms: int = NOON_MS
) -> CoordinatorLog:
    return CoordinatorLog(
        checkpoints_at(folder),
        prefix,
        launch=launch,
        source="app master",
        wall_ms=lambda: wall_ms,
        host="one",
        username="ada",
    )


def fill(log: CoordinatorLog) -> None:
    """Append what an app master does until its second epoch is complete."""
    dag = DagVersion(1, "4f2a9c", ("0 files", "1 map(price)", "0 -> 1 hash"), {})
    values = {"value": "event-time"}
    log.append([*DagVersions(log.state).write(dag), draft("set-config", "checkpoint.cut", values)])
    for epoch in (180, 181):
        offsets = {"clicks-1.csv": b"", "clicks-2.csv": encode_value(100 * epoch)}
        file = SnapshotFile(location=f"e{epoch}", sha256="0f", tasks=(SOURCE,), size_bytes=4512)
        manifest = Manifest(
            region=0, epoch=epoch, attempt=1, clock_ms=NOON_MS, snapshots=(file, file)
        )
        places = [TaskOffsets(task_id=SOURCE, offsets=offsets)]
        log.append(EpochManifests(log.state).messages_for(manifest, places))
    log.append(EpochManifests(log.state).drop_messages(0, 180))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoints"
    for prefix in (PREFIX, ENDED):
        fill(open_log(folder, prefix))
    return folder


@pytest.fixture
def log(gear: Gear, store: Path) -> Log:
    """Return ``gear coordinator-log``, for the store; its standard error if it fails."""
    asked = ("--master", gear.address, "--set", f"transport.secret-file={gear.secret_file}")

    def run(*args: str, code: int = 0) -> str:
        where = asked if args[0] == "append" else ()
        command = ["log", *args, "--checkpoints", str(store), *where]
        result = CliRunner(env={"COLUMNS": "120"}).invoke(app, command)
        assert result.exit_code == code, result.output
        if code:
            assert "Traceback" not in result.stderr
            return str(result.stderr)
        return str(result.stdout)

    return run


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def messages(store: Path, prefix: str = PREFIX) -> list[Any]:
    return open_log(store, prefix, launch=None).state.messages()


# -- gear coordinator-log ----------------------------------------------------------------------


def test_the_messages_that_count_are_shown(log: Log) -> None:
    """Readably: of an epoch how much it is, of a source where it was."""
    shown = log("2")

    row = ["2026-01-01T12:00:00Z", "app master (ada@one)"]
    places = "epoch 181, clicks-1.csv: finished, clicks-2.csv: 18100"
    assert [re.split("  +", line.rstrip()) for line in shown.splitlines()] == [
        ["coordinator log of k3f9a1c2/app2"],
        ["written", "by", "type", "key", "values"],
        [*row, "dag", "1", "3 lines, hash 4f2a9c"],
        [*row, "set-config", "checkpoint.cut", "event-time"],
        [*row, "set-checkpoint", "0.0", places],
        [*row, "epoch", "0/181", "2 files, 9,024 bytes, clock 2026-01-01T12:00:00Z"],
    ]
    assert log("show", "2") == shown


def test_passwords_in_urls_are_not_shown(log: Log, store: Path) -> None:
    """A log is sent to colleagues; it keeps what the next launch needs."""
    values = {"value": "kafka://ada:secret@broker:9092/shop"}
    hook = {"value": "https://hooks.example.org/T0/secret"}
    version = {"artifact": {"args": ["--token", "secret", "--password=secret"]}}
    drafts = [draft("set-config", "checkpoint.folder", values)]
    drafts += [draft("set-config", "alerts.webhooks", hook), draft("version", "7", version)]
    open_log(store, ENDED, launch=2).append(drafts)

    assert "https://hooks.example.org/***" in log("1")
    assert "https://hooks.example.org/***" in log("1", "--json")
    assert "kafka://ada@broker:9092/shop" in log("1")
    assert "kafka://ada@broker:9092/shop" in log("1", "--json")
    assert "secret" not in log("1") + log("1", "--json")


def test_all_messages_are_shown_on_demand(log: Log) -> None:
    assert len(lines(log("2", "--json"))) == 4
    shown = log("2", "--all")

    assert len(shown.splitlines()) == 9
    assert re.search(r"epoch +0/180 +deleted", shown)
    assert len(lines(log("2", "--all", "--json"))) == 7


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--type", "set-*"], ["checkpoint.cut", "0.0"]),
        (["--type", "epoch", "--type", "dag"], ["1", "0/181"]),
        (["--key", "0*"], ["0.0", "0/181"]),
        (["--key", "0*", "--type", "epoch"], ["0/181"]),
        (["--type", "set"], []),
    ],
)
def test_messages_are_chosen_by_patterns(log: Log, options: list[str], keys: list[str]) -> None:
    assert [each["key"] for each in lines(log("2", "--json", *options))] == keys


def test_no_message_is_told_too(log: Log) -> None:
    """An empty table would look like a failure."""
    said = log("2", "--type", "nonsense")

    assert said == "the coordinator log of k3f9a1c2/app2 has no such message\n"


def test_the_keys_of_json_are_these(log: Log) -> None:
    message = lines(log("2", "--json", "--type", "set-checkpoint"))[0]

    assert message == {
        "type": "set-checkpoint",
        "key": "0.0",
        "values": {
            "epoch": 181,
            "offsets": {"clicks-1.csv": {"base64": ""}, "clicks-2.csv": {"base64": "zUa0"}},
            "override": [],
        },
        "host": "one",
        "username": "ada",
        "source": "app master",
        "timestamp_ms": NOON_MS,
        "version": 1,
        "extras": {},
    }


def test_unknown_and_malformed_messages_are_shown_as_they_are(log: Log, store: Path) -> None:
    opened = open_log(store)
    opened.append([draft("strange", "k", {"a": [b"x", 1]}), draft("epoch", "?", {})])

    shown = log("2")

    assert '{"a": [{"base64": "eA=="}, 1]}' in shown
    assert re.search(r"epoch +\? +\{\}", shown)


def test_an_override_is_marked(log: Log, store: Path) -> None:
    opened = open_log(store)
    offsets = TaskOffsets(task_id=SOURCE, offsets={"a": encode_value(5), "b": b"\xc1"})
    opened.append([SourcePlaces(opened.state).override(offsets)])

    assert "a: 5 (override), b: c1 (override), clicks-1.csv: finished" in log("2")


def test_what_is_readable_of_a_damaged_log_is_shown(log: Log, store: Path) -> None:
    damaged = survey_log(checkpoints_at(store), PREFIX)[2].name
    (store / PREFIX / "coordinator" / damaged).write_bytes(b"?")

    result = CliRunner(env={"COLUMNS": "120"}).invoke(
        app, ["log", "2", "--checkpoints", str(store), "--json"]
    )

    assert result.exit_code == FAILED
    assert [each["key"] for each in lines(result.stdout)] == ["1", "checkpoint.cut", "0.0", "0/181"]
    assert f"hint: {damaged} is left out: " in result.stderr
    assert json.loads(result.stderr.splitlines()[-1])["file"] == f"{PREFIX}/coordinator/{damaged}"


def test_a_log_with_a_missing_file_is_shown(log: Log, store: Path) -> None:
    missing = survey_log(checkpoints_at(store), PREFIX)[2].name
    (store / PREFIX / "coordinator" / missing).unlink()

    assert f"{missing} is damaged at byte 0: it is not there" in log("2", code=FAILED)


def test_what_is_not_there_is_told(log: Log, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    result = CliRunner().invoke(app, ["log", "2", "--checkpoints", nowhere])

    assert result.exit_code == WRONG_USE
    assert "is not there: name the folder" in result.stderr
    assert not Path(nowhere).exists()
    assert "only of: k3f9a1c2/app1, k3f9a1c2/app2;" in log("7", code=WRONG_USE)
    assert "of cluster 'x'" in log("2", "--cluster", "x", code=WRONG_USE)


def test_a_store_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["log", "2", "--checkpoints", f"{tmp_path}/file/../file/x"])
    assert result.exit_code == WRONG_USE

    result = CliRunner().invoke(app, ["log", "2", "--checkpoints", "nonsense://x/y"])
    assert result.exit_code == WRONG_USE
    assert "Traceback" not in result.stderr


def test_the_store_is_that_of_the_configuration(store: Path) -> None:
    result = CliRunner().invoke(app, ["log", "2", "--json", "--set", f"checkpoint.folder={store}"])

    assert len(lines(result.stdout)) == 4


def test_help_is_for_the_group_and_for_its_commands() -> None:
    assert "append" in CliRunner().invoke(app, ["log", "--help"]).stdout
    assert "append" in CliRunner().invoke(app, ["log"]).output
    assert "GLOB" in CliRunner(env={"COLUMNS": "120"}).invoke(app, ["log", "show", "-h"]).stdout
    assert CliRunner().invoke(app, ["log", "a", "b"]).exit_code == WRONG_USE


# -- gear coordinator-log append ---------------------------------------------------------------


def test_a_message_is_appended_to_the_log_of_an_ended_application(log: Log, store: Path) -> None:
    key = "checkpoint.interval-ms"
    said = log("append", "1", "set-config", key, '{"value": "7000"}')

    assert said == f"k3f9a1c2/app1: set-config {key} appended\n"
    message = messages(store, ENDED)[-1]
    assert (message.key, message.values, message.source) == (
        key,
        {"value": "7000"},
        "gear coordinator-log",
    )
    assert message.timestamp_ms > NOON_MS


@pytest.mark.parametrize(
    ("key", "values", "why"),
    [
        ("checkpoint.intervall-ms", '{"value": "7"}', "did you mean checkpoint.interval-ms?"),
        ("checkpoint.interval-ms", '{"value": "soon"}', "must be a whole number from 10 to"),
        ("checkpoint.interval-ms", '{"value": 7000}', """write for example '{"value": "7000"}'"""),
        (
            "checkpoint.interval-ms",
            '{"valeu": "7000"}',
            """write for example '{"value": "TEXT"}'""",
        ),
        ("cluster.masters", '{"value": "a:1"}', "set it where the daemons of the cluster"),
        ("checkpoint.folder", '{"value": "/x"}', "counts when an application is submitted"),
        ("application.executor-num", '{"value": "2"}', "counts when an application is submitted"),
    ],
)
def test_a_setting_that_no_launch_would_take_is_refused(
    key: str, values: str, why: str, log: Log, store: Path
) -> None:
    """Else the application would fail, or it would have no effect."""
    before = messages(store, ENDED)

    assert why in " ".join(log("append", "1", "set-config", key, values, code=WRONG_USE).split())

    assert messages(store, ENDED) == before


def test_an_application_is_found_by_its_name(log: Log, store: Path) -> None:
    for number in (8, 9):
        open_log(store, f"k3f9a1c2/app{number}").append(
            [draft("application", "name", {"value": "carts"})]
        )

    assert log("carts").startswith("coordinator log of k3f9a1c2/app9\n")
    assert (
        "nothing of application 'cart' in the checkpoint store, only of: app1, app2, carts"
        in " ".join(log("cart", code=WRONG_USE).split())
    )


def test_null_deletes(log: Log, store: Path) -> None:
    said = log("append", "1", "set-config", "checkpoint.cut", "null")

    assert said == "k3f9a1c2/app1: set-config checkpoint.cut deleted\n"
    assert "checkpoint.cut" not in [each.key for each in messages(store, ENDED)]


def test_what_is_shown_as_json_can_be_appended(log: Log, store: Path) -> None:
    values = lines(log("1", "--json", "--type", "set-checkpoint"))[0]["values"]

    log("append", "1", "set-checkpoint", "3.1", json.dumps(values))

    known = {each.key: each.values for each in messages(store, ENDED)}
    assert known["3.1"] == known["0.0"]


def test_a_dry_run_changes_nothing(log: Log, store: Path) -> None:
    before = sorted(store.rglob("*"))

    said = log("append", "2", "set-config", "checkpoint.cut", "null", "--dry-run")
    also = log("append", "2", "t", "k", '{"a": {"base64": "eA=="}}', "--dry-run", "--json")

    assert said == "k3f9a1c2/app2: set-config checkpoint.cut would be deleted\n"
    assert "would be appended" in log("append", "2", "t", "k", "{}", "--dry-run")
    assert json.loads(also) == {
        "app_id": 2,
        "prefix": PREFIX,
        "appended": False,
        "type": "t",
        "key": "k",
        "values": {"a": {"base64": "eA=="}},
    }
    assert sorted(store.rglob("*")) == before


def test_an_application_that_runs_is_left_alone(log: Log, store: Path) -> None:
    said = log("append", "2", "t", "k", "{}", code=WRONG_USE)

    assert "application 2 is active: stop it first, or use --force" in said
    assert len(messages(store)) == 4


def test_force_fences_the_app_master(log: Log, store: Path) -> None:
    log("append", "2", "t", "k", "{}", "--force")

    assert messages(store)[-1].type == "t"
    assert len(open_log(store, launch=2).state.messages()) == 5


@pytest.mark.parametrize("trouble", ["no answer", "another cluster", "forgotten"])
def test_without_the_masters_word_the_age_of_the_log_decides(
    log: Log, store: Path, gear: Gear, trouble: str
) -> None:
    prefix = "k3f9a1c2/app9" if trouble == "forgotten" else PREFIX
    if trouble == "no answer":
        gear.cluster.to_all = _refuse
    elif trouble == "another cluster":
        gear.cluster.instead[GetCluster] = lambda _: ClusterSummary(cluster_id="00000000")
    young = open_log(store, prefix, launch=2, wall_ms=time.time_ns() // 1_000_000)
    young.append([draft("set-config", "job.id", {"value": "7"})])
    number = prefix[-1]

    said = log("append", number, "t", "k", "{}", code=WRONG_USE)
    assert f"no master says whether application {number} runs, and something was written" in said
    young.append([draft("set-config", "job.id", None)])
    assert "or wait for a minute" in log("append", number, "t", "k", "{}", code=WRONG_USE)

    open_log(store, prefix, launch=3)  # Compacts: what is old is left.
    log("append", number, "t", "k", "{}")
    log("append", number, "t", "k", "{}")


def _refuse(_: object) -> object:
    raise AskTimeout("the master does not answer")


def test_an_application_that_was_never_launched_has_no_log(log: Log, store: Path) -> None:
    checkpoints_at(store).save("k3f9a1c2/app8/epochs/x", [b""])

    said = log("append", "8", "t", "k", "{}", code=WRONG_USE)

    assert "k3f9a1c2/app8 has no coordinator log: it has not been launched yet" in said


def test_nothing_is_appended_to_a_damaged_log(log: Log, store: Path) -> None:
    damaged = survey_log(checkpoints_at(store), ENDED)[2].name
    (store / ENDED / "coordinator" / damaged).write_bytes(b"?")

    assert f"{damaged} is damaged" in log("append", "1", "t", "k", "{}", code=FAILED)


@pytest.mark.parametrize(
    ("message", "mistake"),
    [
        (("t", "k", "nonsense"), "values 'nonsense' are no JSON: Expecting value"),
        (("t", "k", '{"a": {"base64": "!"}}'), "are no JSON: "),
        (("t", "k", "5"), "values '5' are no JSON object: write for example '{\"value\":"),
        (("t", "k", "[" * 100_000), "are no JSON"),
        (("", "k", "{}"), "type '' of a message has 0 characters"),
        (("t", "k", '{"a": 18446744073709551616}'), "(int): values are None, bool, int of 64 bits"),
        (("set-config", "k", "{}"), "set-config k takes its value as a text and nothing else"),
        (("set-checkpoint", "0", '{"epoch": 1, "offsets": {}}'), "its key is not two numbers"),
        (("set-changelog", "0.0", "{}"), "its partition is None"),
        (("dag", "1", "{}"), "it has no version or description"),
        (("epoch", "0/1", "{}"), "it has no manifest"),
        (("epoch", "0", "{}"), "its key is not two numbers"),
    ],
)
def test_what_the_next_launch_would_not_understand_is_refused(
    log: Log, message: tuple[str, str, str], mistake: str
) -> None:
    assert mistake in log("append", "1", *message, code=WRONG_USE)


# -- the page --------------------------------------------------------------------------------

EXAMPLES: Final = re.findall(
    r"^```console\n\$ bin/gear coordinator-log ([^\n]*)\n(.*?)^```$",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_a_command_prints_what_the_page_shows(command: str, shown: str, log: Log) -> None:
    """Who compares the two finds them equal."""
    assert plain(log(*shlex.split(command))) == plain(shown)


def test_both_commands_have_an_example() -> None:
    assert {command.partition(" ")[0] for command, _ in EXAMPLES} == {"2", "append"}
    named = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    assert named >= {"type", "key", "values", "host", "username", "source", "timestamp_ms"}
    assert named >= {"version", "extras", "prefix", "appended", "app_id"}
