"""What is shown of one application: `gear app describe`, `gear info`, and a change of it."""

import json

import pytest
from msgspec.structs import replace

from gearpy.cli.terminal.exits import WRONG_USE
from gearpy.errors import AskTimeout
from gearpy.messages.client import DescribeApplication, Refused, UpdateApplication
from gearpy.messages.summaries import ApplicationDetail, ChangeSummary
from tests.cli.build import NOON_MS, Gear


@pytest.mark.parametrize("command", [("app", "describe"), ("info",)])
def test_describe_shows_what_an_application_consists_of(
    command: tuple[str, ...], gear: Gear
) -> None:
    """Its executors with pid and worker, its processors with clocks and counts, its failures."""
    shown = gear(*command, "shop")

    assert shown.startswith("application 2 (shop) active\n")
    assert " 0       1  running         0  4711      2      2  127.0.0.1:41001" in shown
    assert " 0      1  2026-01-01T12:00:00Z idle  " in shown
    row = " 1      2                             60,000   4,512     3        0      2  map(price)\n"
    assert row in shown
    assert "  epoch        181\n  restarts     1\n" in shown
    assert "     0    181  2026-01-01T12:00:00Z  9,024     2         1          0\n" in shown
    assert "  given up: epoch 170 of region 0: not stored within 60000 ms by exec" in shown
    assert "guarantees\n  files(orders/*.csv) -> jsonl_folder(prices): exactly-once\n" in shown
    assert "region 0 was restarted from epoch 180\n    error: ValueError: could not" in shown
    assert "      record  {'id': 17, 'price': 'n/a'}\n" in shown
    assert "error: executor 1 lost: killed by signal 9\n" in shown
    assert "the user's frames" not in shown


def test_describe_shows_tracebacks_to_who_asks_for_them(gear: Gear) -> None:
    assert "the user's frames" in gear("app", "describe", "2", "--verbose")
    assert "the user's frames" in gear("app", "describe", "3", "--verbose")
    assert "the user's frames" in gear("info", "3", "--verbose")


def test_a_failed_application_shows_its_cause_as_run_does(gear: Gear) -> None:
    shown = gear("info", "3")

    assert shown.splitlines()[-7:] == [
        "error: ValueError: could not convert string to float: 'n/a'",
        "  in      map(price)",
        "  at      /home/ada/shop.py:12",
        '            return float(order["price"])',
        "  record  {'id': 17, 'price': 'n/a'}",
        "  time    2026-01-01T12:00:00Z (1767268800000 ms)",
        "  more    with --verbose",
    ]
    assert not gear.cluster.asked_of(DescribeApplication)


def test_an_application_without_an_app_master_is_described_as_far_as_it_is_known(
    gear: Gear,
) -> None:
    """It is being started again somewhere else; that is worth telling and no failure."""
    refusal = "application 2 has no app master at present"
    gear.cluster.instead[DescribeApplication] = lambda _: Refused(reason=refusal)

    assert gear("app", "describe", "2").endswith(f"\nnote: {refusal}\n")
    described = json.loads(gear("app", "describe", "2", "--json"))

    assert (described["detail"], described["note"]) == (None, refusal)
    assert described["application"]["name"] == "shop"


def test_an_app_master_that_hangs_does_not_hide_what_the_master_knows(gear: Gear) -> None:
    def hang(_: object) -> object:
        raise AskTimeout("the app master did not answer")

    gear.cluster.instead[DescribeApplication] = hang

    assert gear("app", "describe", "2").endswith("\nnote: the app master did not answer\n")


def test_describe_shows_a_change_that_waits_and_how_to_call_it_off(gear: Gear) -> None:
    change = ChangeSummary(
        version=1,
        change="scale visits=8 at 2026-01-02T00:00:00Z",
        doing="it waits for its event time",
        by="ada",
        at_event_ms=NOON_MS,
        may_be_called_off=True,
    )

    def described(change: ChangeSummary) -> str:
        gear.cluster.detail = replace(gear.cluster.detail, change=change)
        return gear("app", "describe", "2")

    waits, trial = described(change), described(replace(change, may_be_called_off=False))

    line = "version 1: scale visits=8 at 2026-01-02T00:00:00Z: it waits for its event time"
    assert f"\nchange\n  {line}, asked by ada\n  gear app call-off 2 gives it up\n" in waits
    assert line in trial
    assert "call-off" not in trial


def test_a_scaling_waits_for_an_event_time(gear: Gear) -> None:
    shown = gear("app", "scale", "2", "visits-1=4", "--at", "2026-01-01T12:00:00Z")

    (asked,) = gear.cluster.asked_of(UpdateApplication)
    assert asked.at_event_ms == NOON_MS
    assert shown.endswith("application 2: version 1 waits for event time 2026-01-01T12:00:00Z\n")


@pytest.mark.parametrize("again", ["visits-1=2", "visits-1=1..2"])
def test_a_step_is_scaled_once(gear: Gear, again: str) -> None:
    told = gear("app", "scale", "2", "visits-1=4", again, code=WRONG_USE)

    assert "step 'visits-1' is given twice: say it once" in told
    assert not gear.cluster.asked_of(UpdateApplication)


def test_an_earlier_program_waits_for_an_event_time(gear: Gear) -> None:
    shown = gear("app", "rollback", "2", "0", "--at", "2026-01-01T12:00:00Z")

    (asked,) = gear.cluster.asked_of(UpdateApplication)
    assert (asked.version, asked.at_event_ms) == (0, NOON_MS)
    assert shown.endswith("application 2: version 2 waits for event time 2026-01-01T12:00:00Z\n")


def test_an_application_that_has_just_begun_has_nothing_to_show_yet(gear: Gear) -> None:
    gear.cluster.detail = ApplicationDetail(app_id=gear.cluster.detail.app_id)

    shown = gear("app", "describe", "2")

    assert not any(
        title in shown for title in ("executors", "processors", "epochs", "guarantees", "failures")
    )
