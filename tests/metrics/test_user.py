"""Metrics of programs: few, well named, one kind each."""

import pytest

from gearpy.errors import ConfigError
from gearpy.metrics.histogram import count_of
from gearpy.metrics.user import METRICS_MAX, UserMetrics


def test_the_same_name_is_the_same_metric() -> None:
    """A function may ask for it with each record."""
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
    """With the rule, where it is made."""
    with pytest.raises(ConfigError, match="is no name of a metric: begin with a letter"):
        UserMetrics().counter(name)


def test_a_name_has_one_kind() -> None:
    """Else one of the two would be lost."""
    metrics = UserMetrics()
    metrics.counter("orders")

    with pytest.raises(ConfigError, match="'orders' is a counter already: give the gauge"):
        metrics.gauge("orders")


def test_names_made_of_keys_are_refused_before_they_are_many() -> None:
    """Each of them would be a series for ever."""
    metrics = UserMetrics()
    for number in range(METRICS_MAX):
        metrics.gauge(f"of_key_{number}")

    with pytest.raises(ConfigError, match="a key or an id must not be part of a name"):
        metrics.gauge("of_another_key")


def test_a_counter_never_falls() -> None:
    with pytest.raises(ConfigError, match="use a gauge"):
        UserMetrics().counter("orders").add(-1)
