"""What a master must not forget."""

from collections import defaultdict
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.master.checkpoint_names import PROGRAM_KEY, PROGRAMS_KEY
from gearpy.core.master.commands import (
    AddQuarantined,
    AddWorker,
    ChangeStatus,
    ForgetEnded,
    LaunchAppMaster,
    LoseAppMaster,
    MasterCommand,
    NameCluster,
    RemoveQuarantined,
    StoreValue,
    Submit,
    decode_command,
    encode_command,
)
from gearpy.core.master.registry import TERMINAL
from gearpy.core.master.state import LAUNCHES_MAX, VALUES_MAX, MasterState
from gearpy.errors import ProtocolError
from gearpy.ids import AppId, WorkerId
from gearpy.messages.client import Artifact, SubmitApplication
from gearpy.messages.summaries import ApplicationProgress, ApplicationStatus, ErrorCard

APP = AppId(1)
FAR = ApplicationProgress(records_in=7)


CLUSTER = "k3f9a1c2"


def a_submit(name: str = "words", *, at_ms: int = 1, resume_from: str = "") -> Submit:
    artifact = Artifact(kind="file", location="words.py")
    request = SubmitApplication(name=name, artifact=artifact, resume_from=resume_from)
    return Submit(request=request, at_ms=at_ms)


def a_change(status: ApplicationStatus, *, app_id: int = 1, at_ms: int = 2) -> ChangeStatus:
    return ChangeStatus(app_id=AppId(app_id), status=status, at_ms=at_ms, progress=FAR)


def a_loss(launch: int = 1, *, app_id: int = 1, restarts: int = 0) -> LoseAppMaster:
    return LoseAppMaster(app_id=AppId(app_id), launch=launch, at_ms=5, restarts=restarts)


def a_launch(*, app_id: int = 1, worker_id: int = 0, at_ms: int = 2) -> LaunchAppMaster:
    return LaunchAppMaster(app_id=AppId(app_id), worker_id=WorkerId(worker_id), at_ms=at_ms)


def a_poison(*, app_id: int = 1) -> AddQuarantined:
    return AddQuarantined(
        app_id=AppId(app_id),
        processor_id=2,
        value=b"v",
        event_time_ms=3,
        error=ErrorCard(cause="boom"),
        at_ms=4,
    )


def a_value(key: str = "k", value: bytes = b"v", *, app_id: int = 1) -> StoreValue:
    return StoreValue(app_id=AppId(app_id), key=key, value=value)


def a_state(*commands: MasterCommand) -> MasterState:
    state = MasterState()
    for command in commands:
        state.apply(command)
    return state


# -- the cluster -----------------------------------------------------------------------------


def test_a_cluster_keeps_its_first_id() -> None:
    """Its checkpoints are below it, and would not be found under another."""
    state = MasterState()
    assert state.cluster_id == ""

    assert state.apply(NameCluster(cluster_id=CLUSTER)) == CLUSTER
    assert state.apply(NameCluster(cluster_id="zzzzzzzz")) == CLUSTER

    assert MasterState.from_bytes(state.to_bytes()).cluster_id == CLUSTER


def test_a_snapshot_without_an_id_is_read() -> None:
    """An earlier gearpy wrote none; the master draws one then."""
    fields = {"next_app": 4, "next_worker": 2, "applications": []}

    state = MasterState.from_bytes(msgspec.msgpack.encode((1, fields)))

    assert state.cluster_id == ""
    assert state.apply(a_submit()) == 4


# -- applications ----------------------------------------------------------------------------


def test_unknown_applications_have_nothing() -> None:
    state = MasterState()

    assert state.get(APP) is None
    assert not state.is_living(APP)
    assert state.request_of(APP) is None
    assert (state.launches(APP), state.quarantined(APP), state.values(APP)) == ((), (), {})


def test_a_run_that_goes_on_counts_the_launches_that_it_had_elsewhere() -> None:
    artifact = Artifact(kind="file", location="words.py")
    request = SubmitApplication(
        name="words", artifact=artifact, checkpoints=f"{CLUSTER}/app7", launches=41
    )
    state = MasterState()
    app_id = state.apply(Submit(request=request, at_ms=1))

    assert state.next_launch(app_id) == 42
    assert state.apply(a_launch()) == 42
    assert state.apply(a_loss(42))
    assert state.apply(a_launch()) == 43


