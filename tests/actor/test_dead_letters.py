"""Counting by path."""

from gearpy.actor.dead_letters import OTHER_PATHS, PathCounter
from gearpy.ids import ActorPath


def test_counts_are_kept_apart_and_in_total() -> None:
    """Who gets messages in vain can be found."""
    counter, a, b = PathCounter(), ActorPath("", "a"), ActorPath("", "b")

    for path in (a, b, a):
        counter.add(path)

    assert (counter.of(a), counter.of(b), counter.total) == (2, 1, 3)
    assert counter.of(ActorPath("", "c")) == 0


def test_paths_are_limited_but_all_are_counted() -> None:
    """Names may come from outside; memory must not."""
    counter = PathCounter()

    for number in range(10_010):
        counter.add(ActorPath("", str(number)))

    assert counter.total == 10_010
    assert counter.of(OTHER_PATHS) == 10
    assert len(counter.by_path()) == 10_001
