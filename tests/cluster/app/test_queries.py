"""When an app master leaves answers for the time when its process is gone."""

from types import SimpleNamespace
from typing import Any

from gearpy.cluster.app.queries import AppQueries
from gearpy.ids import AppId
from gearpy.messages.cluster import LastAnswer
from gearpy.messages.metrics import SeriesData
from gearpy.messages.summaries import ApplicationDetail

APP = AppId(3)


def answers_of(launch: int) -> tuple[AppQueries, list[LastAnswer]]:
    told: list[LastAnswer] = []
    anything: Any = SimpleNamespace
    status = anything(plan="{}", detail=lambda _: ApplicationDetail(app_id=APP))
    answers = AppQueries(
        anything(app_id=APP, launch=launch),
        anything(is_there=True, tell=told.append),
        status=status,
        versions=anything(summaries=tuple),
        checkpoints=anything(stored_ms=lambda *_: 0, place="memory:", prefix="a"),
    )
    return answers, told


def leave(answers: AppQueries, now_ms: int, *, is_last: bool = False, points: int = 1) -> None:
    core: Any = SimpleNamespace(regions=())
    series = SeriesData(
        app_id=APP, at_ms=tuple(range(1_600_000_000_000, 1_600_000_000_000 + points))
    )
    answers.leave(core, [("0", series)], now_ms, is_last=is_last)


def test_small_answers_are_left_every_ten_seconds() -> None:
    """The first ones soon; the last ones once, and none behind them."""
    answers, told = answers_of(1)
    assert [answers.is_due(at) for at in (1000, 2999, 3000)] == [False, False, True]

    leave(answers, 3000)
    assert {each.kind for each in told} == {
        *("PlanText", "EpochList", "VersionList", "ApplicationDetail", "SeriesData")
    }
    assert [answers.is_due(at) for at in (12_999, 13_000)] == [False, True]
    leave(answers, 13_000, is_last=True)
    leave(answers, 23_000, is_last=True)

    assert [each.is_last for each in told] == 5 * [False] + 5 * [True]


def test_large_answers_are_left_less_often() -> None:
    answers, _ = answers_of(1)

    leave(answers, 0, points=80_000)  # 9 bytes each.

    assert [answers.is_due(at) for at in (20_000, 25_000)] == [False, True]


def test_a_later_launch_waits_until_it_knows_something() -> None:
    """Else one that dies again and again would replace what the first one knew."""
    answers, _ = answers_of(2)

    assert [answers.is_due(at) for at in (0, 29_999, 30_000)] == [False, False, True]
