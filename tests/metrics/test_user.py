"""Metrics of programs: few, well named, one kind each."""

import pickle
from contextvars import copy_context
from typing import Any

import pytest

from gearpy.errors import ConfigError
from gearpy.metrics.histogram import count_of
from gearpy.metrics.user import METRICS_MAX, UserMetrics, counter, gauge, histogram


def test_the_same_name_is_the_same_metric() -> None:
    metrics = UserMetrics()

    for amount in (1, 2.5):
        metrics.counter("orders").add(amount)
    metrics.counter("orders").add()
    metrics.gauge("open").set(7)
    metrics.histogram("price_euros").observe(3.5)
    metrics.histogram("price_euros").observe(4.5, 2)

    orders, opened, price = metrics.samples()
    assert (orders.name, orders.kind, orders.value) == ("orders", "counter", 4.5)
    assert (opened.name, opened.kind, opened.value) == ("open", "gauge", 7.0)
    assert (price.kind, count_of(price.histogram), price.histogram.total) == ("histogram", 3, 12.5)


@pytest.mark.parametrize("name", ["", "Orders", "1st", "a-b", "orders_total", "a" * 61, "ä"])
def test_a_name_that_prometheus_would_not_take_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a metric: begin with a letter"):
        UserMetrics().counter(name)


def test_a_name_has_one_kind() -> None:
    """Else one of the two would be lost."""
    metrics = UserMetrics()
    metrics.counter("orders")

    with pytest.raises(ConfigError, match="'orders' is a counter already: give the gauge"):
        metrics.gauge("orders")


def test_names_made_of_keys_are_refused_before_they_are_many() -> None:
    metrics = UserMetrics()
    for number in range(METRICS_MAX):
        metrics.gauge(f"of_key_{number}")

    with pytest.raises(ConfigError, match="a key or an id must not be part of a name"):
        metrics.gauge("of_another_key")


def test_a_counter_never_falls() -> None:
    with pytest.raises(ConfigError, match="use a gauge"):
        UserMetrics().counter("orders").add(-1)


def test_a_named_metric_is_that_of_the_task_at_work() -> None:
    orders, price, opened = counter("orders"), histogram("price_euros"), gauge("open")
    one, other = UserMetrics(), UserMetrics()

    def work() -> None:
        for amount, metrics in ((1, one), (10, other), (100, one)):
            metrics.enter()
            pickle.loads(pickle.dumps(orders)).add(amount)  # noqa: S301 - ours
            price.observe(amount)
            opened.set(amount)

    copy_context().run(work)

    assert [each.value for each in one.samples()] == [101, 0, 100]
    assert [each.value for each in other.samples()] == [10, 0, 10]


def test_outside_of_a_task_nothing_is_counted_and_mistakes_are_still_told() -> None:
    def work() -> None:
        for _ in range(METRICS_MAX + 1):
            counter("orders").add()
        with pytest.raises(ConfigError, match="is no name of a metric"):
            counter("Orders")
        with pytest.raises(ConfigError, match="a counter never falls"):
            counter("orders").add(-1)

    copy_context().run(work)


def test_a_coroutine_finds_the_metrics_of_its_task() -> None:
    orders, metrics = counter("orders"), UserMetrics()

    async def call(amount: Any) -> Any:
        orders.add(amount)
        return amount

    with pytest.raises(StopIteration, match="7"):
        copy_context().run(metrics.bound(call)(7).__await__().__next__)

    assert [each.value for each in metrics.samples()] == [7]
