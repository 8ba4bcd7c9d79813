"""A `gp.Message` that a function gives as a record, or as its result, is refused with its step.

A task sends messages; all other functions give values, whose event times are those of their input.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gearpy as gp
from gearpy.testing import Simulation

COUNT = 40


class Wrapping(gp.Task[Any, Any]):
    def on_next(self, message: gp.Message[Any]) -> Iterator[gp.Message[Any]]:
        yield gp.Message(message, message.timestamp)


class Timed(gp.Task[Any, Any]):
    def on_next(self, message: gp.Message[Any]) -> None:
        self.context.schedule(1, message)

    def on_timer(self, payload: Any) -> Iterator[gp.Message[Any]]:
        yield gp.Message(payload.value["v"], 7)
        yield gp.Message(payload.value["v"] + 100, 8)


class TimedWrapping(Timed):
    def on_timer(self, payload: Any) -> Iterator[gp.Message[Any]]:
        yield gp.Message(payload, 7)


async def wrapped(record: Any) -> Any:
    return gp.Message(record, 1)


def wrap(record: Any) -> Any:
    return gp.Message(record, 1)


STEPS: dict[str, Callable[[Any], Any]] = {
    "map": lambda rows: rows.map(wrap),
    "map of some": lambda rows: rows.map(lambda row: wrap(row) if row["v"] == 11 else row),
    "map, map": lambda rows: rows.map(wrap).map(lambda message: message),
    "flat_map": lambda rows: rows.flat_map(lambda row: [wrap(row)] * 2),
    "generator": lambda rows: rows.flat_map(lambda row: (wrap(row) for _ in range(2))),
    "process": lambda rows: rows.process(Wrapping).map(lambda row: row),
    "on_timer": lambda rows: rows.process(TimedWrapping).map(lambda row: row),
    "map_async": lambda rows: rows.map_async(wrapped),
    "lookup": lambda rows: rows.lookup(wrapped, key="k", combine=lambda _, found: found),
    "map_batches": lambda rows: rows.map_batches(wrap),
    "map_with_state": lambda rows: rows.key_by("k").map_with_state(lambda _, row: (1, wrap(row))),
    "flat_map_with_state": lambda rows: rows.key_by("k").flat_map_with_state(
        lambda _, row: (1, [wrap(row)])
    ),
    "reduce": lambda rows: rows.key_by("k").reduce(lambda one, _: wrap(one)),
    "fold": lambda rows: rows.key_by("k").fold(0, lambda total, _: wrap(total)),
    "window reduce": lambda rows: rows.window(gp.tumbling("10ms")).reduce(lambda a, _: wrap(a)),
    "window fold": lambda rows: (
        rows.key_by("k").window(gp.global_window()).fold(0, lambda total, _: wrap(total))
    ),
}


def results(step: Callable[[Any], Any]) -> list[Any]:
    app, found = gp.StreamApp("messages"), []  # type: ignore[var-annotated]
    rows = [{"k": v % 2, "v": v} for v in range(COUNT)]
    step(app.read(gp.collection(rows, timestamp=lambda row: row["v"]))).write(gp.to_list(found))
    Simulation(app).run()
    return found


@pytest.mark.parametrize("name", STEPS)
def test_a_message_is_no_record(name: str) -> None:
    with pytest.raises(gp.OperatorError, match=r"gp\.Message|a Message: give") as raised:
        _ = results(STEPS[name])

    assert name in {"process", "on_timer"} or "(" in raised.value.operator
