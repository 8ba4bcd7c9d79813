"""Timers of keys."""

import itertools

import pytest

from gearpy.errors import ConfigError
from gearpy.ids import MAX_MS
from gearpy.state.encoding.keys import NO_KEY
from gearpy.state.keyed import KeyedState
from tests.state.build import MakeStore, a_state, changes_of


@pytest.fixture
def state(make: MakeStore) -> KeyedState:
    return a_state(make())


def fired(state: KeyedState, watermark_ms: int) -> list[tuple[object, str, int]]:
    return [(each.key, each.tag, each.at_ms) for each in state.timers.due_event(watermark_ms)]


def test_timers_fire_in_the_order_of_time(state: KeyedState) -> None:
    for key, at_ms in (("ada", 30), ("bob", 10), ("eve", 20), ("ida", 31)):
        state.key = key
        state.timers.event_time(at_ms)

    assert fired(state, 9) == []
    assert fired(state, 30) == [("bob", "", 10), ("eve", "", 20), ("ada", "", 30)]
    assert fired(state, 30) == []
    assert fired(state, 31) == [("ida", "", 31)]


def test_a_deleted_timer_does_not_fire(state: KeyedState) -> None:
    timers = state.timers
    timers.delete_event_time()
    timers.delete_processing_time("x")
    timers.event_time(10)
    timers.processing_time(10)
    timers.delete_event_time()
    timers.delete_processing_time()
    assert fired(state, 10) == []
    assert list(timers.due_processing(10)) == []
    assert timers.processing_from_ms == MAX_MS

    timers.event_time(12)
    timers.delete_event_time()
    timers.event_time(11)

    assert fired(state, 20) == [(NO_KEY, "", 11)]


def test_all_timers_of_a_key_are_cleared(state: KeyedState) -> None:
    for key in ("ada", "bob"):
        state.key = key
        state.timers.event_time(5)
        state.timers.event_time(5, "x")
        state.timers.processing_time(5)

    state.timers.clear()

    assert fired(state, 5) == [("ada", "", 5), ("ada", "x", 5)]
    assert [each.key for each in state.timers.due_processing(5)] == ["ada"]


def test_timers_come_back_after_a_restart(make: MakeStore) -> None:
    state = a_state(make())
    for key, at_ms in (("ada", 10), ("bob", 20), ("eve", 30)):
        state.key = key
        state.timers.event_time(at_ms)
        state.timers.processing_time(at_ms + 1)
    first = changes_of(state)
    fired(state, 10)
    state.key = "bob"
    state.timers.event_time(25)
    second = changes_of(state)

    again = a_state(make(), sections=[*first, *second])

    assert again.timers.processing_from_ms == 11
    assert fired(again, 40) == [("bob", "", 25), ("eve", "", 30)]
    assert [each.at_ms for each in again.timers.due_processing(40)] == [11, 21, 31]


def test_setting_a_timer_to_the_same_time_changes_nothing(state: KeyedState) -> None:
    state.timers.event_time(10)
    changes_of(state)
    state.timers.event_time(10)

    assert changes_of(state) == []


def test_what_a_timer_on_wall_time_sets_fires_at_the_next_call(state: KeyedState) -> None:
    """One that is always due would let no record through."""
    state.timers.processing_time(10)
    seen = []
    for timer in state.timers.due_processing(10):
        seen.append(timer.at_ms)
        state.timers.processing_time(10)
    assert seen == [10]
    assert state.timers.processing_from_ms == 10

    assert [timer.at_ms for timer in state.timers.due_processing(10)] == [10]


def test_timers_that_were_not_asked_for_are_kept(state: KeyedState) -> None:
    for at_ms in (1, 2, 3):
        state.timers.processing_time(at_ms, str(at_ms))
        state.timers.event_time(at_ms, str(at_ms))
    for due in (state.timers.due_processing(5), state.timers.due_event(5)):
        next(due)
        state.timers.processing_time(4, "4")
        due.close()  # type: ignore[attr-defined]

    assert [each.at_ms for each in state.timers.due_processing(5)] == [2, 3, 4]
    assert [each.at_ms for each in state.timers.due_event(5)] == [2, 3]


