"""Batches are handed over one after the other, and the same again after whatever has happened."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.handover.handoff import (
    Call,
    Connect,
    GiveUpBatch,
    Handoff,
    HandoffBatch,
    HandoffLimits,
    Pause,
    Pressure,
    Step,
    WriteDone,
    WriteIntent,
)
from gearpy.core.handover.window_log import LogSegment, LogView
from gearpy.errors import GearpyError

LIMITS = HandoffLimits(batch_rows=100, attempts=3, pause_ms=100, pause_max_ms=400, outage_ms=10_000)
LANE = "windows-00000"


def a_view(*rows: int, first: int = 1, lane: str = LANE) -> LogView:
    return LogView(
        LogSegment("", lane, seq, seq, count, seq, "run", 1)
        for seq, count in enumerate(rows, start=first)
    )


def a_batch(batch_id: int, start: int, end: int, rows: int = 1) -> HandoffBatch:
    begin = {LANE: start} if start else {}
    return HandoffBatch(batch_id=batch_id, start=begin, end={LANE: end}, rows=rows)


def a_handoff(
    done: HandoffBatch | None = None,
    intended: HandoffBatch | None = None,
    limits: HandoffLimits = LIMITS,
    *,
    is_connected: bool = True,
) -> Handoff:
    handoff = Handoff(limits, done=done, intended=intended, rng=Random(1))
    if is_connected:
        handoff.on_connected()
    return handoff


def test_each_batch_is_written_down_before_and_after_the_call() -> None:
    handoff, view = a_handoff(), a_view(5, 7)
    batch = a_batch(1, 0, 2, rows=12)

    first = handoff.next(view, 0)
    handoff.on_intent_written()
    second = handoff.next(view, 0)
    handoff.on_called()
    third = handoff.next(view, 0)
    handoff.on_done_written()

    assert [first, second, third] == [WriteIntent(batch), Call(batch, 1), WriteDone(batch)]
    assert handoff.next(view, 0) == Pause(None)
    assert (handoff.done_id, handoff.position) == (1, {LANE: 2})


@pytest.mark.parametrize(
    "intended", [a_batch(4, 1, 2), a_batch(2, 0, 2)], ids=["number", "position"]
)
def test_what_does_not_belong_together_is_refused(intended: HandoffBatch) -> None:
    """Rather than to leave rows out, or to hand them over under two numbers."""
    with pytest.raises(GearpyError, match="was begun at"):
        a_handoff(done=a_batch(1, 0, 1), intended=intended)


def test_function_that_raises_is_called_again_after_longer_and_longer_pauses() -> None:
    handoff = a_handoff(limits=HandoffLimits(attempts=9, pause_ms=100, pause_max_ms=400))
    handoff.next(a_view(5), 0)
    handoff.on_intent_written()
    waits, calls = [], []

    for _ in range(5):
        calls.append(handoff.next(a_view(5), 0))
        handoff.on_call_failed(0)
        step = handoff.next(a_view(5), 0)
        assert isinstance(step, Pause)
        waits.append(step.until_ms or 0)
        handoff._resume_ms = None  # noqa: SLF001 - time passes

    assert calls == [Call(a_batch(1, 0, 1, rows=5), attempt) for attempt in range(1, 6)]
    assert all(
        longest // 2 <= wait <= longest
        for wait, longest in zip(waits, [100, 200, 400, 400, 400], strict=True)
    )


def test_gives_up_when_the_function_has_raised_too_often() -> None:
    handoff = a_handoff()
    handoff.next(a_view(5), 0)
    handoff.on_intent_written()
    for _ in range(3):
        handoff.on_call_failed(0)

    assert [handoff.next(a_view(5), now) for now in (0, 10**9)] == [GiveUpBatch("function")] * 2


def test_failures_of_one_batch_do_not_count_for_the_next() -> None:
    handoff = a_handoff()
    for _ in range(2):
        handoff.next(a_view(5, 200), 0)
        handoff.on_intent_written()
        for _ in range(2):
            handoff.on_call_failed(0)
        handoff.on_called()
        handoff.on_done_written()

    assert handoff.next(a_view(5, 200), 0) == Pause(None)


def test_spark_that_is_lost_is_looked_for_and_gets_the_same_batch() -> None:
    handoff = a_handoff()
    handoff.next(a_view(5), 0)
    handoff.on_intent_written()

    handoff.on_spark_lost(1000)
    pause = handoff.next(a_view(5), 1000)
    then = handoff.next(a_view(5), 2000)
    handoff.on_connected()

    assert isinstance(pause, Pause)
    assert 1050 <= (pause.until_ms or 0) <= 1100
    assert then == Connect()
    assert handoff.next(a_view(5), 2000) == Call(a_batch(1, 0, 1, rows=5), 2)


def test_nobody_misses_spark_while_nothing_waits_for_it() -> None:
    """An idle application goes on; how long Spark was away counts from the first batch on."""
    handoff = a_handoff(is_connected=False)
    handoff.on_spark_lost(0)
    handoff.on_spark_lost(50_000)
    idle = handoff.next(a_view(), 90_000)

    handoff.next(a_view(5), 100_000)
    handoff.on_spark_lost(100_000)
    handoff.on_spark_lost(109_999)
    waiting = handoff.next(a_view(5), 109_999)
    handoff.on_spark_lost(110_000)

    assert idle == Connect()
    assert isinstance(waiting, Pause)
    assert handoff.next(a_view(5), 110_000) == GiveUpBatch("spark")


def test_a_call_that_was_void_is_repeated_at_once_and_counts_not() -> None:
    handoff = a_handoff()
    handoff.next(a_view(5), 0)
    handoff.on_intent_written()

    for _ in range(10):
        handoff.on_call_void()

    assert handoff.next(a_view(5), 0) == Call(a_batch(1, 0, 1, rows=5), 11)


def test_reached_is_what_there_must_be() -> None:
    done = a_handoff(done=a_batch(1, 0, 1))
    begun = a_handoff(done=a_batch(1, 0, 1), intended=a_batch(2, 1, 4))

    assert (a_handoff().reached, done.reached, begun.reached) == ({}, {LANE: 1}, {LANE: 4})


def test_gives_up_when_spark_ends_in_every_call() -> None:
    """A batch that kills its JVM each time is away too, though there is a session in between."""
    handoff = a_handoff()
    handoff.next(a_view(5), 0)
    handoff.on_intent_written()

    for now_ms in range(0, 11_000, 1000):
        handoff.on_spark_lost(now_ms)
        handoff.on_connected()

    assert handoff.next(a_view(5), 11_000) == GiveUpBatch("spark")


def test_an_outage_that_is_over_does_not_count_later() -> None:
    handoff = a_handoff(is_connected=False)
    handoff.on_spark_lost(0)
    handoff.on_connected()
    handoff.next(a_view(5), 3_600_000)
    handoff.on_intent_written()

    handoff.on_spark_lost(3_600_000)

    assert isinstance(handoff.next(a_view(5), 3_600_000), Pause)


@dataclass
class World:
    """What survives a crash: the log, what was written down; and what the function has seen."""

    rows: list[int] = field(default_factory=list)
    done: HandoffBatch | None = None
    intended: HandoffBatch | None = None
    calls: list[HandoffBatch] = field(default_factory=list)
    attempts: list[tuple[int, int]] = field(default_factory=list)
    now_ms: int = 0

    def step(self, handoff: Handoff, what: Step, event: str) -> None:
        """Do what it says; ``event`` is what comes of it, or when all ends in the middle."""
        match what:
            case Connect():
                handoff.on_connected() if event != "lost" else handoff.on_spark_lost(self.now_ms)
            case WriteIntent(batch) if event != "crash-before":
                self.intended = batch
                handoff.on_intent_written()
            case Call(batch, attempt) if event != "crash-before":
                self.calls.append(batch)
                self.attempts.append((batch.batch_id, attempt))
                if event == "lost":
                    handoff.on_spark_lost(self.now_ms)
                elif event == "raises":
                    handoff.on_call_failed(self.now_ms)
                else:
                    handoff.on_called()
            case WriteDone(batch) if event != "crash-before":
                self.done = batch
                handoff.on_done_written()
            case Pause(until_ms) if until_ms is not None:
                self.now_ms = until_ms


EVENTS = st.sampled_from(
    ["go", "go", "go", "more", "lost", "raises", "crash-before", "crash-behind"]
)
PATIENT = HandoffLimits(batch_rows=20, attempts=10**6, pause_ms=1, outage_ms=10**12)


def played(world: World, events: list[str], seed: int) -> Iterator[Handoff]:
    rng = Random(seed)
    handoff = Handoff(PATIENT, done=None, intended=None, rng=rng)
    for event in [*events, *["go"] * (8 * len(events) + 50)]:
        if event == "more":
            world.rows.append(rng.randint(1, 30))
        world.step(handoff, handoff.next(a_view(*world.rows), world.now_ms), event)
        if event.startswith("crash"):
            handoff = Handoff(PATIENT, done=world.done, intended=world.intended, rng=rng)
        yield handoff


@given(st.lists(EVENTS, max_size=60), st.integers(0, 2**32))
def test_every_row_is_in_one_batch_whatever_ends_in_the_middle(
    events: list[str], seed: int
) -> None:
    world = World()

    *_, last = played(world, ["more", *events], seed)

    batches = {batch.batch_id: batch for batch in world.calls}
    assert all(batches[batch.batch_id] == batch for batch in world.calls)
    assert list(batches) == list(range(1, len(batches) + 1))
    ends = [dict(batches[number].end) for number in sorted(batches)]
    starts = [dict(batches[number].start) for number in sorted(batches)]
    assert starts == [{}, *ends[:-1]]
    assert ends[-1] == {LANE: len(world.rows)}
    assert sum(batch.rows for batch in batches.values()) == sum(world.rows)
    assert (last.done_id, last.is_idle) == (len(batches), True)


@given(st.lists(EVENTS, max_size=60), st.integers(0, 2**32))
def test_a_first_attempt_is_the_first(events: list[str], seed: int) -> None:
    world = World()

    for _ in played(world, ["more", *events], seed):
        pass

    seen: set[int] = set()
    for batch_id, attempt in world.attempts:
        assert (attempt > 1) or batch_id not in seen
        seen.add(batch_id)


def test_stream_waits_from_the_limit_on_until_half_is_handed_over() -> None:
    pressure = Pressure(100)
    told = []

    for rows in (0, 99, 100, 150, 99, 51, 50, 99, 100):
        has_room_again = pressure.on_waiting(rows)
        told.append((rows, pressure.is_full, has_room_again))

    assert told == [
        (0, False, False),
        (99, False, False),
        (100, True, False),
        (150, True, False),
        (99, True, False),
        (51, True, False),
        (50, False, True),
        (99, False, False),
        (100, True, False),
    ]


@given(st.integers(1, 50), st.lists(st.integers(0, 120)))
def test_stream_never_waits_for_nothing(rows_max: int, seen: list[int]) -> None:
    pressure = Pressure(rows_max)
    for rows in seen:
        pressure.on_waiting(rows)
        assert pressure.is_full or rows < rows_max

    pressure.on_waiting(0)

    assert not pressure.is_full
