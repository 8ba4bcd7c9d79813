"""The versions of a program in the coordinator log."""

import pytest
from msgspec.structs import replace

from gearpy.core.coordinator.log import CoordinatorState, draft
from gearpy.core.coordinator.versions import ProgramVersion, Versions
from gearpy.core.epoch.epochs import Manifest
from gearpy.errors import ProtocolError
from gearpy.ids import TaskId
from gearpy.messages.app import SnapshotFile
from gearpy.messages.client import Artifact
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.storage.coordinator_log import CoordinatorLog

_PROGRAM = Artifact(
    kind="stored", location="ab" * 32, filename="shop.py", args=("a",), scale=(("count", 8),)
)
_BASE = Manifest(
    region=0,
    epoch=7,
    attempt=1,
    clock_ms=5,
    snapshots=(SnapshotFile(location="x", sha256="", tasks=(TaskId(0, 0),)),),
    offsets=(),
)
_TRIAL = ProgramVersion(
    number=1, artifact=_PROGRAM, change="update", by="ada", state="trial", epoch=7, base=(_BASE,)
)


def test_a_version_is_read_as_it_was_written() -> None:
    checkpoints = MemoryCheckpoints()
    log = CoordinatorLog(checkpoints, "app1", launch=1, source="test", wall_ms=lambda: 1)
    first = ProgramVersion(number=0, artifact=_PROGRAM, change="submitted", state="replaced")

    log.append([Versions(log.state).write(each) for each in (_TRIAL, first)])
    again = CoordinatorLog(checkpoints, "app1", launch=2, source="test", wall_ms=lambda: 1)

    assert Versions(again.state).read() == [first, _TRIAL]
    assert Versions(again.state).current == _TRIAL


def test_nothing_is_current_without_a_change() -> None:
    assert Versions(CoordinatorState()).current is None


def test_an_epoch_is_of_the_version_that_had_its_number() -> None:
    """A failed one has numbers of its own; one that never began has none, waiting ones neither."""
    first = ProgramVersion(number=0, artifact=_PROGRAM, change="submitted", state="replaced")
    failed = replace(_TRIAL, state="failed", first=9)
    back = replace(_TRIAL, number=2, state="running", first=11)
    never = replace(_TRIAL, number=3, state="failed", epoch=0)
    written = [Versions(CoordinatorState()).write(e) for e in (first, failed, back, never)]
    versions = Versions(CoordinatorState(written))

    def number(found: ProgramVersion | None) -> int | None:
        return None if found is None else found.number

    assert [number(versions.of_epoch(each)) for each in (1, 7, 8, 9, 10, 11, 99)] == [
        *(0, 0, 0, 1, 1, 2, 2)
    ]
    assert [number(versions.on_state(each)) for each in (0, 6, 7, 99)] == [0, 0, 2, 2]
    assert Versions(CoordinatorState()).of_epoch(5) is None


def test_an_epoch_of_a_version_that_an_older_gearpy_has_begun() -> None:
    """It did not note the first number; the epoch that it began with tells nearly the same."""
    first = ProgramVersion(number=0, artifact=_PROGRAM, change="submitted", state="replaced")
    written = [Versions(CoordinatorState()).write(e) for e in (first, _TRIAL)]
    versions = Versions(CoordinatorState(written))

    assert versions.of_epoch(7) == first
    assert versions.of_epoch(8) == _TRIAL


def test_a_version_in_preparation_ends_with_its_app_master() -> None:
    """Nobody would go on with it."""
    prepared = replace(_TRIAL, number=2, state="preparing", base=())
    state = CoordinatorState([Versions(CoordinatorState()).write(e) for e in (_TRIAL, prepared)])

    for each in Versions(state).end_unfinished("relaunched"):
        state.on_message(each)

    assert [(v.number, v.state, v.reason) for v in Versions(state).read()] == [
        (1, "trial", ""),
        (2, "failed", "relaunched"),
    ]


def test_a_version_that_waits_for_its_event_time_outlives_its_app_master() -> None:
    waits = replace(_TRIAL, number=2, state="waiting", base=(), at_event_ms=1500, executors=3)
    state = CoordinatorState([Versions(CoordinatorState()).write(e) for e in (_TRIAL, waits)])

    for each in Versions(state).end_unfinished("relaunched"):
        state.on_message(each)

    assert Versions(state).waiting == waits
    assert Versions(CoordinatorState()).waiting is None


def test_what_is_no_version_is_refused() -> None:
    state = CoordinatorState([draft("version", "3", {"state": "odd"})])

    with pytest.raises(ProtocolError, match="version 3 of the coordinator log"):
        Versions(state).read()
