"""Commands that ask a cluster: what they ask it, what they print, and how they end."""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from gearpy.cli.main import app
from gearpy.cli.terminal.exits import FAILED, NO_CLUSTER, SUCCESS, WRONG_USE
from gearpy.errors import ConnectionLost, GearpyError
from gearpy.messages.client import (
    ListQuarantined,
    LogText,
    QuarantinedList,
    ReadLog,
    Refused,
    ReplayAccepted,
    ReplayNow,
    ReplayQuarantined,
    RestartApplication,
    ShutdownApplication,
)
from gearpy.messages.summaries import ApplicationProgress
from tests.cli.build import Gear

# -- the keys of JSON: a change here is a change for programs, and belongs into the changelog -----

CARD: Final = {
    "cause": str,
    "operator": str,
    "task": str,
    "source": str,
    "source_line": str,
    "record": str,
    "event_time_ms": int,
    "traceback": str,
    "epoch": int,
    "is_away": bool,
}
BRIEF_CARD: Final = {key: kind for key, kind in CARD.items() if key != "traceback"}
PROGRESS: Final = {
    "records_in": int,
    "records_out": int,
    "late_records": int,
    "skipped_records": int,
    "quarantined_records": int,
    "ahead_records": int,
    "restarts": int,
    "epoch": int,
    "watermark_ms": int,
    "done": int,
    "total": int,
    "stall": str,
    "waits_for": str,
    "drained": bool,
    "savepoint": str,
    "last_failure": str,
    "caught_up": bool,
    "open_windows": int,
    "records_before": int,
}
APPLICATION: Final = {
    "app_id": int,
    "name": str,
    "status": str,
    "user": str,
    "submitted_ms": int,
    "started_ms": int,
    "finished_ms": int,
    "progress": PROGRESS,
    "cause": CARD,
    "app_master": str,
    "worker_id": int,
}
WORKER: Final = {
    "worker_id": int,
    "slots": int,
    "free_slots": int,
    "address": str,
    "executors": int,
    "hosts": [str],
    "rack": str,
    "is_leaving": bool,
    "aside_until_ms": int,
    "version": str,
}
EXECUTOR: Final = {
    "executor_id": int,
    "launch": int,
    "worker_id": int,
    "slots": int,
    "status": str,
    "pid": int,
    "data_address": str,
    "tasks": [str],
    "metrics_address": str,
}
PROCESSOR: Final = {
    "processor_id": int,
    "name": str,
    "parallelism": int,
    "clock_ms": int,
    "records_in": int,
    "records_out": int,
    "late_records": int,
    "skipped_records": int,
    "quarantined_records": int,
    "steps": [str],
    "birth_ms": int,
    "idle_tasks": int,
    "idle_ms": int,
}
HOLDER: Final = {"task": str, "name": str, "clock_ms": int, "watermark_ms": int, "waits_for": str}
LONG_TURN: Final = {"task": str, "step": str, "lasts_ms": int, "source": str, "source_line": str}
CONSUMER: Final = {
    "sink": str,
    "task": str,
    "report": {
        "name": str,
        "batch_id": int,
        "rows": int,
        "rows_per_s": float,
        "waiting_rows": int,
        "waiting_since_ms": int,
        "trouble": str,
    },
}
SCALED: Final = {
    "step": str,
    "tasks": int,
    "bounds": {"least": int, "most": int, "busy": float},
    "work": float,
    "text": str,
    "at_ms": int,
}
CHANGE: Final = {
    "version": int,
    "change": str,
    "doing": str,
    "by": str,
    "at_ms": int,
    "at_event_ms": int,
    "may_be_called_off": bool,
}
DETAIL: Final = {
    "app_id": int,
    "executors": [EXECUTOR],
    "processors": [PROCESSOR],
    "failures": [{"at_ms": int, "what": str, "error": CARD}],
    "restarts": int,
    "epoch": int,
    "why": [HOLDER],
    "lag_ms": int,
    "long_turns": [LONG_TURN],
    "guarantees": [str],
    "epochs": [
        {
            "region": int,
            "epoch": int,
            "stored_ms": int,
            "size_bytes": int,
            "kept": int,
            "aborted": int,
            "last_abort": str,
            "fallbacks": int,
        }
    ],
    "consumers": [CONSUMER],
    "edges": [{"source": int, "target": int, "partitioner": str}],
    "regions": [
        {
            "region": int,
            "state": str,
            "from_epoch": int,
            "tasks": int,
            "executors_missing": int,
            "pause_ms": int,
        }
    ],
    "scaled": [SCALED],
    "of_actors": bool,
    "known_ms": int,
    "has_savepoints": bool,
    "unstored": [str],
    "change": CHANGE,
}
RECORD: Final = {
    "number": int,
    "processor_id": int,
    "event_time_ms": int,
    "error": BRIEF_CARD,
    "at_ms": int,
}
LOG: Final = {"source": str, "text": str, "launch": int, "position": str}
FINDING: Final = {"level": str, "text": str, "advice": str, "processor": int, "task": str}
WHY: Final = {
    "app_id": int,
    "name": str,
    "watermark_ms": int,
    "waits_for": str,
    "chain": [HOLDER],
    "lag_ms": int,
    "long_turns": [LONG_TURN],
    "culprit": str,
    "advice": str,
    "consumers": [CONSUMER],
    "stalled_consumers": [str],
    "findings": [FINDING],
}
HEADLINE: Final = FINDING
ALERT: Final = {"rule": str, "level": str, "since_ms": int, "text": str}
METRIC: Final = {
    "name": str,
    "kind": str,
    "value": float,
    "rate": float,
    "p50": float,
    "p99": float,
}
FIGURES: Final = {
    "records_in": int,
    "records_out": int,
    "records_in_rate": float,
    "records_out_rate": float,
    "busy": float,
    "backpressured": float,
    "watermark_ms": int,
    "watermark_lag_ms": int,
    "latency_p50_ms": float,
    "latency_p99_ms": float,
    "queue_records": int,
    "state_bytes": int,
    "late": int,
    "skipped": int,
    "quarantined": int,
    "metrics": [METRIC],
    "holds_clock": bool,
    "id": int,
    "name": str,
    "role": str,
    "parallelism": int,
    "steps": [str],
    "rates": [float],
}
APP_VIEW: Final = {
    "at_ms": int,
    "app_id": int,
    "name": str,
    "status": str,
    "user": str,
    "submitted_ms": int,
    "started_ms": int,
    "finished_ms": int,
    "headline": HEADLINE,
    "totals": {
        "records_in": int,
        "records_out": int,
        "records_in_rate": float,
        "records_out_rate": float,
        "late": int,
        "skipped": int,
        "quarantined": int,
        "restarts": int,
        "latency_p50_ms": float,
        "latency_p99_ms": float,
        "watermark_ms": int,
        "watermark_lag_ms": int,
        "lag_ms": int,
        "clock_ms": int,
        "epoch": int,
        "epoch_ms": float,
        "epoch_bytes": int,
        "epochs_failed": int,
        "state_bytes": int,
    },
    "processors": [FIGURES],
    "edges": [
        {
            "source": int,
            "target": int,
            "partitioner": str,
            "rate": float,
            "backpressured": bool,
            "holds_clock": bool,
        }
    ],
    "executors": [
        {
            "id": int,
            "launch": int,
            "worker_id": int,
            "status": str,
            "pid": int,
            "tasks": [str],
            "address": str,
            "rss_bytes": int,
            "cpu": float,
            "gc_pause_share": float,
        }
    ],
    "epochs": DETAIL["epochs"],
    "consumers": [CONSUMER],
    "failures": [{"at_ms": int, "what": str, "error": CARD}],
    "cause": CARD,
    "events": [{"at_ms": int, "kind": str, "text": str}],
    "guarantees": [str],
    "alerts": [ALERT],
    "waits": str,
    "of_actors": bool,
    "scaled": [SCALED],
    "known_ms": int,
    "has_savepoints": bool,
    "change": CHANGE,
}
OVERVIEW: Final = {
    "at_ms": int,
    "cluster_id": str,
    "version": str,
    "masters": [{"address": str, "leader": bool, "rss_bytes": int, "cpu": float}],
    "workers": [
        {
            "id": int,
            "address": str,
            "slots": int,
            "free_slots": int,
            "executors": int,
            "rss_bytes": int,
            "cpu": float,
            "is_leaving": bool,
            "aside_until_ms": int,
        }
    ],
    "applications": [
        {
            "id": int,
            "name": str,
            "status": str,
            "user": str,
            "submitted_ms": int,
            "finished_ms": int,
            "records_in": int,
            "records_out": int,
            "headline": HEADLINE,
            "records_in_rate": float,
            "records_out_rate": float,
            "watermark_lag_ms": int,
            "lag_ms": int,
            "restarts": int,
        }
    ],
    "attention": [{"level": str, "text": str, "app_id": int}],
    "alerts": [ALERT],
}
PLANNED: Final = {
    "app_id": int,
    "version": int,
    "moves": [{"step": str, "name": str, "fate": str, "is_lost": bool, "text": str}],
    "is_same": bool,
    "refusal": str,
    "goes_on": [str],
    "differences": [str],
    "at_event_ms": int,
}
VERSION: Final = {
    "number": int,
    "filename": str,
    "args": [str],
    "scale": [list],
    "change": str,
    "by": str,
    "at_ms": int,
    "state": str,
    "reason": str,
    "epoch": int,
}
SHAPES: Final = {
    "top": OVERVIEW,
    "top 2": APP_VIEW,
    "info": {"cluster_id": str, "applications": [APPLICATION], "workers": [WORKER]},
    "info 2": {"application": APPLICATION, "detail": DETAIL, "note": str},
    "app list": {"applications": [APPLICATION]},
    "app describe 2": {"application": APPLICATION, "detail": DETAIL, "note": str},
    "app kill 2": APPLICATION,
    "kill 2": APPLICATION,
    "app ask 2 now": str,
    "app stop 2 --drain": APPLICATION,
    "app savepoint 2 friday": {"app_id": int, "savepoint": str, "epochs": {"0": int}},
    "app restart 2": {"app_id": int, "name": str, "restarted": int},
    "app scale 2 visits-1=4": {**PLANNED, "outcome": VERSION},
    "app call-off 2": {"app_id": int, "version": int},
    "app rollback 2 0 --dry-run": {**PLANNED, "outcome": VERSION},
    "app history 2": {"versions": [VERSION]},
    "app restart-tasks 2": {"app_id": int, "epoch": int},
    "app logs 2": LOG,
    "worker list": {"workers": [WORKER]},
    "worker show 0": {
        "worker": WORKER,
        "executors": [{"app_id": int, "name": str, **EXECUTOR}],
    },
    "worker drain 0": {"worker_id": int, "executors": int, "has_ended": bool},
    "master list": {
        "term": int,
        "masters": [{"address": str, "role": str, "behind": int, "away_since_ms": int}],
    },
    "master status": {
        "term": int,
        "leader": str,
        "masters": [
            {
                "address": str,
                "role": str,
                "behind": int,
                "away_since_ms": int,
                "silent_ms": int,
                "disk": {
                    "version": str,
                    "started_ms": int,
                    "folder": str,
                    "log_bytes": int,
                    "snapshot_ms": int,
                    "programs": int,
                    "programs_bytes": int,
                    "quota_bytes": int,
                    "free_bytes": int,
                },
            }
        ],
    },
    "why 2": WHY,
    "quarantine list 2": {"app_id": int, "total": int, "records": [RECORD]},
    "quarantine show 2": {"app_id": int, "records": [{**RECORD, "value": str, "error": CARD}]},
    "quarantine replay 2": {"app_id": int, "replayed": [int]},
}


