"""Which master an actor belongs to, and whose orders count."""

from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from gearpy.actor.api import Exited, Stopped
from gearpy.cluster.net.post import Post
from gearpy.cluster.net.watched import MasterWatch
from gearpy.ids import ActorPath
from gearpy.messages.cluster import MastersChanged

ONE, OTHER = ActorPath("one:1", "master"), ActorPath("other:1", "master")


class World:
    def __init__(self) -> None:
        self.refs: Final[dict[ActorPath, Any]] = {each: object() for each in (ONE, OTHER)}
        self.watched: set[Any] = set()
        context: Any = SimpleNamespace(watch=self.watched.add, unwatch=self.watched.remove)
        post = cast("Post", SimpleNamespace(find=self.refs.get))
        self.masters = MasterWatch(post, lambda: context, ONE)
        self.masters.begin([ONE, OTHER])

    def end(self, master: ActorPath) -> str | None:
        return self.masters.on_exited(Exited(self.refs[master], Stopped()))


@pytest.fixture
def world() -> World:
    return World()


def test_an_actor_belongs_to_the_master_that_answers(world: World) -> None:
    """It watches no other one any more; the same answer again is no news."""
    assert world.masters.on_answer(OTHER, 3) == "new"

    assert (world.masters.path, world.masters.is_there) == (OTHER, True)
    assert world.watched == {world.refs[OTHER]}
    assert world.masters.on_answer(OTHER, 3) == "known"


def test_a_late_answer_of_an_earlier_term_changes_nothing(world: World) -> None:
    world.masters.on_answer(OTHER, 3)

    assert [world.masters.on_answer(ONE, term) for term in (2, 3)] == ["known", "known"]
    assert world.masters.path == OTHER
    assert [world.masters.on_answer(ONE, 4) for _ in range(2)] == ["unsure", "new"]
    assert world.masters.path == ONE


def test_a_master_that_ended_before_its_answer_was_heard_is_asked_again(world: World) -> None:
    assert world.end(ONE) == "other"

    assert world.masters.on_answer(ONE, 1) == "unsure"
    assert not world.masters.is_there
    assert world.masters.on_answer(ONE, 1) == "new"


def test_an_actor_whose_master_ended_belongs_to_none(world: World) -> None:
    """The end is heard of once; the same master may answer again."""
    world.masters.on_answer(ONE, 3)

    assert [world.end(ONE), world.end(ONE)] == ["own", None]
    assert not world.masters.is_there
    world.masters.begin([ONE])
    assert world.masters.on_answer(ONE, 3) == "new"


def test_orders_of_former_leaders_are_refused(world: World) -> None:
    orders = [MastersChanged(masters=(), term=term) for term in (5, 4, 5, 0)]

    assert [world.masters.admits(each) for each in orders] == [True, False, True, True]
    assert world.masters.admits("no order")
    assert world.masters.refused_orders == 1
