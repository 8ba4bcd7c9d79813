"""What lets records of a step wait for event time, see `gearpy.task.chain.event_gate`."""

from collections.abc import Sequence

import pytest

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import NOWHERE, Batch, Origin
from gearpy.messages.late_time import late_time
from gearpy.state.stores.store import Section
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.event_gate import EventGate, Waits
from tests.task.build import a_context

ALONE = Origin(0, 0, 0, is_alone=True)
SORTED = Origin(0, 0, 0, is_alone=True, is_sorted=True)


def gate_of(
    *, waits: Waits = "late", sources: int = 0, kept: Sequence[Section] = ()
) -> tuple[EventGate, TaskContext]:
    context = a_context()
    context.sources = sources
    assert context.keyed is not None
    context.keyed.load(kept)
    gate = EventGate(context, lambda value: value, waits=waits)
    gate.restore(0, "step")
    return gate, context


def taken(
    gate: EventGate, values: list[str], times: list[int], origin: Origin = NOWHERE
) -> tuple[list[str], list[int]]:
    passed = gate.take(Batch(values, times, has_late=True, origin=origin))
    return passed.values, passed.timestamps


def due(gate: EventGate, watermark_ms: int) -> list[tuple[int, list[str], list[int]]]:
    return [(at_ms, each.values, each.timestamps) for at_ms, each in gate.due(watermark_ms)]


def test_records_in_time_pass() -> None:
    gate, _ = gate_of()
    values, times = ["a", "b"], [3, 1]

    assert taken(gate, values, times)[0] is values
    assert not len(gate)


def test_late_record_waits_until_event_time_has_passed_the_promise() -> None:
    gate, _ = gate_of()

    assert taken(gate, ["a", "late"], [30, late_time(5, 20)]) == (["a"], [30])
    assert gate.first_ms == 20
    assert due(gate, 20) == []
    assert due(gate, 21) == [(20, ["late"], [5])]


def test_all_records_wait_where_order_is_seen() -> None:
    gate, _ = gate_of(waits="all")

    assert taken(gate, ["c", "late", "a"], [30, late_time(5, 20), 10]) == ([], [])
    found = due(gate, MAX_MS)

    assert found == [(MIN_MS, ["a"], [10]), (20, ["late"], [5]), (MIN_MS, ["c"], [30])]
    assert {type(time) for _, _, times in found for time in times} == {int}


@pytest.mark.parametrize(
    ("origin", "sources", "passes"),
    [
        (SORTED, 1, True),
        (SORTED, 2, False),
        (SORTED, 0, False),
        (ALONE, 1, False),
        (NOWHERE, 1, False),
        (Origin(0, 1, is_by_arrival=True), 3, True),
    ],
)
def test_records_pass_that_have_their_order_already(
    origin: Origin, sources: int, *, passes: bool
) -> None:
    gate, _ = gate_of(waits="all", sources=sources)

    assert (taken(gate, ["a"], [1], origin) == (["a"], [1])) is passes


def test_behind_a_late_record_others_wait_too() -> None:
    """Else they would overtake it."""
    gate, _ = gate_of(waits="all", sources=1)

    assert taken(gate, ["a", "late"], [9, late_time(3, 9)], SORTED) == ([], [])
    assert taken(gate, ["b"], [10], SORTED) == ([], [])
    assert [values for _, values, _ in due(gate, 10)] == [["a"], ["late"], ["b"]]
    assert taken(gate, ["c"], [11], SORTED) == (["c"], [11])


def test_what_waits_comes_back_after_a_restart() -> None:
    gate, context = gate_of()
    taken(gate, ["x", "y"], [late_time(1, 10), late_time(2, 30)])
    gate.tell()
    first = snapshot_of(context)
    due(gate, 20)
    gate.tell()
    again, _ = gate_of(kept=[*first, *snapshot_of(context)])

    assert due(again, MAX_MS) == [(30, ["y"], [2])]


def snapshot_of(context: TaskContext) -> list[Section]:
    assert context.keyed is not None
    delta = context.keyed.snapshot()
    return [] if delta is None else list(delta.sections())


def test_records_that_wait_have_a_size() -> None:
    gate, context = gate_of(waits="all", sources=2)
    assert context.keyed is not None
    assert context.keyed.size_bytes == 0

    taken(gate, ["x" * 100] * 1000, [5] * 1000)

    assert 100_000 < context.keyed.size_bytes < 500_000