def fits(value: Any, shape: Any) -> bool:
    """Whether a JSON value has exactly the keys of a shape; numbers and texts may be missing."""
    if isinstance(shape, dict):
        if value is None:  # There is no cause, or no app master to tell details.
            return True
        same = isinstance(value, dict) and value.keys() == shape.keys()
        return same and all(fits(value[key], shape[key]) for key in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
    return value is None or type(value) is shape


@pytest.mark.parametrize("command", SHAPES)
def test_json_has_these_keys(command: str, gear: Gear) -> None:
    """Programs that read it must not break when gearpy changes inside."""
    printed = gear(*command.split(), "--json")

    assert printed.count("\n") == 1
    assert fits(json.loads(printed), SHAPES[command]), printed


# -- applications ------------------------------------------------------------------------------


def test_app_list_has_all_applications_or_only_the_living(gear: Gear) -> None:
    assert all(name in gear("app", "list") for name in ("clicks", "shop", "orders"))

    living = gear("app", "list", "--living")

    assert "shop" in living
    assert "clicks" not in living
    assert "orders" not in living


def test_app_list_tells_why_an_application_is_started_again_and_again(gear: Gear) -> None:
    first = gear.cluster.applications[0]
    progress = ApplicationProgress(restarts=30, last_failure="task 0.0 failed: ValueError: bad")
    gear.cluster.applications = [replace(first, status="pending", cause=None, progress=progress)]

    assert "started again 30 times: task 0.0 failed: ValueError: bad" in gear("app", "list")


def test_an_empty_cluster_is_said_to_be_empty(gear: Gear) -> None:
    gear.cluster.applications, gear.cluster.workers = [], ()

    assert gear("app", "list") == "no applications\n"
    assert gear("worker", "list") == "no workers\n"


@pytest.mark.parametrize("command", [("kill",), ("app", "kill")])
def test_kill_stops_an_application(command: tuple[str, ...], gear: Gear) -> None:
    """By its name or its number."""
    assert gear(*command, "shop") == "application 2 (shop) terminated\n"
    assert [each.app_id for each in gear.cluster.asked_of(ShutdownApplication)] == [2]


def test_restart_tells_the_new_number(gear: Gear) -> None:
    shown = gear("app", "restart", "3")

    assert shown == "application 3 (orders) starts again as application 4\n"
    assert [each.app_id for each in gear.cluster.asked_of(RestartApplication)] == [3]


def test_replay_tells_from_where(gear: Gear) -> None:
    assert (
        gear("app", "restart-tasks", "shop")
        == "application 2: its tasks start again after epoch 181\n"
    )
    gear.cluster.instead[ReplayNow] = lambda asked: ReplayAccepted(app_id=asked.app_id, epoch=0)

    assert gear("app", "restart-tasks", "2").endswith(
        ": its tasks start again from the beginning\n"
    )


# -- logs --------------------------------------------------------------------------------------


def log_of(*texts: str, sources: Callable[[int], str] = lambda _: "log") -> Any:
    """Return a log that grows by one text a question; then the application is unknown."""
    rest = list(enumerate(texts))

    def _answer(asked: ReadLog) -> object:
        if not rest:
            return Refused(reason="no application has id 2")
        at, text = rest.pop(0)
        assert asked.after == (f"1:{at - 1}" if at else "")
        return LogText(source=sources(at), text=text, launch=1, position=f"1:{at}")

    return _answer


def test_logs_asks_for_the_app_master_or_one_executor(gear: Gear) -> None:
    assert "epoch 1 stored\n" in gear("app", "logs", "2")
    gear("app", "logs", "2", "--appmaster", "--lines", "7")
    gear("app", "logs", "2", "--executor", "3", "-n", "7")

    asked = [(each.executor_id, each.lines) for each in gear.cluster.asked_of(ReadLog)]
    assert asked == [(-1, 100), (-1, 7), (3, 7)]


def test_logs_of_both_at_once_is_wrong_use(gear: Gear) -> None:
    said = gear("app", "logs", "2", "--executor", "3", "--appmaster", code=WRONG_USE)

    assert "choose one of" in said


def test_a_log_cannot_steer_the_terminal_and_ends_with_a_line(gear: Gear) -> None:
    """Users' code wrote it; the prompt comes on a line of its own."""
    gear.cluster.instead[ReadLog] = log_of("\x1b[31mred")

    assert gear("app", "logs", "2") == "\\x1b[31mred\n"


def test_follow_goes_on_with_what_is_new_until_there_is_no_more_to_come(gear: Gear) -> None:
    gear.cluster.instead[ReadLog] = log_of("one\ntw", "o\nthree\n")

    result = follow(gear)

    assert result.stdout == "one\ntwo\nthree\n"
    assert "no application has id 2" in result.stderr
    assert result.exit_code == WRONG_USE


def test_follow_names_the_log_of_a_new_launch(gear: Gear) -> None:
    gear.cluster.instead[ReadLog] = log_of("one\n", "two\n", sources=lambda at: f"launch-{at}")

    assert follow(gear).stdout == "one\n\n==> launch-1 <==\ntwo\n"


def test_follow_as_json_has_a_line_for_each_piece(gear: Gear) -> None:
    gear.cluster.instead[ReadLog] = log_of("one\n", "", "two\n")

    lines = follow(gear, "--json").stdout.splitlines()

    assert [json.loads(line)["text"] for line in lines] == ["one\n", "two\n"]


def test_follow_ends_with_the_application(gear: Gear) -> None:
    """A script that follows goes on then; what came last is not lost."""
    gear.cluster.instead[ReadLog] = log_of("one\n", "", "two\n", "")

    assert gear("app", "logs", "1", "--follow") == "one\ntwo\n"


def follow(gear: Gear, *more: str) -> Any:
    where = ("--master", gear.address, "--set", f"transport.secret-file={gear.secret_file}")
    return CliRunner().invoke(app, ["app", "logs", "2", "--follow", *more, *where])


# -- why ---------------------------------------------------------------------------------------


def test_why_shows_the_chain_and_ends_with_what_to_do(gear: Gear) -> None:
    shown = gear("why", "shop")

    names = [line.split()[-6:][0] for line in shown.splitlines() if "2026-" in line]
    assert len(names) == 3
    assert shown.index("files") < shown.index("map(price)") < shown.index("count ")
    assert "\nmap(price) (task 1.0) has sent records that" in shown


def test_why_of_an_application_that_waits_for_nothing(gear: Gear) -> None:
    gear.cluster.detail = replace(gear.cluster.detail, why=(), long_turns=())

    assert "nothing holds the clock" in gear("why", "2")
    assert json.loads(gear("why", "2", "--json"))["culprit"] is None


# -- quarantine --------------------------------------------------------------------------------


def test_quarantine_list_has_a_line_for_each_record(gear: Gear) -> None:
    lines = gear("quarantine", "list", "shop").splitlines()

    assert [line.split()[0] for line in lines[2:]] == ["1", "4"]
    assert "{'id': 17, 'price': 'n/a'}  ValueError: could not convert" in lines[2]


def test_a_list_that_was_cut_says_so(gear: Gear) -> None:
    """Who sees 2 of 9,000 must not think that there are 2."""
    records = gear.cluster.records
    gear.cluster.instead[ListQuarantined] = lambda asked: QuarantinedList(
        app_id=asked.app_id, records=records, total=9_000
    )

    shown = gear("quarantine", "list", "2")

    assert shown.endswith("\nthese are 2 of 9,000, the oldest\n")
    assert json.loads(gear("quarantine", "list", "2", "--json"))["total"] == 9_000


def test_quarantine_show_has_the_whole_record(gear: Gear) -> None:
    shown = gear("quarantine", "show", "2", "1")

    assert "record 1, put aside 2026-01-01T12:00:01Z\n" in shown
    assert "the user's frames" in shown
    assert "value: 2 bytes" in shown
    (record,) = json.loads(gear("quarantine", "show", "2", "1", "--json"))["records"]
    assert base64.b64decode(record["value"]) == b"\x01\x02"


def test_quarantine_show_without_a_number_shows_all(gear: Gear) -> None:
    """One question each, so that no answer is too large."""
    shown = gear("quarantine", "show", "2")

    assert shown.count("put aside") == 2
    asked = [each.numbers for each in gear.cluster.asked_of(ListQuarantined)]
    assert asked == [(), (1,), (4,)]


def test_an_empty_quarantine_is_said_to_be_empty(gear: Gear) -> None:
    gear.cluster.records = ()

    assert gear("quarantine", "list", "2") == "application 2 has no record in quarantine\n"
    assert gear("quarantine", "show", "2") == "application 2 has no record in quarantine\n"


def test_quarantine_replay_tells_which_were_given_back(gear: Gear) -> None:
    all_of_them = gear("quarantine", "replay", "shop")
    assert all_of_them == "application 2: 2 records given back to the operators: 1, 4\n"
    one = gear("quarantine", "replay", "2", "4")
    assert one == "application 2: 1 record given back to the operators: 4\n"

    asked = [each.numbers for each in gear.cluster.asked_of(ReplayQuarantined)]
    assert asked == [(), (4,)]


# -- what goes wrong ---------------------------------------------------------------------------

ABOUT_ONE: Final = [
    ("info",),
    ("kill",),
    ("why",),
    *(("app", each) for each in ("describe", "kill", "restart", "restart-tasks", "logs")),
    *(("quarantine", each) for each in ("list", "show", "replay")),
]


@pytest.mark.parametrize("command", ABOUT_ONE, ids=" ".join)
def test_a_name_that_no_application_has_is_wrong_use(command: tuple[str, ...], gear: Gear) -> None:
    """The text says what there is instead."""
    assert gear(*command, "nobody", code=WRONG_USE) == (
        "error: no application is called 'nobody'; there are: clicks (1), shop (2), orders (3)\n"
    )


@pytest.mark.parametrize("command", [*ABOUT_ONE, ("app", "list"), ("worker", "list")], ids=" ".join)
def test_errors_have_their_exit_codes(command: tuple[str, ...], gear: Gear) -> None:
    """A script decides by them whether to try again."""

    def lost(_: object) -> object:
        raise ConnectionLost("the master went away")

    def broken(_: object) -> object:
        raise GearpyError("busy: 64 questions in flight, ask again later")

    args = [*command, "2"] if command in ABOUT_ONE else [*command]
    for answer, code in (
        (lambda _: Refused(reason="no"), WRONG_USE),
        (lost, NO_CLUSTER),
        (broken, FAILED),
    ):
        gear.cluster.to_all = answer
        assert gear(*args, code=code).startswith("error: ")


@pytest.mark.parametrize("command", [*ABOUT_ONE, ("app", "list"), ("worker", "list")], ids=" ".join)
def test_every_command_has_its_help(command: tuple[str, ...]) -> None:
    """It tells the exit codes, too."""
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*command, "--help"])

    assert result.exit_code == SUCCESS
    assert "3 no cluster" in result.stdout
    assert "--json" in result.stdout
