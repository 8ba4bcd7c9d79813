"""Answers that app masters leave behind."""

from msgspec.structs import replace

from gearpy.cluster.master.last_answers import LastAnswers
from gearpy.ids import AppId
from gearpy.messages.client import Refused
from gearpy.messages.cluster import GetLastAnswer, LastAnswer


def left(app_id: int, *, launch: int = 1, kind: str = "MetricsData", size: int = 1) -> LastAnswer:
    return LastAnswer(app_id=AppId(app_id), launch=launch, kind=kind, answer=bytes(size))


def keep(kept: LastAnswers, *messages: LastAnswer, at_ms: int = 0, has_ended: bool = True) -> None:
    for each in messages:
        kept.keep(each, at_ms=at_ms, has_ended=has_ended)


def asked(kept: LastAnswers, app_id: int, kind: str = "MetricsData") -> LastAnswer | Refused:
    return kept.answer(GetLastAnswer(app_id=AppId(app_id), kind=kind))


def test_an_answer_is_found_by_its_kind() -> None:
    kept = LastAnswers()
    keep(kept, left(1))
    keep(kept, left(1, kind="SeriesData"))

    assert asked(kept, 1) == left(1)
    assert asked(kept, 1, "SeriesData") == left(1, kind="SeriesData")
    assert isinstance(asked(kept, 1, "ApplicationDetail"), Refused)
    assert isinstance(asked(kept, 2), Refused)


def test_an_answer_may_have_parts() -> None:
    kept = LastAnswers()
    first, second = left(1), replace(left(1), part="40")
    keep(kept, first)
    keep(kept, second)

    assert asked(kept, 1) == first
    question = GetLastAnswer(app_id=AppId(1), kind="MetricsData", part="40")
    assert kept.answer(question) == second


def test_a_later_launch_knows_more() -> None:
    kept = LastAnswers()
    for launch in (2, 3, 1):
        keep(kept, left(1, launch=launch))

    assert asked(kept, 1) == left(1, launch=3)


def test_the_applications_that_ended_first_are_forgotten_first() -> None:
    kept = LastAnswers()
    for number in range(1, 31):
        keep(kept, left(number))

    assert [isinstance(asked(kept, each), LastAnswer) for each in (10, 11, 30)] == [
        False,
        True,
        True,
    ]


def test_what_is_kept_is_bounded_by_its_size() -> None:
    kept = LastAnswers()
    for number in (1, 2, 3):
        keep(kept, left(number, size=40 * 1024 * 1024))

    assert [isinstance(asked(kept, each), LastAnswer) for each in (1, 2, 3)] == [False, False, True]


def test_the_last_answers_of_a_launch_are_better_than_those_before() -> None:
    """Whenever they come; the time is that of the master."""
    kept = LastAnswers()
    early, last = replace(left(1), is_last=False), left(1, size=2)
    keep(kept, early, at_ms=5, has_ended=False)
    assert asked(kept, 1) == replace(early, at_ms=5)
    keep(kept, last, at_ms=9, has_ended=False)
    kept.on_ended(AppId(1))
    keep(kept, early, at_ms=11)

    assert asked(kept, 1) == replace(last, at_ms=9)


def test_those_that_run_drop_nothing_of_those_that_have_ended() -> None:
    """However many they are, and however often they tell."""
    kept = LastAnswers()
    keep(kept, left(1), has_ended=False)
    kept.on_ended(AppId(1))
    for number in range(2, 60):
        keep(kept, left(number, size=2 * 1024 * 1024), has_ended=False)

    assert isinstance(asked(kept, 1), LastAnswer)
    assert isinstance(asked(kept, 2), Refused)
    assert isinstance(asked(kept, 59), LastAnswer)