@pytest.mark.parametrize(
    ("checkpoints", "told"),
    [(f"{CLUSTER}/app1", "while that runs"), ("../app1", "is no place to resume from")],
)
def test_a_run_does_not_go_on_where_another_runs(checkpoints: str, told: str) -> None:
    """It would take its log away from it."""
    state = MasterState()
    state.apply(NameCluster(cluster_id=CLUSTER))
    state.apply(a_submit("first"))
    artifact = Artifact(kind="file", location="words.py")

    refusal = state.refusal_of(
        SubmitApplication(name="words", artifact=artifact, checkpoints=checkpoints)
    )

    assert told in refusal


def test_nothing_resumes_from_what_runs() -> None:
    """Its epochs are replaced while the new one looks for them, and both would write."""
    state = a_state(NameCluster(cluster_id=CLUSTER), a_submit())
    request = a_submit("next", resume_from=f"{CLUSTER}/app1@").request

    refusal = state.refusal_of(request)
    state.apply(a_change("terminated"))

    assert refusal.startswith("application 'next' cannot begin with a checkpoint of application 1")
    assert state.refusal_of(request) == ""


def test_another_cluster_may_have_the_same_number() -> None:
    state = a_state(NameCluster(cluster_id=CLUSTER), a_submit())

    assert state.refusal_of(a_submit("next", resume_from="zzzzzzzz/app1@4").request) == ""
    assert state.refusal_of(a_submit("next", resume_from=f"{CLUSTER}/app9@4").request) == ""


def test_no_place_to_resume_from_is_refused() -> None:
    refusal = MasterState().refusal_of(a_submit(resume_from="../app1@").request)

    assert refusal.startswith("application 'words': '../app1@' is no place to resume from")


def test_progress_of_the_living_is_not_stored() -> None:
    state = a_state(a_submit(), a_change("active"))
    before = state.to_bytes()

    state.on_progress(APP, ApplicationProgress(records_in=8))

    summary = state.get(APP)
    assert summary is not None
    assert summary.progress.records_in == 8
    assert state.to_bytes() == before
    state.apply(a_change("failed"))
    state.on_progress(APP, ApplicationProgress(records_in=9))
    assert state.get(APP) == MasterState.from_bytes(state.to_bytes()).get(APP)


# -- app masters -----------------------------------------------------------------------------


def test_launches_are_counted_from_one() -> None:
    state = a_state(a_submit())

    numbers = [state.apply(a_launch(worker_id=worker, at_ms=worker)) for worker in (5, 3)]

    assert numbers == [1, 2]
    assert [(each.number, each.worker_id, each.at_ms) for each in state.launches(APP)] == [
        (1, 5, 5),
        (2, 3, 3),
    ]


def test_restarts_count_over_all_app_masters() -> None:
    """Each of them begins to count anew; what the master had heard by the loss is kept."""
    state = a_state(a_submit(), a_launch())
    one = ApplicationProgress(records_in=5, restarts=3)
    assert state.whole(APP, one) == one

    state.apply(a_loss(1, restarts=3))
    state.apply(a_launch())
    second = state.whole(APP, ApplicationProgress(records_in=6, restarts=2))
    state.apply(a_loss(2, restarts=second.restarts))

    assert second == ApplicationProgress(records_in=6, restarts=5)
    again = MasterState.from_bytes(state.to_bytes())
    assert again.whole(APP, ApplicationProgress(restarts=1)).restarts == 6


def test_what_was_known_stays_while_an_app_master_knows_nothing() -> None:
    state = a_state(a_submit(), a_launch())
    one = ApplicationProgress(records_in=5, records_out=4, epoch=3, restarts=3)
    state.on_progress(APP, one)
    state.apply(a_loss(1, restarts=3))
    state.apply(a_launch())

    blind = state.whole(APP, ApplicationProgress(waits_for="its store: it is away"))
    state.on_progress(APP, blind)
    begun = state.whole(APP, ApplicationProgress(epoch=3))

    assert blind == replace(one, waits_for="its store: it is away")
    assert begun == ApplicationProgress(epoch=3, restarts=3)


def test_restarts_are_never_counted_less() -> None:
    state = a_state(a_submit(), a_launch(), a_loss(1, restarts=3), a_launch(), a_loss(2))

    assert state.whole(APP, ApplicationProgress(restarts=1)).restarts == 4


