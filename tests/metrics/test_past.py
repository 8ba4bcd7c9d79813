"""What is left of measurements when an application has ended gives the same answers."""

from typing import get_args

import pytest

from gearpy.messages.metrics import GetHistory, GetSeries, HistoryPoints, ReadOption
from gearpy.metrics.application import Outline
from gearpy.metrics.past import history_of, series_since
from gearpy.wire.codec import decode_control, encode_control
from tests.metrics.test_application import APP, FRAME_BYTES_MAX, Watched

_MINUTE_MS = 60_000


def a_past(*, parallelism: int = 2, minutes: int = 130) -> Watched:
    watched = Watched(parallelism=parallelism)
    for minute in range(1, minutes):
        watched.report(records=minute * 100, busy_ms=minute)
        watched.pass_ms(_MINUTE_MS)
    return watched


@pytest.mark.parametrize("option", get_args(ReadOption))
def test_history_is_answered_as_before_the_end(option: ReadOption) -> None:
    watched = a_past()
    left = decode_control(encode_control(watched.points(option)))
    assert isinstance(left, HistoryPoints)

    for asked in (
        GetHistory(app_id=APP, read_option=option),
        GetHistory(app_id=APP, read_option=option, path="app1.processor1"),
        GetHistory(app_id=APP, read_option=option, aggregator="ProcessorAggregator"),
        GetHistory(app_id=APP, read_option=option, limit=3),
    ):
        known = watched.kept.history(asked, watched.now_ms, watched.clocks)
        assert known.items
        assert history_of(left, asked) == known


def test_of_very_many_tasks_the_newest_points_are_left() -> None:
    names = {pid: str(pid) for pid in range(30)}
    watched = Watched(
        parallelism=10, outline=Outline(names=names, sources=frozenset({0}), sinks=frozenset({29}))
    )
    for _ in range(72):
        watched.report()
        watched.pass_ms(60 * _MINUTE_MS)

    left = watched.points("readHistory")

    assert len(encode_control(left)) < FRAME_BYTES_MAX
    times = [each.at_ms for each in left.points]
    assert 10 < len(times) < 72
    assert times == sorted(times)
    assert times[-1] == watched.now_ms


def test_a_series_begins_where_it_is_asked_to() -> None:
    """As an app master would answer."""
    watched = a_past(minutes=5)
    whole = watched.kept.series(GetSeries(app_id=APP))
    assert len(whole.at_ms) == 4
    for since_ms in (0, *whole.at_ms):
        asked = GetSeries(app_id=APP, since_ms=since_ms)

        assert series_since(whole, since_ms) == watched.kept.series(asked)
