"""When alerts begin and cease, in virtual time."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.cluster.client.alerting import thresholds_of
from gearpy.config.schema import DEFAULTS, SETTINGS
from gearpy.ids import AppId
from gearpy.messages.client import AlertChange, AlertSilence, FiringAlert
from gearpy.messages.summaries import EpochsSummary
from gearpy.views.alerts import (
    MEASURES,
    RULES,
    AlertBook,
    AlertLimits,
    AppAlerts,
    Silences,
    rules_of,
)
from gearpy.views.app import app_view
from gearpy.views.model import AppView, Level
from tests.views.build import NOW_MS, a_look

MINUTE_MS = 60_000
QUIET = app_view(a_look())
FIRES: Final = FiringAlert(
    app_id=AppId(7), name="revenue", rule="failed", level="bad", since_ms=NOW_MS, text="failed"
)


def a_view(at_s: float = 0, **totals: Any) -> AppView:
    """Return the application so many seconds later, with other totals."""
    at_ms = NOW_MS + round(at_s * 1000)
    known = {"watermark_ms": at_ms, "records_in": round(at_s * 10), **totals}
    return replace(QUIET, at_ms=at_ms, totals=replace(QUIET.totals, **known))


def held_back(share: float, at_s: float) -> AppView:
    view = a_view(at_s)
    source, *others = view.processors
    return replace(view, processors=(replace(source, backpressured=share), *others))


def run(
    view_of: Callable[[int], AppView], seconds: Sequence[int], alerts: AppAlerts | None = None
) -> list[tuple[int, str, str]]:
    """Return what changes: after how many seconds, the rule, and its new state."""
    machine = alerts or AppAlerts()
    return [
        (second, change.alert.rule, change.state)
        for second in seconds
        for change in machine.on_view(view_of(second))
    ]


def test_a_healthy_application_rings_never() -> None:
    assert run(a_view, range(0, 3600, 5)) == []


def test_back_pressure_fires_after_minutes_and_is_resolved_after_one() -> None:
    def view_of(second: int) -> AppView:
        return held_back(0.9 if 100 <= second < 400 or 10 <= second < 50 else 0.0, second)

    assert run(view_of, range(0, 900, 5)) == [
        (280, "back-pressure", "firing"),
        (460, "back-pressure", "resolved"),
    ]


def test_a_value_that_swings_around_the_threshold_rings_once() -> None:
    alerts = AppAlerts()

    changes = run(
        lambda at: held_back(0.55 if at % 2 else 0.55 - 0.2 * (at > 200), at), range(601), alerts
    )

    assert changes == [(180, "back-pressure", "firing")]
    (alert,) = alerts.alerts
    assert alert.since_ms == NOW_MS
    assert alert.text.startswith("orders is held back 35 % of its time: ")


def test_event_time_that_stands_while_records_come_is_a_stalled_clock() -> None:
    def stands(second: int) -> AppView:
        return a_view(second, watermark_ms=NOW_MS)

    assert run(stands, range(0, 200, 5)) == [(60, "stalled-clock", "firing")]
    assert run(lambda at: a_view(at, watermark_ms=NOW_MS, records_in=7), range(0, 900, 5)) == []
    assert run(lambda at: a_view(at, watermark_ms=None), range(0, 900, 5)) == []


def test_a_clock_that_moves_again_is_resolved() -> None:
    def view_of(second: int) -> AppView:
        return a_view(second, watermark_ms=NOW_MS + (0 if second < 100 else second))

    assert run(view_of, range(0, 300, 5)) == [
        (60, "stalled-clock", "firing"),
        (160, "stalled-clock", "resolved"),
    ]


@pytest.mark.parametrize(
    ("rule", "name", "each"),
    [("restarts", "restarts", 1), ("quarantine", "quarantined", 3), ("restarts", "restarts", 5)],
)
def test_counts_that_grow_fire_and_are_forgotten_after_ten_minutes(
    rule: str, name: str, each: int
) -> None:
    def view_of(second: int) -> AppView:
        return a_view(second, **{name: 100 + each * min(3, second // 60)})

    changes = run(view_of, range(0, 1200, 5))

    assert [(what, state) for _, what, state in changes] == [(rule, "firing"), (rule, "resolved")]
    assert changes[0][0] <= 180
    assert 780 <= changes[1][0] <= 850


def test_a_count_that_begins_anew_is_no_decrease() -> None:
    """An app master that was launched again counts from 0."""

    def view_of(second: int) -> AppView:
        return a_view(second, restarts=9 if second < 60 else 1)

    assert run(view_of, range(0, 300, 5)) == []


def test_epochs_that_are_given_up_fire() -> None:
    def view_of(second: int) -> AppView:
        epochs = EpochsSummary(
            region=0, epoch=1, stored_ms=1, size_bytes=1, kept=1, aborted=second // 60
        )
        return replace(a_view(second), epochs=(epochs,))

    assert run(view_of, range(0, 300, 5)) == [(180, "epochs-failing", "firing")]


def test_late_records_fire_by_their_share() -> None:
    def view_of(second: int) -> AppView:
        return a_view(second, late=second // 5)

    ((second, rule, state),) = run(view_of, range(0, 300, 5))

    assert (rule, state) == ("late-records", "firing")
    assert 60 <= second <= 70


def test_memory_counts_where_there_is_a_limit() -> None:
    view = a_view()
    full = replace(view, executors=tuple(replace(e, rss_bytes=95) for e in view.executors))

    def view_of(second: int) -> AppView:
        return replace(full, at_ms=NOW_MS + 1000 * second)

    with_limit = AppAlerts(limits=AlertLimits(memory_max_bytes=100))
    assert run(view_of, range(0, 90, 5), with_limit) == [(60, "executor-memory", "firing")]
    assert run(view_of, range(0, 90, 5)) == []
    assert with_limit.alerts[0].text.startswith("executor 0 uses 95 % of the memory")


def test_what_has_failed_is_told_at_once_and_nothing_else_of_it() -> None:
    alerts = AppAlerts()

    def view_of(second: int) -> AppView:
        view = held_back(0.9, second)
        failed = replace(view, status="failed", finished_ms=NOW_MS + 200_000)
        return failed if second >= 200 else view

    assert run(view_of, range(0, 300, 5), alerts) == [
        (180, "back-pressure", "firing"),
        (200, "failed", "firing"),
        (200, "back-pressure", "resolved"),
    ]
    assert [each.rule for each in alerts.alerts] == ["failed"]


def test_what_waits_to_run_for_five_minutes_is_told() -> None:
    alerts = AppAlerts()

    def view_of(second: int) -> AppView:
        return replace(a_view(second), status="pending", waits="waits for slots: needs 4")

    assert run(view_of, range(0, 400, 10), alerts) == [(300, "waiting", "firing")]
    assert alerts.alerts[0].text.startswith("waits for slots: needs 4: ")


def test_a_book_keeps_the_alerts_of_all_applications() -> None:
    book = AlertBook()
    other = replace(QUIET, app_id=8, name="other")
    for second in range(0, 185, 5):
        changes = book.on_views([held_back(0.9, second), replace(other, at_ms=NOW_MS)])

    assert [(each.app_id, each.state) for each in changes] == [(7, "firing")]
    (alert,) = book.firing()
    assert (alert.app_id, alert.name, alert.rule) == (7, "revenue", "back-pressure")
    assert alert.text.startswith("orders is held back 90 %")
    assert [(each.app_id, each.state) for each in book.on_views([other])] == [(7, "resolved")]
    assert book.firing() == ()


@given(st.lists(st.tuples(st.integers(1, 90), st.floats(0, 1)), max_size=60))
def test_firing_and_resolved_come_in_turns(steps: list[tuple[int, float]]) -> None:
    alerts, second = AppAlerts(), 0
    changes: list[AlertChange] = []
    for pause, share in steps:
        second += pause
        changes += alerts.on_view(held_back(share, second))
        assert bool(alerts.alerts) == (bool(changes) and changes[-1].state == "firing")

    states = [each.state for each in changes]
    assert states == ["firing", "resolved"] * (len(states) // 2) + ["firing"] * (len(states) % 2)


def test_every_rule_is_measured_and_can_be_told() -> None:
    assert [each.name for each in RULES] == list(MEASURES)
    for each in RULES:
        assert each.level in get_args(Level)
        assert 0 < each.below <= each.above
        assert "{value}" in each.says or "{where}" in each.says
        assert each.advice


def test_the_configuration_has_the_same_rules_and_thresholds() -> None:
    known = {each.name: each for each in RULES}
    choices = SETTINGS["alerts.off"].choices

    assert set(choices) == set(known)
    defaults = thresholds_of(DEFAULTS)
    assert defaults == {name: known[name].above for name in defaults}


def test_thresholds_are_ones_own() -> None:
    """That of the end moves along; a rule can be left out."""
    rules = {each.name: each for each in rules_of({"stalled-clock": 120}, off=["restarts"])}

    assert (rules["stalled-clock"].above, rules["stalled-clock"].below) == (120, 60)
    assert "restarts" not in rules
    assert len(rules) == len(RULES) - 1


@given(st.lists(st.sampled_from(["fires", "ends", "silence", "look"]), max_size=30))
def test_of_a_silenced_alert_firing_and_resolved_are_told_in_turns(steps: list[str]) -> None:
    silences, is_firing, until_ms = Silences(), False, 0
    told: list[AlertChange] = []
    for now_ms, step in enumerate(steps):
        changes: list[AlertChange] = []
        if step == "silence":
            until_ms = now_ms + 3
            silences.take(
                AlertSilence(app_id=AppId(7), name="", rule=FIRES.rule, until_ms=until_ms, user="")
            )
        elif step != "look" and is_firing != (step == "fires"):
            is_firing = step == "fires"
            state: Literal["firing", "resolved"] = "firing" if is_firing else "resolved"
            changes = [AlertChange(state=state, at_ms=now_ms, app_id=7, name="", alert=FIRES)]
        news = silences.told(changes, [FIRES] if is_firing else [], now_ms)
        told += news
        if now_ms < until_ms:
            assert "firing" not in {each.state for each in news}
        else:
            assert is_firing == bool(told and told[-1].state == "firing")

    states = [each.state for each in told]
    assert states == (["firing", "resolved"] * len(states))[: len(states)]
