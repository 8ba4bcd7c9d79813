"""What the log of an application says of its end; and epochs with names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gearpy.core.coordinator.log import CoordinatorMessage, CoordinatorState
from gearpy.core.coordinator.savepoints import (
    DrainView,
    Savepoint,
    check_savepoint,
    decode_savepoint,
    encode_savepoint,
)
from gearpy.core.coordinator.views import DagVersion
from gearpy.core.dag.graph import StepSpec
from gearpy.core.dag.state_moves import StepPlace
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import ProcessorId, TaskId
from gearpy.messages.app import SnapshotFile, TakenGroups


def after(*messages: CoordinatorMessage) -> CoordinatorState:
    return CoordinatorState(messages)


@pytest.mark.parametrize("name", ["a", "before-upgrade", "v1.2_x", "app", "app3x", "A" * 63])
def test_a_name_is_a_word(name: str) -> None:
    check_savepoint(name)


@pytest.mark.parametrize("name", ["", "3", "app3", "a/b", "a@b", "-a", "ä", "a b", "A" * 64])
def test_what_means_something_else_is_no_name(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a savepoint"):
        check_savepoint(name)


def test_a_drain_is_asked_for_and_taken_back() -> None:
    nobody = DrainView(after())
    assert not nobody.is_asked
    assert not nobody.clear()

    asked = DrainView(after(*nobody.write("before")))
    assert (asked.is_asked, asked.savepoint) == (True, "before")
    assert not DrainView(after(*asked.write("before"), *asked.clear())).is_asked
    assert not DrainView(after(*nobody.write(""))).savepoint


def a_savepoint(**values: Any) -> Savepoint:
    step = StepSpec(id="count-1", name="count", kind="count", keeps="counts", is_whole=False)
    layout = {"count-1": StepPlace(ProcessorId(1), 2, 0, step)}
    file = SnapshotFile(location="k/app1/epochs/x", sha256="1f", tasks=(TaskId(1, 0),))
    manifest = Manifest(region=1, epoch=17, attempt=2, clock_ms=5, snapshots=(file,))
    graph = DagVersion(3, "4f2a9c", ("1 count x2",), layout)
    made = Savepoint(name="one", manifests=(manifest,), graph=graph, stored_ms=9, application="a")
    return replace(made, **values)


def test_a_savepoint_has_all_that_is_needed_to_begin_with_it() -> None:
    savepoint = decode_savepoint(encode_savepoint(a_savepoint()))

    assert savepoint == a_savepoint()
    assert savepoint.epochs == {1: 17}
    assert savepoint.files == {"k/app1/epochs/x"}


def test_files_that_were_taken_over_stay_so() -> None:
    plain = a_savepoint()
    (manifest,) = plain.manifests
    (file,) = manifest.snapshots
    taken = TakenGroups(task=TaskId(1, 0), source=TaskId(1, 3), via=TaskId(1, 3), first=0, last=9)
    manifest = replace(manifest, snapshots=(replace(file, taken=(taken,)),))
    savepoint = replace(plain, manifests=(manifest,))

    assert decode_savepoint(encode_savepoint(savepoint)) == savepoint


@given(at=st.integers(0, 10_000), to=st.integers(0, 255))
def test_damage_is_noticed(at: int, to: int) -> None:
    data = bytearray(encode_savepoint(a_savepoint()))
    at %= len(data)
    before, data[at] = data[at], to
    if before == to:
        assert decode_savepoint(bytes(data)) == a_savepoint()
    else:
        with pytest.raises(ProtocolError, match="malformed savepoint"):
            decode_savepoint(bytes(data))
    with pytest.raises(ProtocolError, match="malformed savepoint"):
        decode_savepoint(bytes(data[:at]))
