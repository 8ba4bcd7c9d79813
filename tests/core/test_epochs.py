"""Epochs of one region: begun, complete, stored, deleted; and what is stored of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.epochs import (
    EpochCoordinator,
    EpochHistory,
    Manifest,
    decode_manifest,
    decode_snapshots,
    encode_manifest,
    encode_snapshots,
)
from gearpy.errors import ProtocolError
from gearpy.ids import MIN_MS, ExecutorId, TaskId
from gearpy.messages.app import EpochStored, SnapshotFile

INTERVAL_MS = 100
ONE, TWO = ExecutorId(1), ExecutorId(2)


def a_file(name: str = "a") -> SnapshotFile:
    """Return a file of one task."""
    return SnapshotFile(location=name, sha256="0f", tasks=(TaskId(0, 0),))


def a_manifest(epoch: int, *names: str) -> Manifest:
    """Return a manifest of these files."""
    files = tuple(map(a_file, names or (f"e{epoch}",)))
    return Manifest(region=0, epoch=epoch, attempt=1, clock_ms=epoch * 10, snapshots=files)


def a_coordinator(*, epoch: int = 1) -> EpochCoordinator:
    """Return a coordinator of two executors since 0."""
    return EpochCoordinator(
        region=3, attempt=7, epoch=epoch, executors=[ONE, TWO], interval_ms=INTERVAL_MS, now_ms=0
    )


def stored(executor: ExecutorId, *, epoch: int = 1, attempt: int = 7) -> EpochStored:
    """Return an executor's answer."""
    file = a_file(f"{epoch}-{executor}")
    return EpochStored(executor_id=executor, attempt=attempt, epoch=epoch, snapshot=file)


def test_an_epoch_begins_to_end_an_interval_after_the_start() -> None:
    """Not before."""
    coordinator = a_coordinator()

    assert not coordinator.is_due(99)
    assert coordinator.is_due(100)
    assert coordinator.begin(100, clock_ms=5) == 1
    assert not coordinator.is_due(101)


def test_an_epoch_is_complete_when_all_have_stored_it() -> None:
    """The manifest has everybody's file, and the clock of the moment when it began to end."""
    coordinator = a_coordinator()
    coordinator.begin(100, clock_ms=5)

    first = coordinator.on_stored(stored(TWO), 110)
    assert coordinator.stored == [stored(TWO).snapshot]
    manifest = coordinator.on_stored(stored(ONE), 120)

    assert first is None
    assert manifest == Manifest(
        region=3, epoch=1, attempt=7, clock_ms=5, snapshots=(a_file("1-1"), a_file("1-2"))
    )
    assert (coordinator.epoch, coordinator.stored) == (2, [])


def test_the_next_one_begins_after_the_interval_or_later_if_it_took_long() -> None:
    """Storing may take a tenth of the time."""
    coordinator = a_coordinator()
    coordinator.begin(100, clock_ms=0)
    for each in (ONE, TWO):
        coordinator.on_stored(stored(each), 105)
    assert not coordinator.is_due(199)
    assert coordinator.is_due(200)

    coordinator.begin(200, clock_ms=0)
    for each in (ONE, TWO):
        coordinator.on_stored(stored(each, epoch=2), 250)
    assert not coordinator.is_due(250 + 9 * 50 - 1)
    assert coordinator.is_due(250 + 9 * 50)


def test_an_epoch_that_is_not_complete_is_announced_again() -> None:
    """Same number, and still the clock of the first time."""
    coordinator = a_coordinator()
    coordinator.begin(100, clock_ms=5)

    assert not coordinator.is_due(1099)
    assert coordinator.is_due(1100)
    assert coordinator.begin(1100, clock_ms=50) == 1
    coordinator.on_stored(stored(ONE), 1110)
    manifest = coordinator.on_stored(stored(TWO), 1110)
    assert manifest is not None
    assert manifest.clock_ms == 5
    assert coordinator.is_due(1200), "only what the last try took makes the pause longer"