def test_the_loss_of_another_launch_brings_no_restarts() -> None:
    state = a_state(a_submit(), a_launch(), a_launch(), a_loss(1, restarts=9))

    assert state.whole(APP, ApplicationProgress(restarts=1)).restarts == 1
    assert state.whole(AppId(9), ApplicationProgress(restarts=1)).restarts == 1


def test_launches_are_remembered_up_to_a_limit() -> None:
    state = a_state(a_submit(), *[a_launch() for _ in range(LAUNCHES_MAX + 5)])

    assert len(state.launches(APP)) == LAUNCHES_MAX
    assert state.apply(a_launch()) == LAUNCHES_MAX + 6


# -- values ----------------------------------------------------------------------------------


def test_values_are_kept_until_the_end() -> None:
    """A new app master goes on from them; nobody needs them afterwards."""
    state = a_state(a_submit(), a_value("a"), a_value("b"), a_value("a", b"new"))
    assert state.values(APP) == {"a": b"new", "b": b"v"}

    state.apply(LoseAppMaster(app_id=APP, launch=1, at_ms=5))
    assert state.values(APP)
    state.apply(a_change("failed"))

    assert state.values(APP) == {}
    assert state.apply(a_value()) is False
    assert state.values(APP) == {}


def test_keys_have_a_limit() -> None:
    state = a_state(a_submit(), *[a_value(str(number)) for number in range(VALUES_MAX)])

    assert state.apply(a_value("new")) is False
    assert state.apply(a_value("0", b"new")) is True
    assert len(state.values(APP)) == VALUES_MAX


# -- quarantine ------------------------------------------------------------------------------


def test_quarantined_records_are_numbered_and_outlive_the_end() -> None:
    """A number is not used again, so that nobody replays another record by mistake."""
    state = a_state(a_submit())
    assert [state.apply(a_poison()) for _ in range(3)] == [1, 2, 3]

    state.apply(RemoveQuarantined(app_id=APP, numbers=(3, 1, 99)))
    assert state.apply(a_poison()) == 4
    state.apply(a_change("failed"))

    assert [each.number for each in state.quarantined(APP)] == [2, 4]
    assert state.quarantined(APP)[0].error.cause == "boom"
    assert state.apply(a_poison()) is None
    assert state.apply(RemoveQuarantined(app_id=AppId(9), numbers=(1,))) is None


# -- forgetting ------------------------------------------------------------------------------


def test_the_oldest_ends_are_forgotten_first() -> None:
    state = a_state(
        *[a_submit(f"app{number}") for number in range(5)],
        a_change("failed", app_id=3, at_ms=10),
        a_change("succeeded", app_id=1, at_ms=30),
        a_change("terminated", app_id=2, at_ms=20),
        a_poison(app_id=4),
    )
    assert state.ended_count == 3

    assert state.apply(ForgetEnded(keep=1)) == (3, 2)

    assert [each.app_id for each in state.summaries()] == [1, 4, 5]
    assert state.request_of(AppId(3)) is None
    assert state.apply(ForgetEnded(keep=1)) == ()
    assert state.apply(ForgetEnded(keep=0)) == (1,)
    assert state.apply(a_submit("more")) == 6


# -- workers ---------------------------------------------------------------------------------


def test_worker_ids_are_given_once() -> None:
    state = MasterState()
    assert not state.is_given(WorkerId(0))

    assert [state.apply(AddWorker()) for _ in range(2)] == [0, 1]

    again = MasterState.from_bytes(state.to_bytes())
    assert again.is_given(WorkerId(1))
    assert not again.is_given(WorkerId(2))
    assert not again.is_given(WorkerId(-1))
    assert again.apply(AddWorker()) == 2


# -- snapshots -------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\x00", msgspec.msgpack.encode((1, {})), b"\x92\x01\xc1"])
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="the master's snapshot is none"):
        MasterState.from_bytes(data)


def test_a_snapshot_of_another_gearpy_is_refused() -> None:
    data = msgspec.msgpack.encode((2, {}))

    with pytest.raises(ProtocolError, match="has version 2, this gearpy knows 1"):
        MasterState.from_bytes(data)


