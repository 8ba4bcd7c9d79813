"""Keyed state against a model of plain dicts, over both backends."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gearpy.ids import MIN_MS
from gearpy.state.encoding.keys import NO_KEY, encode_key
from gearpy.state.stores.store import Section, StateDelta
from tests.state.build import BACKENDS, Backend, WallClock, a_state, a_store

_LONG: Final = "long" * 200
KEYS: Final = st.sampled_from(["a", 1, 1.0, True, ("t", 2.0), None, NO_KEY, _LONG, _LONG + "!"])
NAMESPACES: Final = st.sampled_from([None, (0, 10)])
ENTRIES: Final = st.sampled_from(["x", 2, 2.0, -3, ("p", 1), _LONG, _LONG + "?"])
VALUES: Final = st.one_of(
    st.integers(), st.text(max_size=3), st.booleans(), st.lists(st.integers(0, 5), max_size=3)
)
TIMES: Final = st.integers(0, 6)
TAGS: Final = st.sampled_from(["", "again"])
TTL_MS: Final = 4

#: Where something is: key and namespace.
_At: TypeAlias = tuple[Any, Any]


class Machine(RuleBasedStateMachine):
    """Does things with state and with the model, and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = TemporaryDirectory()
        self._folder = Path(self._temporary.name)
        self._keys: list[Any] = []
        self._clock = WallClock()
        self._watermark_ms = MIN_MS
        self._time_ms = MIN_MS
        self._at: _At = (NO_KEY, None)
        self._values: dict[_At, Any] = {}
        self._lists: dict[_At, list[Any]] = {}
        self._sets: dict[_At, dict[Any, Any]] = {}
        self._maps: dict[_At, dict[Any, Any]] = {}
        self._sums: dict[_At, int] = {}
        self._event: dict[_At, dict[Any, tuple[int, Any]]] = {}
        self._wall: dict[_At, list[tuple[int, Any]]] = {}
        self._timers: dict[tuple[Any, Any, str, str], int] = {}
        self._deltas: list[StateDelta] = []
        self._sections: list[Section] = []
        self._released = 0

    def teardown(self) -> None:
        self.state.close()
        self._temporary.cleanup()

    @initialize(backend=st.sampled_from(BACKENDS), keys=st.lists(KEYS, min_size=1, max_size=3))
    def begin(self, backend: Backend, keys: list[Any]) -> None:
        """Open the first store; few keys, so that much happens to each."""
        self._keys = keys
        self._open(backend, [])

    def _open(self, backend: Backend, sections: list[Section]) -> None:
        self.state = a_state(
            a_store(backend, self._folder),
            sections=sections,
            clock=self._clock,
            watermark_ms=self._watermark_ms,
        )
        self.value = self.state.value("value", default=[0])
        self.list = self.state.list("list")
        self.set = self.state.set("set")
        self.map = self.state.map("map")
        self.sum = self.state.reducing("sum", lambda kept, value: kept + value, coder="int")
        self.event = self.state.map("event", ttl=f"{TTL_MS}ms")
        self.wall = self.state.list("wall", ttl=f"{TTL_MS}ms", clock="processing")
        self.state.key, self.state.namespace = self._at
        self.state.time_ms = self._time_ms

    # -- where --------------------------------------------------------------------------------

    @rule(number=st.integers(0, 2), namespace=NAMESPACES)
    def go_to(self, number: int, namespace: Any) -> None:
        key = self._keys[number % len(self._keys)]
        self._at = (key, namespace)
        self.state.key = key
        self.state.namespace = namespace

    @rule(time_ms=TIMES)
    def take_record(self, time_ms: int) -> None:
        self._time_ms = self.state.time_ms = time_ms

    # -- states -------------------------------------------------------------------------------

    @rule(value=VALUES)
    def set_value(self, value: Any) -> None:
        self._values[self._at] = _copy(value)
        self.value.set(value)
        _spoil(value)

    @rule()
    def clear_value(self) -> None:
        self._values.pop(self._at, None)
        self.value.clear()

    @rule(values=st.lists(VALUES, max_size=3))
    def extend_list(self, values: list[Any]) -> None:
        self._lists.setdefault(self._at, []).extend(map(_copy, values))
        self.list.extend(values)
        _spoil(values)

    @rule()
    def clear_list(self) -> None:
        self._lists.pop(self._at, None)
        self.list.clear()

    @rule(entry=ENTRIES)
    def add_to_set(self, entry: Any) -> None:
        kept = self._sets.setdefault(self._at, {})
        assert self.set.add(entry) == (entry not in kept)
        kept.setdefault(entry, entry)

    @rule(entry=ENTRIES)
    def discard_from_set(self, entry: Any) -> None:
        self._sets.setdefault(self._at, {}).pop(entry, None)
        self.set.discard(entry)

    @rule(entry=ENTRIES, value=VALUES)
    def put_into_map(self, entry: Any, value: Any) -> None:
        self._maps.setdefault(self._at, {})[entry] = _copy(value)
        self.map[entry] = value
        _spoil(value)

    @rule(entry=ENTRIES)
    def remove_from_map(self, entry: Any) -> None:
        expected = self._maps.setdefault(self._at, {}).pop(entry, None)
        assert self.map.pop(entry) == expected

    @rule()
    def clear_map(self) -> None:
        self._maps.pop(self._at, None)
        self.map.clear()

    @rule(value=st.integers(-5, 5))
    def add_to_sum(self, value: int) -> None:
        self._sums[self._at] = self._sums.get(self._at, 0) + value
        assert self.sum.add(value) == self._sums[self._at]

    @rule(entry=ENTRIES, value=VALUES)
    def put_into_expiring_map(self, entry: Any, value: Any) -> None:
        written_ms = self._time_ms if self._time_ms > MIN_MS else self._watermark_ms
        self._event.setdefault(self._at, {})[entry] = (written_ms + TTL_MS, _copy(value))
        self.event[entry] = value

    @rule(value=VALUES)
    def add_to_expiring_list(self, value: Any) -> None:
        expires_ms = self._clock.now_ms + TTL_MS
        self._wall.setdefault(self._at, []).append((expires_ms, _copy(value)))
        self.wall.add(value)

    @rule()
    def clear_key(self) -> None:
        for states in (self._values, self._lists, self._sets, self._maps, self._sums):
            states.pop(self._at, None)
        self._event.pop(self._at, None)
        self._wall.pop(self._at, None)
        for timer in [each for each in self._timers if each[:2] == self._at]:
            del self._timers[timer]
        self.state.clear()

    # -- time ---------------------------------------------------------------------------------

    @rule(at_ms=TIMES, tag=TAGS)
    def set_event_timer(self, at_ms: int, tag: str) -> None:
        self._timers[*self._at, tag, "event"] = at_ms
        self.state.timers.event_time(at_ms, tag)

    @rule(at_ms=TIMES, tag=TAGS)
    def set_processing_timer(self, at_ms: int, tag: str) -> None:
        self._timers[*self._at, tag, "processing"] = at_ms
        self.state.timers.processing_time(at_ms, tag)

    @rule(tag=TAGS)
    def delete_timers(self, tag: str) -> None:
        self._timers.pop((*self._at, tag, "event"), None)
        self._timers.pop((*self._at, tag, "processing"), None)
        self.state.timers.delete_event_time(tag)
        self.state.timers.delete_processing_time(tag)

    @rule(by_ms=TIMES)
    def pass_event_time(self, by_ms: int) -> None:
        self._watermark_ms = max(self._watermark_ms, 0) + by_ms
        fired = list(self.state.timers.due_event(self._watermark_ms))
        self.state.advance(self._watermark_ms)
        self._time_ms = MIN_MS
        self._compare_fired(fired, "event", self._watermark_ms)

    @rule(by_ms=TIMES)
    def pass_wall_time(self, by_ms: int) -> None:
        self._clock.now_ms += by_ms
        fired = list(self.state.timers.due_processing(self._clock.now_ms))
        self._compare_fired(fired, "processing", self._clock.now_ms)
        assert self.state.timers.processing_from_ms > self._clock.now_ms

    def _compare_fired(self, fired: list[Any], domain: str, now_ms: int) -> None:
        expected = [
            (at_ms, *timer)
            for timer, at_ms in self._timers.items()
            if timer[3] == domain and at_ms <= now_ms
        ]
        for _, *timer in expected:
            del self._timers[tuple(timer)]
        assert [each.at_ms for each in fired] == sorted(each[0] for each in expected)
        assert {
            (each.at_ms, each.key, each.namespace, each.tag, each.domain) for each in fired
        } == {*expected}
        assert (self.state.key, self.state.namespace) == self._at

    # -- checkpoints --------------------------------------------------------------------------

    @rule()
    def snapshot(self) -> None:
        """Hand over what has changed; it is encoded later, when more has changed."""
        delta = self.state.snapshot()
        if delta is not None:
            self._deltas.append(delta)

    @rule()
    def snapshot_of_all(self) -> None:
        """Hand over all there is; the file is copied later, when something else has changed.

        What was handed over or stored before is of no use any more.
        """
        self.state.copies.finish()
        assert self.state.tell_again()
        delta = self.state.begin_snapshot(of_all=True)
        self._sections = []
        self._deltas = [] if delta is None else [delta]

    @precondition(lambda self: self._deltas)
    @rule(release=st.booleans())
    def store(self, release: bool) -> None:  # noqa: FBT001 -- drawn
        """Store the oldest delta, on another thread; perhaps once more."""
        self.state.copies.finish()
        delta = self._deltas[0]
        with ThreadPoolExecutor(1) as pool:
            sections = pool.submit(lambda: list(delta.sections())).result()
            if release:
                self._deltas.pop(0)
                self._sections += sections
                pool.submit(delta.release).result()

    @rule(backend=st.sampled_from(BACKENDS))
    def restart(self, backend: Backend) -> None:
        self.snapshot()
        for delta in self._deltas:
            self._sections += delta.sections()
        self._deltas = []
        self.state.close()
        self._open(backend, self._sections)

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def says_what_the_model_says(self) -> None:
        at = self._at
        assert self.value.get() == self._values.get(at, [0])
        assert self.value.is_empty == (at not in self._values)
        assert list(self.list) == self._lists.get(at, [])
        assert len(self.list) == len(self._lists.get(at, []))
        assert set(self.set) == set(self._sets.get(at, {}))
        assert dict(self.map.items()) == self._maps.get(at, {})
        assert self.sum.get() == self._sums.get(at)
        assert dict(self.event.items()) == self._live_event(at)
        assert list(self.wall) == self._live_wall(at)
        assert bool(self.wall) == bool(self._live_wall(at))

    @invariant()
    def lists_its_keys(self) -> None:
        for tag, states in (
            ("value", self._values),
            ("list", {at: each for at, each in self._lists.items() if each}),
            ("map", {at: each for at, each in self._maps.items() if each}),
            ("event", {at: None for at in self._event if self._live_event(at)}),
        ):
            keys = list(self.state.keys(tag))
            here = {at[0] for at in states if at[1] == self._at[1]} - {NO_KEY}
            assert set(keys) == here
            assert len(keys) == len(here)

    @invariant()
    def goes_through_collections_in_a_fixed_order(self) -> None:
        for entries in (list(self.map), list(self.event)):
            assert entries == sorted(entries, key=encode_key)

    def _live_event(self, at: _At) -> dict[Any, Any]:
        entries = self._event.get(at, {}).items()
        return {key: value for key, (until, value) in entries if until > self._watermark_ms}

    def _live_wall(self, at: _At) -> list[Any]:
        return [value for until, value in self._wall.get(at, []) if until > self._clock.now_ms]


def _copy(value: Any) -> Any:
    return [*value] if isinstance(value, list) else value


def _spoil(value: Any) -> None:
    if isinstance(value, list):
        value.append("changed by the user")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [(60, 30), (10, 200)], ids=["many short", "few long"])
def test_state_is_what_dicts_would_be(steps: tuple[int, int]) -> None:
    examples, length = steps
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=length,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
