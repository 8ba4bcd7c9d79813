"""The store of a simulation fails, is slow and has damaged files when it is told to; else never."""

from contextlib import suppress

import pytest

from gearpy.errors import SnapshotDamaged
from gearpy.storage.checkpoints import MemoryCheckpoints
from gearpy.testing.world import World
from tests.world.stores import FaultyCheckpoints

NAME = "app/epochs/one"


def a_store(seed: int = 0) -> tuple[World, FaultyCheckpoints]:
    world = World(seed)
    store = FaultyCheckpoints(world)
    store.save(NAME, [b"whole"])
    return world, store


def failures(store: FaultyCheckpoints, name: str) -> int:
    """Ask for everything some times; return how often it did not work."""
    failed = 0
    for _ in range(20):
        for ask in (
            lambda: store.save(name, [b"whole"]),
            lambda: store.open(NAME),
            lambda: store.load(NAME),
            lambda: store.names("app"),
            lambda: store.drop("app/other"),
            lambda: store.drop_all("other"),
        ):
            try:
                ask()
            except OSError:
                failed += 1
    return failed


def test_sound_store_does_what_it_is_asked_for() -> None:
    _, store = a_store()

    assert failures(store, NAME) == 0
    assert store.wait_ms() == 0
    with store.open(NAME) as file:
        assert file.read() == store.load(NAME) == b"whole"
    assert store.names("app") == [NAME]
    store.drop(NAME)
    store.drop_all("app")
    assert store.names("") == []


def test_failing_store_fails_for_a_time() -> None:
    """Most of what is asked for; and then it is as sound as before."""
    world, store = a_store()
    store.fail(100)

    failed = failures(store, NAME)
    world.run(lambda: world.now_ms >= 1_000_100, within_ms=100)
    world.now_ms += 100

    assert 120 * 0.5 < failed == store.failures < 120
    assert failures(store, NAME) == 0


def test_part_of_a_store_fails() -> None:
    _, store = a_store()
    store.fail(100, part="/coordinator")

    assert failures(store, NAME) == 0
    assert failures(store, "app/coordinator/log") > 0


def test_what_fails_may_have_been_done() -> None:
    world, store = a_store()
    store.fail(1000)
    done = 0
    for number in range(50):
        name = f"app/{number}"
        with suppress(OSError):
            store.save(name, [b"x"])
            continue
        done += name in store.stored.names("app")

    assert 0 < done < store.failures
    assert world.now_ms == 1_000_000


def test_damaged_file_is_whole_again_after_a_time() -> None:
    """Its checksum tells; unless it was stored anew, it comes back as it was."""
    world, store = a_store()
    sha256 = store.save(NAME, [b"whole"]).sha256
    store.damage(NAME, 50)

    with pytest.raises(SnapshotDamaged):
        store.load(NAME, sha256)
    world.step()

    assert store.load(NAME, sha256) == b"whole"


@pytest.mark.parametrize("is_dropped", [True, False])
def test_damage_that_is_gone_does_not_come_back(*, is_dropped: bool) -> None:
    world, store = a_store()
    store.damage(NAME, 50)
    if is_dropped:
        store.drop(NAME)
    else:
        store.save(NAME, [b"newer"])

    world.step()

    assert store.names("") == ([] if is_dropped else [NAME])
    assert is_dropped or store.load(NAME) == b"newer"


def test_slow_store_lets_wait() -> None:
    world = World(0)
    store = FaultyCheckpoints(world, MemoryCheckpoints())
    store.be_slow(100)

    assert max(store.wait_ms() for _ in range(50)) > 100
    world.now_ms += 100
    assert store.wait_ms() == 0
