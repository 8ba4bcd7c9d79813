"""The keyed state of a task as a whole."""

import doctest
import importlib
import pkgutil
from itertools import count
from typing import Any

import pytest

import gearpy.state
from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import MIN_MS
from gearpy.state.stores.store import Section
from tests.state.build import a_state, changes_of


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.iter_modules(gearpy.state.__path__, "gearpy.state.")]
)
def test_examples_in_docstrings_are_right(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("place", ["key", "namespace"])
def test_what_can_be_no_key_is_refused(place: str) -> None:
    state = a_state()
    state.key = state.namespace = "before"

    with pytest.raises(ConfigError, match="make it a tuple"):
        setattr(state, place, [1])

    assert getattr(state, place) == "before"


def test_scopes_have_tags_of_their_own() -> None:
    state = a_state()
    outer = state.value("total", coder="int")
    first = state.scope("first").value("total", coder="str")
    inner = state.scope("first").scope("inner").value("total")
    state.key = "ada"
    outer.set(1)
    first.set("one")
    inner.set([1])

    assert (outer.get(), first.get(), inner.get()) == (1, "one", [1])
    assert state.scope("first") is state.scope("first")


def test_scopes_follow_the_key_and_may_leave_it() -> None:
    state = a_state()
    state.key = "before"
    scope = state.scope("second")
    assert scope.key == "before"
    state.namespace = "w"
    state.key = "ada"
    assert (scope.key, scope.namespace) == ("ada", "w")

    scope.key = "bob"

    assert (state.key, scope.key, scope.namespace) == ("ada", "bob", "w")


@pytest.mark.parametrize(
    ("declare", "fault"),
    [
        (
            lambda state: state.map("total"),
            "declared as a value with coder 'int', and as a map with coder 'msgpack'",
        ),
        (
            lambda state: state.value("total", coder="json"),
            "declared as a value with coder 'int', and as a value with coder 'json'",
        ),
        (
            lambda state: state.value("total", coder="int", ttl="1s"),
            "and as a value with coder 'int', which expires",
        ),
        (
            lambda state: (
                state.value("brief", ttl="1s"),
                state.value("brief", ttl="1s", clock="processing"),
            ),
            "a ttl of 1000 ms of event time, and of 1000 ms of processing time",
        ),
        (lambda state: state.value("#event"), "'#' begins those of gearpy"),
        (lambda state: state.value(""), "cannot have the name ''"),
        (lambda state: state.scope(""), "cannot have the name ''"),
        (lambda state: state.value("x", coder="pickle"), "no coder is named 'pickle'"),
        (lambda state: state.value("x", ttl=0), "a ttl of 0 keeps nothing"),
        (lambda state: state.value("x", ttl="soon"), "duration 'soon' is not understood"),
        (lambda state: state.value("x", ttl="1ms", clock="sun"), "no clock is named 'sun'"),
        (lambda state: state.keys("x"), "no state 'x' was declared here"),
    ],
    ids=count(),
)
def test_declaring_what_cannot_be_is_refused(declare: Any, fault: str) -> None:
    state = a_state()
    state.value("total", coder="int")

    with pytest.raises(ConfigError, match=fault):
        declare(state)


@pytest.mark.parametrize(
    ("kind", "options"),
    [("map", {}), ("value", {"coder": "int"}), ("list", {"ttl": "1s"})],
    ids=str,
)
def test_a_checkpoint_of_another_state_is_refused(kind: str, options: dict[str, Any]) -> None:
    before = a_state()
    before.value("total", ttl="1s").set(1)
    after = a_state(sections=changes_of(before))

    with pytest.raises(
        ConfigError,
        match=r"state 'total' was kept as a value with coder 'msgpack', which expires, and is "
        rf"declared as a {kind} .*: declare it as before, or under another name",
    ):
        getattr(after, kind)("total", **options)


def test_leaving_a_time_to_live_out_is_refused() -> None:
    before = a_state()
    before.value("total", ttl="1s").set(1)

    with pytest.raises(ConfigError, match="which expires, and is declared as"):
        a_state(sections=changes_of(before)).value("total")


def test_a_checkpoint_with_another_kind_of_cell_is_refused() -> None:
    before = a_state()
    before.value("total").set(1)
    (section,) = changes_of(before)
    damaged = Section(section.group, section.body.replace(b"vp\0total", b"?p\0total"))

    with pytest.raises(ProtocolError, match="malformed cell"):
        a_state(sections=[damaged]).value("total")


def test_state_is_not_loaded_behind_what_was_declared() -> None:
    state = a_state()
    state.value("total")

    with pytest.raises(AssertionError):
        state.load(Section(0, b"\x80"))


def test_all_of_a_key_is_cleared() -> None:
    state = a_state()
    scope = state.scope("stage")
    states: list[Any] = [
        state.list("a"),
        state.map("b"),
        scope.value("c"),
        scope.reducing("d", max),
    ]
    for key in ("ada", "bob"):
        for namespace in (None, "w"):
            state.key, state.namespace = key, namespace
            states[0].add(1)
            states[1][1] = 1
            states[2].set(1)
            states[3].add(1)
            state.timers.event_time(5)
            scope.timers.processing_time(5)

    state.clear()

    assert all(each.is_empty for each in states)
    state.namespace = None
    assert not any(each.is_empty for each in states)
    assert len(list(state.timers.due_event(5))) == 3
    assert len(list(scope.timers.due_processing(5))) == 3


def test_what_is_no_longer_declared_is_cleared_as_well() -> None:
    before = a_state()
    before.key = "ada"
    before.list("given up").add(1)
    before.timers.event_time(1)
    first = changes_of(before)
    after = a_state(sections=first)
    after.key = "ada"

    after.clear()

    again = a_state(sections=[*first, *changes_of(after)])
    again.key = "ada"
    assert list(again.list("given up")) == []
    assert list(again.timers.due_event(1)) == []


def test_the_time_of_a_record_ends_with_the_next_watermark() -> None:
    state = a_state()
    assert state.time_ms == MIN_MS
    state.time_ms = 5
    assert state.scope("stage").time_ms == 5

    state.advance(10)

    assert state.time_ms == MIN_MS
