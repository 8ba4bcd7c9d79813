"""What is due, and which time is the oldest."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.agenda import Agenda, OldestTime
from gearpy.ids import MAX_MS


@given(st.lists(st.one_of(st.tuples(st.integers(0, 9), st.integers()), st.integers(0, 9))))
def test_what_is_due_comes_in_order(steps: list[Any]) -> None:
    """Invariant: by time, then as it was put in; each once; nothing before its time."""
    agenda = Agenda[int]()
    kept: list[tuple[int, int]] = []

    for step in [*steps, 9]:
        if isinstance(step, tuple):
            agenda.put(*step)
            kept.append(step)
            continue
        due = [(time, thing) for time, things in agenda.due(step) for thing in things]
        assert due == sorted((each for each in kept if each[0] <= step), key=lambda pair: pair[0])
        kept = [each for each in kept if each[0] > step]
        assert agenda.next_ms == min((time for time, _ in kept), default=MAX_MS)


@given(st.lists(st.integers(-9, 9)), st.data())
def test_oldest_of_times_that_come_and_go(times: list[int], data: st.DataObject) -> None:
    """Invariant: the least of those that are there, some of them several times."""
    oldest, kept = OldestTime(), list[int]()

    for time in times:
        oldest.add(time)
        kept.append(time)
        if data.draw(st.booleans()):
            gone = kept.pop(data.draw(st.integers(0, len(kept) - 1)))
            oldest.move(gone, None)
        assert oldest.oldest_ms == min(kept, default=MAX_MS)


def test_times_that_have_gone_take_no_room() -> None:
    """Though one that stays keeps all later ones from being looked at."""
    oldest = OldestTime()
    oldest.add(0)

    for time in range(1, 10_000):
        oldest.add(time)
        oldest.remove(time)

    assert len(oldest._heap) < 100  # noqa: SLF001 - nothing else shows it
    assert oldest.oldest_ms == 0
