"""Names of actors, and finding them."""

import pytest

from gearpy.actor.api import Exited, Ref
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.errors import ActorStopped, ConfigError
from gearpy.ids import ActorPath
from tests.actor.build import WAIT_S, Obedient, exits_of, fail
from tests.actor.conftest import How


class RemoteRef(Ref[object]):
    def __init__(self) -> None:
        self.path = ActorPath("host:1", "far")

    def tell(self, message: object) -> None:
        """Do nothing."""

    def ask(self, message: object, timeout_s: float) -> None:
        """Do nothing."""

    @property
    def is_alive(self) -> bool:
        return True

    def add_watcher(self, key: object, notify: object) -> None:
        """Do nothing."""

    def remove_watcher(self, key: object) -> None:
        """Do nothing."""


def test_taken_name_is_refused(system: ThreadedActorSystem, how: How) -> None:
    ref = system.spawn(Obedient, "a", dispatcher=how)

    with pytest.raises(ConfigError, match="'a': a living actor has this name"):
        system.spawn(Obedient, "a", dispatcher=how)

    assert ref.ask(lambda _: 1, WAIT_S) == 1


@pytest.mark.parametrize("is_failing", [True, False])
def test_name_is_free_when_the_exit_is_told(
    system: ThreadedActorSystem, how: How, *, is_failing: bool
) -> None:
    ref = system.spawn(Obedient, "a", dispatcher=how)
    seen: list[Ref[object] | None] = []
    ref.add_watcher("name", lambda exited: seen.append(system.resolve(exited.ref.path)))
    exits = exits_of(ref)

    if is_failing:
        ref.tell(fail)
    else:
        system.stop(ref)

    exited: Exited = exits.get(timeout=WAIT_S)
    assert seen == [None]
    successor = system.spawn(Obedient, "a", dispatcher=how)
    assert successor == exited.ref
    assert successor.ask(lambda _: 1, WAIT_S) == 1
    assert not exited.ref.is_alive


def test_actors_are_found_by_name_and_by_path() -> None:
    with ThreadedActorSystem(node="host:1") as system:
        ref = system.spawn(Obedient, "a")

        assert ref.path == ActorPath("host:1", "a")
        assert system.resolve("a") is ref
        assert system.resolve(ActorPath("host:1", "a")) is ref
        assert system.resolve(ActorPath("", "a")) is ref
        assert system.resolve(ActorPath("host:2", "a")) is None
        assert system.resolve("b") is None


def test_actors_of_other_systems_cannot_be_stopped(system: ThreadedActorSystem) -> None:
    """Said aloud, as nothing would happen."""
    with pytest.raises(ConfigError, match="host:1/far"):
        system.stop(RemoteRef())


def test_nothing_is_spawned_after_shutdown() -> None:
    """It would run without anybody to stop it."""
    system = ThreadedActorSystem()
    system.shutdown()

    with pytest.raises(ActorStopped, match="shut down"):
        system.spawn(Obedient, "a")
