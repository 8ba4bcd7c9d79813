"""What a program gets from a cluster, and which error when it gets nothing."""

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from gearpy.cluster.client.client import ClusterClient
from gearpy.errors import AskTimeout, ChangeFailed, ConfigError, ProtocolError, SubmitRefused
from gearpy.ids import MASTER_EXECUTOR, AppId, ExecutorId, SessionId, TaskId
from gearpy.messages.client import (
    ApplicationList,
    Asker,
    DescribeApplication,
    EpochList,
    GetApplication,
    GetEpochs,
    ListApplications,
    ListQuarantined,
    ListWorkers,
    LogText,
    PlannedMove,
    QuarantinedList,
    ReadLog,
    Refused,
    ReplayAccepted,
    ReplayNow,
    ReplayQuarantined,
    RestartApplication,
    StoredEpoch,
    Submitted,
    UpdateApplication,
    UpdatePlanned,
    VersionList,
    VersionSummary,
    WorkerList,
)
from gearpy.messages.metrics import (
    GetMetrics,
    GetSeries,
    MetricsData,
    ProcessorSeries,
    SeriesData,
    TaskSample,
)
from gearpy.messages.question import Question, answer_of
from gearpy.messages.summaries import (
    ApplicationDetail,
    ApplicationStatus,
    ApplicationSummary,
    ClockHolderSummary,
    ScaleBounds,
)
from gearpy.wire.codec import CONTROL_CLASSES

APP = AppId(2)
ANN = Asker(user="ann")


def an_application(
    app_id: int = APP, *, name: str = "shop", status: ApplicationStatus = "active"
) -> ApplicationSummary:
    return ApplicationSummary(app_id=AppId(app_id), name=name, status=status)


def an_epoch(number: int) -> StoredEpoch:
    return StoredEpoch(
        region=0, epoch=number, stored_ms=0, size_bytes=0, files=1, clock_ms=None, cut_time_ms=None
    )


def a_client(*answers: object) -> tuple[ClusterClient, list[object]]:
    """Return a client whose questions get these answers in turn, and what it asks."""
    asked, left = list[object](), list(answers)

    def _ask(message: object) -> object:
        asked.append(message)
        return left.pop(0)

    return ClusterClient(_ask, ANN), asked


def test_a_question_names_the_kind_of_its_answer() -> None:
    client, asked = a_client(WorkerList(workers=()), Refused(reason="no"))

    assert client.ask(ListWorkers()).workers == ()
    with pytest.raises(SubmitRefused, match="no"):
        client.ask(ListWorkers())
    assert asked == [ListWorkers(), ListWorkers()]


@pytest.mark.parametrize(
    "question", [each for each in CONTROL_CLASSES.values() if issubclass(each, Question)]
)
def test_the_answer_to_each_question_is_a_message(question: type[Question[Any]]) -> None:
    assert CONTROL_CLASSES[answer_of(question).__name__] is answer_of(question)


@pytest.mark.parametrize(
    ("next_to_end", "newest"),
    [(((0, 6),), [5, 5, 6]), (((0, 7),), [5, 6, 7]), ((), [5, 6, 7])],
    ids=["at rest", "while one ends", "older app master"],
)
def test_a_look_at_now_waits_for_the_first_epoch_that_ends_for_it(
    next_to_end: tuple[tuple[int, int], ...], newest: list[int]
) -> None:
    lists = [
        EpochList(app_id=APP, epochs=(an_epoch(epoch),), next_to_end=next_to_end)
        for epoch in newest
    ]
    client, asked = a_client(*lists, Refused(reason="no store"))

    with pytest.raises(SubmitRefused, match="no store"):
        client.states(APP, at="now")

    first = GetEpochs(app_id=APP, ends_one=True)
    again = replace(first, until=next_to_end or ((0, 7),))
    assert asked == [first, again, again, GetEpochs(app_id=APP)]


def test_an_answer_to_another_question_is_nonsense() -> None:
    client, _ = a_client(WorkerList(workers=()))

    with pytest.raises(ProtocolError, match="DescribeApplication was answered with WorkerList"):
        client.ask(DescribeApplication(app_id=APP))


def test_a_number_is_an_id_without_a_question() -> None:
    client, asked = a_client()

    assert client.find("17") == 17
    assert asked == []


