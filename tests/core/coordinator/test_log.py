"""The state that a coordinator log leads to, and what its views make of it."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.coordinator.log import EPOCH, VERSION, CoordinatorMessage, CoordinatorState
from gearpy.core.coordinator.views import (
    DAG,
    SET_CHANGELOG,
    SET_CHECKPOINT,
    SET_CONFIG,
    ChangelogPartitions,
    ConfigView,
    DagVersion,
    DagVersions,
    EpochManifests,
    SourcePlaces,
    TaskPlaces,
    task_of,
)
from gearpy.core.epoch.epochs import Manifest, encode_manifest
from gearpy.errors import ProtocolError
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile, TakenGroups, TaskOffsets

ONE, TWO, TEN = TaskId(0, 0), TaskId(0, 2), TaskId(0, 10)


def a_message(
    type_: str, key: str, values: Mapping[str, Any] | None, *, version: int = 1
) -> CoordinatorMessage:
    return CoordinatorMessage(type=type_, key=key, values=values, version=version)


def apply(state: CoordinatorState, drafts: Iterable[CoordinatorMessage]) -> None:
    for each in drafts:
        state.on_message(a_message(each.type, each.key, each.values))


def state_of(*messages: CoordinatorMessage) -> CoordinatorState:
    return CoordinatorState(messages)


def a_manifest(epoch: int, region: int = 0) -> Manifest:
    file = SnapshotFile(location=f"e{epoch}", sha256="0f", tasks=(ONE,), size_bytes=9)
    return Manifest(region=region, epoch=epoch, attempt=1, clock_ms=epoch, snapshots=(file,))


# -- the state -------------------------------------------------------------------------------


@given(
    st.lists(
        st.builds(
            a_message,
            st.sampled_from(["a", "b"]),
            st.sampled_from(["k", "q"]),
            st.none() | st.fixed_dictionaries({"v": st.integers(0, 3)}),
        )
    ),
    st.integers(0, 20),
)
def test_a_compacted_log_leads_to_the_same_state(
    messages: list[CoordinatorMessage], at: int
) -> None:
    compacted = state_of(*messages[:at]).messages() + messages[at:]

    assert state_of(*compacted) == state_of(*messages)


# -- epochs ----------------------------------------------------------------------------------


def test_manifests_come_back_in_the_order_of_their_epochs() -> None:
    state = state_of()
    epochs = EpochManifests(state)
    for manifest in (a_manifest(9), a_manifest(10), a_manifest(3, region=2), a_manifest(11)):
        apply(state, epochs.messages_for(manifest))

    assert epochs.manifests(0) == [a_manifest(9), a_manifest(10), a_manifest(11)]
    assert epochs.manifests(1) == []
    assert epochs.regions() == [0, 2]


def test_an_epoch_with_files_that_were_taken_over_is_not_for_an_earlier_gearpy() -> None:
    """It would read what others have stored in them as well; all other epochs it may read."""
    plain = a_manifest(9)
    (file, *_) = plain.snapshots
    taken = TakenGroups(task=file.tasks[0], source=TEN, via=TWO, first=0, last=511)
    manifest = replace(plain, epoch=10, snapshots=(replace(file, taken=(taken,)),))
    state = state_of()
    epochs = EpochManifests(state)
    drafts = [epochs.messages_for(each) for each in (plain, manifest)]
    apply(state, [each for of_epoch in drafts for each in of_epoch])

    assert [each.version for of_epoch in drafts for each in of_epoch] == [1, 2]
    assert epochs.manifests(0) == [plain, manifest]


def test_a_dropped_epoch_is_gone() -> None:
    state = state_of()
    epochs = EpochManifests(state)
    apply(state, epochs.messages_for(a_manifest(1)))
    apply(state, epochs.messages_for(a_manifest(2)))

    apply(state, epochs.drop_messages(0, 1))

    assert epochs.manifests(0) == [a_manifest(2)]
    assert epochs.drop_messages(0, 1) == []


def test_an_epoch_says_where_its_sources_were() -> None:
    state = state_of()
    offsets = TaskOffsets(task_id=ONE, offsets={"p": b"5", "q": b""})

    drafts = EpochManifests(state).messages_for(a_manifest(7), [offsets])
    apply(state, drafts)

    assert [each.type for each in drafts] == [SET_CHECKPOINT, EPOCH]
    assert SourcePlaces(state).read(ONE) == TaskPlaces(
        task=ONE, epoch=7, offsets={"p": b"5", "q": b""}
    )


@pytest.mark.parametrize(
    ("message", "mistake"),
    [
        (a_message(EPOCH, "0", {}), "message epoch 0 .* its key is not two numbers with '/'"),
        (a_message(EPOCH, "0/-1", {}), "not two numbers"),
        (a_message(EPOCH, "²/1", {}), "not two numbers"),
        (a_message(EPOCH, "0/1", {}), "it has no manifest"),
        (a_message(EPOCH, "0/1", {"manifest": b"?"}), "malformed manifest"),
        (
            a_message(EPOCH, "0/1", {"manifest": encode_manifest(a_manifest(2))}),
            "its manifest is of region 0, epoch 2",
        ),
        (
            a_message(EPOCH, "0/1", {"manifest": b"new"}, version=3),
            "message epoch 0/1 .* has version 3, this gearpy understands 2: use",
        ),
    ],
)
def test_what_is_no_manifest_is_told(message: CoordinatorMessage, mistake: str) -> None:
    """It must be understood: a restart would go back to the wrong place."""
    with pytest.raises(ProtocolError, match=mistake):
        EpochManifests(state_of(message)).manifests(0)


# -- places of sources -----------------------------------------------------------------------


def test_tasks_are_in_order() -> None:
    state = state_of()
    checkpoints = SourcePlaces(state)
    for task in (TEN, TWO, ONE):
        apply(state, [checkpoints.write(TaskOffsets(task_id=task, offsets={}), epoch=1)])

    assert [each.task for each in checkpoints.read_all()] == [ONE, TWO, TEN]


def overridden(*, epoch: int | None = None) -> CoordinatorState:
    """Return the state after epoch 4 has ended, and one of two partitions was overridden."""
    state = state_of()
    checkpoints = SourcePlaces(state)
    offsets = TaskOffsets(task_id=ONE, offsets={"p": b"4", "q": b"4"})
    apply(state, [checkpoints.write(offsets, epoch=4)])
    new = TaskOffsets(task_id=ONE, offsets={"p": b"0"})
    apply(state, [checkpoints.override(new, epoch=epoch)])
    return state


def test_an_override_is_used_up_by_the_next_epoch() -> None:
    state = overridden()
    offsets = TaskOffsets(task_id=ONE, offsets={"p": b"1", "q": b"5"})
    apply(state, EpochManifests(state).messages_for(a_manifest(5), [offsets]))

    assert SourcePlaces(state).overrides([ONE], epoch=4) == ()
    assert SourcePlaces(overridden()).overrides([ONE], epoch=5) == ()


def test_overrides_add_up() -> None:
    state = overridden()
    checkpoints = SourcePlaces(state)
    apply(state, [checkpoints.override(TaskOffsets(task_id=ONE, offsets={"q": b"2"}))])

    assert checkpoints.overrides([ONE], epoch=4) == (
        TaskOffsets(task_id=ONE, offsets={"p": b"0", "q": b"2"}),
    )


def test_an_override_may_be_for_a_certain_epoch() -> None:
    assert SourcePlaces(overridden(epoch=6)).overrides([ONE], epoch=6) != ()


def test_all_partitions_may_be_overridden_at_once() -> None:
    values = {"epoch": 1, "offsets": {"p": b"1", "q": b"2"}, "override": True}
    state = state_of(a_message(SET_CHECKPOINT, "0.0", values))

    assert SourcePlaces(state).overrides([ONE], epoch=1) == (
        TaskOffsets(task_id=ONE, offsets={"p": b"1", "q": b"2"}),
    )


@pytest.mark.parametrize(
    ("values", "mistake"),
    [
        ({}, "its offsets are not bytes by partition"),
        ({"epoch": 1, "offsets": [1]}, "its offsets are not bytes by partition"),
        ({"epoch": 1, "offsets": {"p": "text"}}, "its offsets are not bytes by partition"),
        ({"offsets": {}}, "its epoch is None"),
        ({"epoch": -1, "offsets": {}}, "its epoch is -1"),
        ({"epoch": True, "offsets": {}}, "its epoch is True"),
        ({"epoch": 1, "offsets": {}, "override": ["p"]}, "it overrides partitions that it has no"),
        ({"epoch": 1, "offsets": {}, "override": "p"}, "it overrides partitions that it has no"),
        ({"epoch": 1, "offsets": {"p": b""}, "override": [{}]}, "it overrides partitions that"),
    ],
)
def test_what_is_no_checkpoint_is_told(values: dict[str, Any], mistake: str) -> None:
    """Reading from the wrong place would lose or double records."""
    state = state_of(a_message(SET_CHECKPOINT, "0.0", values))

    with pytest.raises(ProtocolError, match=mistake):
        SourcePlaces(state).overrides([ONE], epoch=1)


@pytest.mark.parametrize("key", ["", "0", "0.", ".0", "a.b", "-1.0", "0.0.0"])
def test_what_is_no_task_is_told(key: str) -> None:
    values = {"epoch": 1, "offsets": {}}
    state = state_of(a_message(SET_CHECKPOINT, key, values))

    with pytest.raises(ProtocolError, match=r"its key is not two numbers with '.' between"):
        SourcePlaces(state).read_all()
    with pytest.raises(ProtocolError, match="not two numbers"):
        task_of(key)
    assert task_of("3.14") == TaskId(3, 14)


# -- partitions of the changelog -------------------------------------------------------------


@given(st.lists(st.sets(st.builds(TaskId, st.integers(0, 3), st.integers(0, 3)))))
def test_a_task_keeps_its_partition_and_shares_it_with_nobody(rounds: list[set[TaskId]]) -> None:
    """The invariant, whichever tasks there are from launch to launch."""
    state = state_of()
    changelog = ChangelogPartitions(state)
    for tasks in rounds:
        before = changelog.read()
        apply(state, changelog.assign(tasks))
        after = changelog.read()

        assert tasks <= after.keys()
        assert {task: after[task] for task in before} == before
        assert sorted(after.values()) == list(range(len(after)))
        assert changelog.assign(tasks) == []


@pytest.mark.parametrize("values", [{}, {"partition": "1"}, {"partition": -1}])
def test_what_is_no_partition_is_told(values: dict[str, Any]) -> None:
    """State would be taken from another task."""
    state = state_of(a_message(SET_CHANGELOG, "0.0", values))

    with pytest.raises(ProtocolError, match="its partition is"):
        ChangelogPartitions(state).read()


# -- configuration and graphs ----------------------------------------------------------------


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
)
def test_the_last_configuration_is_what_was_written(
    before: dict[str, str], after: dict[str, str]
) -> None:
    """Keys that it does not have are deleted; what has not changed is not written again."""
    state = state_of()
    config = ConfigView(state)
    apply(state, config.write(before))

    drafts = config.write(after)
    apply(state, drafts)

    assert config.read() == after
    assert len(drafts) == len(dict(before.items() ^ after.items()).keys())


def test_a_value_is_text() -> None:
    with pytest.raises(ProtocolError, match=r"message set-config k .* its value is 5"):
        ConfigView(state_of(a_message(SET_CONFIG, "k", {"value": 5}))).read()


def test_versions_of_the_graph_come_back_in_order() -> None:
    state = state_of()
    dags = DagVersions(state)
    versions = [DagVersion(each, f"hash{each}", ("one", "two"), {}) for each in (9, 10)]
    for each in reversed(versions):
        apply(state, dags.write(each))

    assert dags.read() == versions
    assert dags.write(versions[0]) == []
    assert dags.write(versions[0]._replace(structural_hash="other")) != []


@pytest.mark.parametrize(
    "message",
    [
        a_message(DAG, "one", {"hash": "h", "description": []}),
        a_message(DAG, "1", {"hash": "h"}),
        a_message(DAG, "1", {"description": []}),
    ],
)
def test_what_is_no_graph_is_told(message: CoordinatorMessage) -> None:
    with pytest.raises(ProtocolError, match=r"message dag (one|1) of the coordinator log is malf"):
        DagVersions(state_of(message)).read()


def test_only_who_must_understand_a_message_fails() -> None:
    newer = replace(a_message(SET_CONFIG, "k", {"value": "v"}), version=VERSION + 1)
    state = state_of(newer)

    assert EpochManifests(state).regions() == []
    with pytest.raises(ProtocolError, match=f"version {VERSION + 1}"):
        ConfigView(state).read()