small = st.integers(1, 4)
commands: st.SearchStrategy[MasterCommand] = st.one_of(
    st.builds(a_submit, st.sampled_from(["a", "b", "c"]), at_ms=small),
    st.builds(a_change, st.sampled_from(get_args(ApplicationStatus)), app_id=small, at_ms=small),
    st.builds(a_launch, app_id=small, worker_id=small, at_ms=small),
    st.builds(a_loss, small, app_id=small, restarts=small),
    st.builds(NameCluster, cluster_id=st.sampled_from(["aaaaaaaa", "bbbbbbbb"])),
    st.builds(a_value, st.sampled_from("xy"), st.binary(max_size=2), app_id=small),
    st.builds(a_poison, app_id=small),
    st.builds(
        RemoveQuarantined, app_id=small.map(AppId), numbers=st.lists(small).map(tuple[int, ...])
    ),
    st.just(AddWorker()),
    st.builds(ForgetEnded, keep=st.integers(0, 2)),
)


@settings(max_examples=100)
@given(st.lists(st.tuples(commands, st.booleans(), st.booleans()), max_size=40))
def test_replaying_gives_the_same_state_and_the_same_results(
    steps: list[tuple[MasterCommand, bool, bool]],
) -> None:
    """The invariant: through the log, with a snapshot anywhere, and progress in between."""
    state, replayed = MasterState(), MasterState()
    results = defaultdict[type, list[Any]](list)

    for command, is_snapshot, is_told in steps:
        if isinstance(command, Submit) and state.refusal_of(command.request):
            continue
        if is_told:
            state.on_progress(APP, ApplicationProgress(records_in=99, restarts=4))
        if is_snapshot:
            replayed = MasterState.from_bytes(replayed.to_bytes())
        result = state.apply(command)
        assert replayed.apply(decode_command(encode_command(command))) == result
        assert replayed.to_bytes() == state.to_bytes()
        results[type(command)].append(result)
        for each in state.summaries():
            assert each.status not in TERMINAL or not state.values(each.app_id)

    for ids in (results[Submit], results[AddWorker]):
        assert ids == sorted(set(ids))
    assert len(set(results[NameCluster])) <= 1


def a_stored(name: str, program: str, at_ms: int = 1) -> Submit:
    artifact = Artifact(kind="stored", location=program)
    return Submit(request=SubmitApplication(name=name, artifact=artifact), at_ms=at_ms)


def test_programs_are_needed_while_an_application_may_begin_with_them() -> None:
    """Those of its versions while it lives; then the one that a restart begins with."""
    state = MasterState()
    state.apply(a_stored("one", "aa"))
    running = msgspec.json.encode(Artifact(kind="stored", location="cc"))
    state.apply(StoreValue(app_id=APP, key=PROGRAM_KEY, value=running))
    state.apply(StoreValue(app_id=APP, key=PROGRAMS_KEY, value=b'["aa", "bb", "cc"]'))
    assert state.needed_programs(ended_after_ms=0).keys() == {"aa", "bb", "cc"}

    state.apply(a_change("failed", at_ms=50))
    assert state.needed_programs(ended_after_ms=49).keys() == {"aa", "cc"}
    assert state.program_again(APP) == Artifact(kind="stored", location="cc")
    assert state.needed_programs(ended_after_ms=50) == {}


def test_a_program_of_several_applications_is_of_one_that_lives() -> None:
    state = MasterState()
    state.apply(a_stored("one", "aa"))
    state.apply(a_stored("two", "aa"))
    state.apply(a_stored("three", "bb"))
    state.apply(a_submit("without-upload"))
    state.apply(a_change("failed"))
    state.apply(a_change("failed", app_id=3))
    for late_ms in (0, 1000):
        needed = state.needed_programs(ended_after_ms=late_ms)
        assert needed["aa"].app_id == 2
        assert ("bb" in needed) == (late_ms == 0)
        assert needed.keys() <= {"aa", "bb"}


def test_all_masters_need_the_same_programs() -> None:
    state = MasterState()
    state.apply(a_stored("one", "aa"))
    state.apply(StoreValue(app_id=APP, key=PROGRAMS_KEY, value=b'["aa", "bb"]'))
    again = MasterState.from_bytes(state.to_bytes())
    needed = state.needed_programs(ended_after_ms=0)
    assert needed.keys() == again.needed_programs(ended_after_ms=0).keys() == {"aa", "bb"}