def test_a_name_is_that_of_the_living() -> None:
    """The name of one that has ended may have been taken since."""
    known = (an_application(1, status="failed"), an_application(2), an_application(3, name="other"))
    client, asked = a_client(ApplicationList(applications=known))

    assert client.find("shop") == 2
    assert asked == [ListApplications()]


def test_a_name_is_that_of_the_newest_if_none_lives() -> None:
    known = (an_application(1, status="failed"), an_application(2, status="terminated"))
    client, _ = a_client(ApplicationList(applications=known))

    assert client.find("shop") == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("none", r"no application is called 'none'; there are: old \(1\), shop \(2\)"),
        ("²", "no application is called"),
        ("", "no application is called ''"),
        ("-1", "no application is called '-1'"),
    ],
)
def test_a_name_that_nobody_has_is_refused_with_those_that_are_there(name: str, text: str) -> None:
    known = (
        an_application(1, name="old", status="failed"),
        an_application(2),
        an_application(3, name="old", status="succeeded"),
    )
    client, _ = a_client(ApplicationList(applications=known))

    with pytest.raises(SubmitRefused, match=text):
        client.find(name)


def test_why_is_a_part_of_the_description() -> None:
    holder = ClockHolderSummary(
        task="0.0", name="files", clock_ms=1, watermark_ms=1, waits_for="upstream"
    )
    client, asked = a_client(ApplicationDetail(app_id=APP, why=(holder,)))

    assert client.ask(DescribeApplication(app_id=APP)).why == (holder,)
    assert asked == [DescribeApplication(app_id=APP)]


def test_a_restart_gives_the_new_application() -> None:
    client, asked = a_client(Submitted(app_id=AppId(5)), an_application(5))

    running = client.restart(APP)

    assert (running.app_id, running.name) == (5, "shop")
    assert asked == [RestartApplication(app_id=APP, by=ANN), GetApplication(app_id=AppId(5))]


def test_a_replay_tells_the_epoch() -> None:
    client, asked = a_client(ReplayAccepted(app_id=APP, epoch=7))

    assert client.replay(APP) == 7
    assert asked == [ReplayNow(app_id=APP, by=ANN)]


def test_a_log_is_that_of_the_app_master_unless_it_is_another() -> None:
    text = LogText(source="s", text="t", launch=3, position="1:2")
    client, asked = a_client(text, text)

    assert client.ask(ReadLog(app_id=APP, executor_id=MASTER_EXECUTOR, lines=100)) == text
    client.ask(
        ReadLog(app_id=APP, executor_id=ExecutorId(4), lines=5, launch=6, after=text.position)
    )

    assert asked == [
        ReadLog(app_id=APP, executor_id=ExecutorId(-1), lines=100),
        ReadLog(app_id=APP, executor_id=ExecutorId(4), lines=5, launch=6, after="1:2"),
    ]


def test_records_are_named_by_numbers() -> None:
    listed = QuarantinedList(app_id=APP, records=())
    client, asked = a_client(listed, listed, listed)

    assert client.ask(ListQuarantined(app_id=APP)) == listed
    client.ask(ListQuarantined(app_id=APP, numbers=(3,)))
    assert client.replay_quarantined(APP, [3, 4]) == ()

    assert asked == [
        ListQuarantined(app_id=APP),
        ListQuarantined(app_id=APP, numbers=(3,)),
        ReplayQuarantined(app_id=APP, numbers=(3, 4), by=ANN),
    ]


def test_wait_waits_for_an_application_of_another_program() -> None:
    client, _ = a_client(
        an_application(), an_application(), an_application(status="succeeded"), an_application()
    )

    assert client.wait(APP).status == "succeeded"


def test_wait_returns_when_its_time_is_up() -> None:
    client, _ = a_client(an_application(), an_application())

    assert client.wait(APP, timeout_s=0).status == "active"


def a_sample(index: int) -> TaskSample:
    return TaskSample(task_id=TaskId(0, index), session=SessionId(1))


def test_measurements_of_many_tasks_come_in_several_answers() -> None:
    first = MetricsData(
        app_id=APP, at_ms=9, processors={0: "read"}, tasks=(a_sample(0),), more_from=1
    )
    second = MetricsData(app_id=APP, at_ms=10, tasks=(a_sample(1), a_sample(2)))
    client, asked = a_client(first, second)

    data = client.metrics(APP)

    assert data == replace(first, tasks=(a_sample(0), a_sample(1), a_sample(2)), more_from=0)
    assert asked == [GetMetrics(app_id=APP), GetMetrics(app_id=APP, first=1)]


