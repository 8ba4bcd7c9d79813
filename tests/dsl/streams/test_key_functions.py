"""Functions that give keys: each is called once for a record, in order, whatever comes of it."""

from collections.abc import Callable
from typing import Any, Final

import pytest

import gearpy as gp
from gearpy.testing import Simulation


class Count(gp.Task):
    def on_start(self, start_time_ms: int) -> None:
        self.count = self.context.state.value("count", default=0)

    def on_next(self, message: gp.Message) -> None:
        self.count.set(self.count.get() + 1)
        self.context.output(gp.Message(self.count.get(), message.timestamp))


STEPS: Final[dict[str, Callable[[Any], Any]]] = {
    "count": lambda keyed: keyed.count(),
    "sum": lambda keyed: keyed.sum(),
    "reduce": lambda keyed: keyed.reduce(lambda kept, record: kept + record),
    "distinct": lambda keyed: keyed.distinct(),
    "map_with_state": lambda keyed: keyed.map_with_state(lambda _, record: (record, record)),
    "flat_map_with_state": lambda keyed: keyed.flat_map_with_state(
        lambda _, record: (record, [record])
    ),
    "process": lambda keyed: keyed.process(Count),
    "window count": lambda keyed: keyed.window(gp.tumbling("1s")).count(),
    "window reduce": lambda keyed: keyed.window(gp.tumbling("1s")).reduce(max),
    "sliding": lambda keyed: keyed.window(gp.sliding("2s", "1s").allowed_lateness("1s")).reduce(
        max
    ),
    "session": lambda keyed: keyed.window(gp.session("1s")).count(),
}
KINDS: Final[dict[str, Callable[[int], Any]]] = {
    "text": str,
    "tuple": lambda record: (record, "a"),
    "none can be a key": lambda record: [record],
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [None, 5])
def test_a_key_function_is_called_once_for_a_record(step: str, kind: str, bad: int | None) -> None:
    app, calls = gp.StreamApp("keys", parallelism=1), list[int]()

    def key(record: int) -> Any:
        calls.append(record)
        if record == bad:
            raise ValueError(record)
        return KINDS[kind](record) if record % 5 == 1 else str(record % 2)

    records = app.read(gp.collection([gp.Message(each, each * 10) for each in range(12)]))
    results: list[Any] = []
    STEPS[step](records.key_by(key)).write(gp.to_list(results))
    Simulation(app, on_error="skip").run()

    assert calls == [*range(12)]
    assert results
