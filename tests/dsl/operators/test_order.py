"""In which order a key's records come, see `Operator.order`."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gearpy as gp
from gearpy.task.stages.plan import physical_plan
from gearpy.testing import FlowDriver, ManualSource, Simulation

GAP_MS = 100


class Quiet(gp.Task[tuple[str, int], Any]):
    """Tells how many records a key had before it was quiet for a while."""

    def on_start(self, start_time_ms: int) -> None:
        self.count = self.context.state.value("count", default=0)

    def on_next(self, message: gp.Message[Any]) -> None:
        self.count.set(self.count.get() + 1)
        self.context.state.timers.event_time(message.timestamp + GAP_MS)

    def on_key_timer(self, timer: gp.KeyTimer) -> Iterator[gp.Message[Any]]:
        yield gp.Message((timer.key, self.count.get(), timer.at_ms), timer.at_ms)
        self.context.state.clear()


def quiet_times(*, batch: int, partitions: int, ordered: bool = True) -> list[Any]:
    app, out = gp.StreamApp("quiet"), list[Any]()
    times = [sum(60 if at % 3 else 150 for at in range(number)) for number in range(60)]
    records = gp.collection([gp.Message(("a", at), at) for at in times], partitions=partitions)
    app.read(records).key_by(lambda pair: pair[0], ordered=ordered).process(Quiet).write(
        gp.to_list(out)
    )
    Simulation(app, read_records=batch).run()
    return out


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_timers_fire_between_records(batch: int, partitions: int) -> None:
    found = quiet_times(batch=batch, partitions=partitions)

    assert [count for _, count, _ in found] == [1, *[3] * 19, 2]
    assert [at for _, _, at in found] == sorted(at for _, _, at in found)


def test_order_of_arrival_is_given_where_asked_for() -> None:
    assert len(quiet_times(batch=1000, partitions=1, ordered=False)) == 1


def orders_of(make: Callable[[Any], Any], **source: Any) -> list[str]:
    app = gp.StreamApp("orders")
    make(app.read(gp.collection([gp.Message({"k": 1, "n": 2}, 3)], **source))).write(gp.to_list([]))
    plan = physical_plan(app.build())
    return [step.order for each in plan.processors for step in each.steps if step.order]


KEYED: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "process": (lambda s: s.key_by("k").process(Quiet), ["event time"]),
    "state": (lambda s: s.key_by("k").map_with_state(lambda n, r: (n, r)), ["event time"]),
    "distinct": (lambda s: s.key_by("k").distinct(), ["event time"]),
    "running": (lambda s: s.key_by("k").count(), ["event time"]),
    "arrival": (lambda s: s.key_by("k", ordered=False).count(), ["arrival"]),
    "window": (lambda s: s.key_by("k").window(gp.tumbling("5ms")).sum("n"), []),
    "reduce": (lambda s: s.window(gp.tumbling("5ms")).reduce(max), ["event time"]),
    "early": (
        lambda s: s.window(
            gp.tumbling("5ms").triggering(gp.after_watermark(early=gp.every(count=2)))
        ).count(),
        ["arrival"],
    ),
    "map": (lambda s: s.map(str), []),
}


@pytest.mark.parametrize(("make", "orders"), KEYED.values(), ids=KEYED)
def test_plan_says_by_which_order_a_step_goes(
    make: Callable[[Any], Any], orders: list[str]
) -> None:
    assert orders_of(make) == orders


def test_records_of_two_sources_come_by_event_time() -> None:
    app, out = gp.StreamApp("two"), list[Any]()
    fast, slow = ManualSource("fast"), ManualSource("slow")
    both = app.read(fast).merge(app.read(slow))
    both.key_by(lambda _: "all").map_with_state(
        lambda before, value: (value, (before, value))
    ).write(gp.to_list(out))
    flow = FlowDriver(app)
    for source in (fast, slow):
        flow.watermark(source, 0)
    flow.send(fast, "c", timestamp=30)
    flow.watermark(fast, 30)
    flow.send(slow, "a", timestamp=10)
    flow.watermark(slow, 20)
    assert out == [(None, "a")]

    flow.send(slow, "b", timestamp=25)
    flow.end(slow)
    flow.end(fast)
    flow.stop()

    assert out == [(None, "a"), ("a", "b"), ("b", "c")]


def test_state_expires_as_of_the_record_at_hand() -> None:
    """Whatever has been read since."""
    found = set()
    for batch in (1, 1000):
        app, out = gp.StreamApp("expiry"), list[Any]()
        times = [0, 80, 170, 300, 350, 460]
        records = gp.collection([gp.Message("a", at) for at in times], partitions=2)
        app.read(records).key_by(str).map_with_state(
            lambda n, _: ((n or 0) + 1, n), ttl="100ms"
        ).write(gp.to_list(out))
        Simulation(app, read_records=batch).run()
        found.add(tuple(out))

    assert found == {(None, 1, 2, None, 1, None)}
