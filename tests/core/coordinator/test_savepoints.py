"""What the log of an application says of its end, and of epochs with names."""

import pytest

from gearpy.core.coordinator.log import CoordinatorMessage, CoordinatorState, draft
from gearpy.core.coordinator.savepoints import (
    SAVEPOINT,
    DrainView,
    Savepoint,
    Savepoints,
    check_savepoint,
)
from gearpy.errors import ConfigError, ProtocolError


def after(*messages: CoordinatorMessage) -> CoordinatorState:
    return CoordinatorState(messages)


@pytest.mark.parametrize("name", ["a", "before-upgrade", "v1.2_x", "app", "app3x", "A" * 63])
def test_a_name_is_a_word(name: str) -> None:
    check_savepoint(name)


@pytest.mark.parametrize("name", ["", "3", "app3", "a/b", "a@b", "-a", "ä", "a b", "A" * 64])
def test_what_means_something_else_is_no_name(name: str) -> None:
    """A number is an application, a slash is in the name of a cluster's."""
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


def test_savepoints_are_kept_by_name_until_they_are_dropped() -> None:
    view = Savepoints(after())
    both = after(*view.write("one", {0: 17, 1: 5}), *view.write("two", {0: 18}))

    assert Savepoints(both).read() == [
        Savepoint(name="one", epochs={0: 17, 1: 5}, stored_ms=0),
        Savepoint(name="two", epochs={0: 18}, stored_ms=0),
    ]
    both.on_message(*view.drop("one"))
    assert [each.name for each in Savepoints(both).read()] == ["two"]


@pytest.mark.parametrize("values", [{}, {"epochs": 3}, {"epochs": {"x": 1}}])
def test_one_without_epochs_is_told(values: dict[str, object]) -> None:
    """A newer gearpy may write others; this is none of it."""
    with pytest.raises(ProtocolError, match=r"savepoint one .* has no epochs"):
        Savepoints(after(draft(SAVEPOINT, "one", values))).read()
