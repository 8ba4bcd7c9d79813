"""The complete epochs of a region, and the files that nobody needs any more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.epoch.epochs import Manifest
from gearpy.core.epoch.history import AttemptFiles, EpochHistory
from gearpy.ids import ExecutorId, TaskId
from gearpy.messages.app import EpochStored, SnapshotFile

ONE, TWO = ExecutorId(1), ExecutorId(2)


def a_file(name: str = "a") -> SnapshotFile:
    return SnapshotFile(location=name, sha256="0f", tasks=(TaskId(0, 0),))


def files(*names: str) -> tuple[SnapshotFile, ...]:
    return tuple(map(a_file, names))


def a_manifest(epoch: int, *names: str, cut_time_ms: int | None = None) -> Manifest:
    return Manifest(
        region=0,
        epoch=epoch,
        attempt=1,
        clock_ms=epoch * 10,
        snapshots=files(*names or (f"e{epoch}",)),
        cut_time_ms=cut_time_ms,
    )


def stored(epoch: int, *names: str, executor_id: ExecutorId = ONE) -> EpochStored:
    return EpochStored(executor_id=executor_id, attempt=1, epoch=epoch, snapshots=files(*names))


def test_one_is_stored_before_the_next_is_complete() -> None:
    """Else a restart could go back further than sinks were told."""
    history = EpochHistory(retained=1)
    history.on_complete(a_manifest(1))

    with pytest.raises(AssertionError):
        history.on_complete(a_manifest(2))


def test_as_many_stored_epochs_as_wanted_are_kept() -> None:
    history = EpochHistory(retained=2, manifests=map(a_manifest, (1, 2, 3)))
    history.on_complete(a_manifest(4))

    assert history.on_stored(3) == (1,)
    assert history.on_stored(4) == (1, 2)
    assert history.discard((1, 2)) == list(files("e1", "e2"))
    assert history.manifests == (a_manifest(3), a_manifest(4))
    assert history.on_stored(4) == ()


def test_a_file_that_another_epoch_lists_stays() -> None:
    history = EpochHistory(
        retained=1,
        manifests=[
            a_manifest(1, "base", "one"),
            a_manifest(2, "base", "one", "two"),
            a_manifest(3, "base", "three"),
        ],
    )

    assert history.needs(a_file("one"))
    assert [each.epoch for each in history.listing("one")] == [1, 2]
    assert history.discard([1]) == []
    assert history.discard([2]) == list(files("one", "two"))
    assert not history.needs(a_file("two"))
    assert history.discard([3]) == list(files("base", "three"))
    assert history.newest is None


@given(st.integers(1, 3), st.lists(st.sampled_from("csrdx"), max_size=40))
def test_nothing_that_a_restart_may_need_is_deleted(retained: int, steps: list[str]) -> None:
    """The invariant: what is kept is whole, and each file is given out once, when nobody needs it.

    c: an epoch is complete that goes on from the last, r: that is written anew; s: the newest is
    stored, d: is discarded, x: its first file is damaged.
    """
    history, dropped, epoch, chain = EpochHistory(retained=retained), list[str](), 0, list[str]()
    for step in steps:
        newest = history.newest
        if step in "cr" and history.unstored is None:
            epoch += 1
            chain = [*(chain if step == "c" else []), f"e{epoch}"]
            history.on_complete(a_manifest(epoch, *chain))
        elif step == "s" and newest is not None:
            was_whole = history.newest_whole
            surplus = history.on_stored(newest.epoch)
            dropped += [file.location for file in history.discard(surplus)]
            assert len(history.manifests) <= retained + 1
            assert was_whole is None or history.newest_whole is not None
        elif step == "x" and newest is not None:
            history.on_damage(newest.snapshots[0].location)
        elif step == "d" and newest is not None:
            dropped += [file.location for file in history.discard([newest.epoch])]
            chain = [file.location for each in history.manifests[-1:] for file in each.snapshots]
        listed = {file.location for each in history.manifests for file in each.snapshots}
        assert not listed & set(dropped)
        assert listed | set(dropped) == {f"e{at}" for at in range(1, epoch + 1)}
    assert len(dropped) == len(set(dropped))


def test_the_newest_epoch_without_damage_stays_until_another_one_is_whole() -> None:
    history = EpochHistory(retained=1, manifests=[a_manifest(1, "a"), a_manifest(2, "b")])
    history.on_damage("b")

    history.on_complete(a_manifest(3, "b", "c"))

    assert history.on_stored(3) == (2,)
    assert history.discard([2]) == []
    assert history.newest_whole == a_manifest(1, "a")
    history.on_complete(a_manifest(4, "d"))
    assert history.newest_whole == a_manifest(1, "a")  # The newer one is not stored yet.
    assert history.on_stored(4) == (1, 3)
    assert history.newest_whole == a_manifest(4, "d")


def test_damage_of_a_file_that_no_epoch_lists_changes_nothing() -> None:
    history = EpochHistory(retained=1, manifests=[a_manifest(1)])
    history.on_damage("gone")

    history.on_complete(a_manifest(2, "gone"))

    assert history.on_stored(2) == (1,)


def test_what_is_told_again_changes_nothing() -> None:
    attempt = AttemptFiles(())
    attempt.on_stored(stored(1, "one"))
    attempt.on_complete(a_manifest(1, "one"))
    attempt.on_stored(stored(2, "two"))
    attempt.on_complete(a_manifest(2, "two"))
    assert attempt.on_stored(stored(1, "one")) == []
    assert attempt.on_over() == []

    assert attempt.on_stored(stored(2, "one", "two")) == []
    assert attempt.on_stored(stored(1, "other", executor_id=TWO)) == [a_file("other")]