def test_series_of_many_processors_come_in_several_answers() -> None:
    """If a point has come meanwhile, they are asked for anew: columns are equally long."""
    one, two = ProcessorSeries(processor_id=0), ProcessorSeries(processor_id=1)
    old = SeriesData(app_id=APP, at_ms=(1,), processors=(one,), more_from=1)
    new = SeriesData(app_id=APP, at_ms=(1, 2), processors=(one,), more_from=1)
    rest = SeriesData(app_id=APP, at_ms=(1, 2), processors=(two,))
    client, asked = a_client(old, rest, new, rest)

    series = client.series(APP, since_ms=5)

    assert series == replace(new, processors=(one, two), more_from=0)
    assert asked == 2 * [
        GetSeries(app_id=APP, since_ms=5),
        GetSeries(app_id=APP, since_ms=5, first=1),
    ]


def planned(version: int = 1, *, refusal: str = "") -> UpdatePlanned:
    move = PlannedMove(step="sum", name="sum", fate="kept", is_lost=False, text="kept sum [sum]")
    return UpdatePlanned(app_id=APP, version=version, moves=(move,), refusal=refusal)


def a_version(state: Literal["trial", "running", "failed"]) -> VersionList:
    version = VersionSummary(
        number=1,
        filename="shop.py",
        args=(),
        scale=(),
        change="scale sum=8",
        by="ann",
        at_ms=1,
        state=state,
        reason="KeyError: 'x'" if state == "failed" else "",
        epoch=7,
    )
    return VersionList(app_id=APP, versions=(version,))


def _without_key(message: object) -> UpdateApplication:
    assert isinstance(message, UpdateApplication)
    assert message.key
    return replace(message, key="")


def test_steps_are_scaled_by_their_names() -> None:
    """Those that are no names of Python in a mapping; the change is waited for."""
    client, asked = a_client(
        an_application(),
        planned(),
        a_version("trial"),
        an_application(),
        a_version("running"),
        a_version("running"),
    )
    running = client.running(APP)

    change = running.scale({"by day": 2, "by hour": "1..4"}, sum=8)

    assert str(change) == "kept sum [sum]\nno state is dropped"
    assert change.wait(60).epoch == 7
    assert running.history() == a_version("running").versions
    assert _without_key(asked[1]) == UpdateApplication(
        app_id=APP,
        scale=(("by day", 2), ("sum", 8)),
        bounds=(("by hour", ScaleBounds(least=1, most=4)),),
        by=ANN,
    )


def test_a_version_that_fails_its_trial_is_an_error() -> None:
    client, asked = a_client(an_application(), planned(), a_version("failed"))
    change = client.running(APP).rollback(0, allow_drop=True, at="1970-01-01T00:00:01Z")

    with pytest.raises(ChangeFailed, match="version 1 of 'shop' has failed: KeyError: 'x'"):
        change.wait()

    assert _without_key(asked[1]) == UpdateApplication(
        app_id=APP, version=0, allows_drop=True, at_event_ms=1000, by=ANN
    )


def test_a_version_is_waited_for_no_longer_than_its_application_lives() -> None:
    """Its end may have come between two questions; then it has left its last word."""
    ended = an_application(status="terminated")
    settled, _ = a_client(a_version("trial"), ended, a_version("running"))
    cut_short, _ = a_client(a_version("trial"), ended, a_version("trial"))

    assert settled.wait_for_version(APP, 1).state == "running"
    with pytest.raises(SubmitRefused, match="is terminated, before version 1 was in place"):
        cut_short.wait_for_version(APP, 1)


def test_a_version_that_nobody_knows_of_is_not_waited_for_beyond_the_time_out() -> None:
    client, _ = a_client(a_version("running"), an_application())

    with pytest.raises(AskTimeout, match="has told nothing of version 9"):
        client.wait_for_version(APP, 9, timeout_s=0)


def test_a_change_that_is_refused_is_an_error_unless_it_is_only_planned() -> None:
    client, _ = a_client(an_application(), planned(refusal="no"), planned(refusal="no"))
    running = client.running(APP)

    with pytest.raises(ConfigError, match="no"):
        running.scale(sum=3)
    change = running.scale(sum=3, dry_run=True)

    assert change.plan.refusal == "no"
    with pytest.raises(ConfigError, match="only planned"):
        change.wait()