@pytest.mark.parametrize(
    "message",
    [stored(ONE, attempt=6), stored(ONE, epoch=0), stored(ONE, epoch=2), stored(ExecutorId(3))],
    ids=["attempt", "past", "future", "stranger"],
)
def test_what_belongs_elsewhere_does_not_count(message: EpochStored) -> None:
    """An older attempt's file would not fit the others."""
    coordinator = a_coordinator()
    coordinator.begin(100, clock_ms=0)

    assert not coordinator.awaits(message)
    assert coordinator.on_stored(message, 110) is None
    assert coordinator.stored == []


def test_one_executor_twice_is_not_two() -> None:
    """An answer that came again changes nothing."""
    coordinator = a_coordinator()
    coordinator.begin(100, clock_ms=0)

    assert coordinator.on_stored(stored(ONE), 110) is None
    assert coordinator.on_stored(stored(ONE), 111) is None


def test_nothing_counts_before_it_was_announced() -> None:
    """Nobody can have ended it."""
    assert not a_coordinator().awaits(stored(ONE))


def test_history_without_epochs_goes_back_to_the_beginning() -> None:
    """And to the beginning of time."""
    history = EpochHistory(retained=1)

    assert history.newest is None
    assert history.clock_ms == MIN_MS


def test_history_goes_back_to_the_newest_complete_epoch() -> None:
    """Also if it is not stored yet: who asks is alive."""
    history = EpochHistory(retained=1, newest=a_manifest(4))
    history.on_complete(a_manifest(6))

    assert history.newest == a_manifest(6)
    assert history.clock_ms == 60


def test_what_is_stored_and_what_is_newer_is_kept() -> None:
    """A relaunched app master goes back to what is stored."""
    history = EpochHistory(retained=1, newest=a_manifest(1))
    for epoch in (2, 3, 4):
        history.on_complete(a_manifest(epoch))

    assert history.on_stored(1) == []
    assert history.on_stored(3) == [a_file("e1"), a_file("e2")]
    assert history.on_stored(2) == []
    assert [history.needs(a_file(f"e{epoch}")) for epoch in (1, 2, 3, 4)] == [
        False,
        False,
        True,
        True,
    ]


@given(st.integers(1, 3), st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=30))
def test_nothing_that_a_restart_may_need_is_deleted(
    retained: int, steps: list[tuple[bool, int]]
) -> None:
    """The invariant: the newest stored one and all later ones stay; each file is given out once."""
    history, newest, newest_stored, dropped = EpochHistory(retained=retained), 0, 0, list[str]()
    for is_complete, epoch in steps:
        if is_complete:
            newest += 1
            history.on_complete(a_manifest(newest))
        elif epoch <= newest:
            newest_stored = max(newest_stored, epoch)
            dropped += [file.location for file in history.on_stored(epoch)]
        kept = [epoch for epoch in range(1, newest + 1) if f"e{epoch}" not in dropped]
        assert set(range(max(1, newest_stored), newest + 1)) <= set(kept)
        assert len([epoch for epoch in kept if epoch <= newest_stored]) == min(
            retained, newest_stored
        )
    assert len(dropped) == len(set(dropped))


def test_a_manifest_comes_back_from_bytes() -> None:
    """All of it."""
    manifest = a_manifest(5, "a", "b")

    assert decode_manifest(encode_manifest(manifest)) == manifest


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01", encode_manifest(a_manifest(1))[:-3]])
def test_other_bytes_are_no_manifest(data: bytes) -> None:
    """The text says what they were taken for."""
    with pytest.raises(ProtocolError, match="malformed manifest"):
        decode_manifest(data)


def test_snapshots_come_back_from_bytes() -> None:
    """In any order, also none."""
    snapshots = {TaskId(1, 2): b"x", TaskId(0, 1): b""}

    assert decode_snapshots(encode_snapshots(snapshots)) == snapshots
    assert decode_snapshots(encode_snapshots({})) == {}


def test_snapshots_of_another_version_are_refused() -> None:
    """With both versions in the text."""
    data = encode_snapshots({})
    assert data[1] == 1

    with pytest.raises(ProtocolError, match="snapshots of version 2, expected 1"):
        decode_snapshots(data[:1] + b"\x02" + data[2:])


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93\x01\x80\x80"])
def test_other_bytes_are_no_snapshots(data: bytes) -> None:
    """The text says what they were taken for."""
    with pytest.raises(ProtocolError, match="malformed snapshots"):
        decode_snapshots(data)