def test_a_timer_deleted_by_another_one_does_not_fire(state: KeyedState) -> None:
    state.timers.event_time(1, "a")
    state.timers.event_time(2, "b")
    seen = []
    for timer in state.timers.due_event(5):
        seen.append(timer.tag)
        state.timers.delete_event_time("b")

    assert seen == ["a"]


def test_state_expires_by_the_time_of_the_timer(state: KeyedState) -> None:
    """However far the watermark has come in one step; otherwise results would depend on it."""
    seen = state.value("seen", ttl="10ms")
    state.time_ms = 0
    seen.set("it")
    state.timers.event_time(9, "before")
    state.timers.event_time(10, "after")

    found = {timer.tag: (seen.get(), state.time_ms) for timer in state.timers.due_event(1000)}

    assert found == {"before": ("it", 9), "after": (None, 10)}


def test_all_timers_fire_at_the_end_of_the_stream(state: KeyedState) -> None:
    state.timers.event_time(MAX_MS, "end")
    state.timers.event_time(10**15, "far")
    seen = []
    for timer in state.timers.due_event(MAX_MS):
        seen.append(timer.tag)
        if timer.tag == "far":
            state.timers.event_time(timer.at_ms + 1, "further")

    assert seen == ["far", "further", "end"]


def test_a_timer_that_sets_itself_for_ever_is_named_at_the_end(state: KeyedState) -> None:
    """The stream would never end, and nobody would know why."""
    state.key = "ada"
    state.timers.event_time(0, "each second")

    def fire() -> None:
        for timer in state.timers.due_event(MAX_MS):
            state.timers.event_time(timer.at_ms + 1000, "each second")

    with pytest.raises(ConfigError, match="timer 'each second' of key 'ada' has set itself 1000"):
        fire()


@pytest.mark.parametrize("watermark_ms", [10**6, MAX_MS])
@pytest.mark.parametrize("step_ms", [0, -5])
@pytest.mark.parametrize("tags", [["a"], ["a", "b"], [str(n) for n in range(5000)]], ids=len)
def test_timers_that_set_each_other_while_time_stands_still_are_named(
    state: KeyedState, tags: list[str], step_ms: int, watermark_ms: int
) -> None:
    """In the middle of a stream, too: it would never go on."""
    state.key = "ada"
    state.timers.event_time(5000, tags[0])
    tag = itertools.cycle(tags)

    def fire() -> None:
        for timer in state.timers.due_event(watermark_ms):
            state.timers.event_time(timer.at_ms + step_ms, next(tag))

    with pytest.raises(ConfigError, match="of key 'ada' has set itself 1000 times") as refusal:
        fire()
    assert ("set it for a later time" in str(refusal.value)) == (watermark_ms != MAX_MS)


def test_a_timer_may_set_itself_for_a_later_time_up_to_the_watermark(state: KeyedState) -> None:
    """However often; and many timers may be due at one time."""
    for number in range(3000):
        state.timers.event_time(0, f"other {number}")
    state.timers.event_time(0, "tick")
    ticks = 0
    for timer in state.timers.due_event(5000):
        if timer.tag == "tick":
            ticks += 1
            state.timers.event_time(timer.at_ms + 1, "tick")

    assert ticks == 5001
    assert state.timers.event.first_ms == 5001


def test_moving_a_timer_with_each_record_does_not_fill_the_queue(make: MakeStore) -> None:
    state = a_state(make())
    timers = state.timers
    for number in range(4000):
        timers.event_time(10_000 + number, "session")
        timers.delete_event_time("other")
        timers.event_time(10_000 - number, "other")

    assert timers.event._entries <= 1003  # noqa: SLF001 -- what takes memory is not seen outside
    assert fired(state, 20_000) == [(NO_KEY, "other", 6001), (NO_KEY, "session", 13_999)]


def test_scopes_have_timers_of_their_own(make: MakeStore) -> None:
    state = a_state(make())
    scope = state.scope("stage")
    state.timers.event_time(1)
    scope.timers.event_time(2)
    again = a_state(make(), sections=changes_of(state))

    for each in (state, again):
        assert fired(each, 5) == [(NO_KEY, "", 1)]
        assert fired(each.scope("stage"), 5) == [(NO_KEY, "", 2)]
