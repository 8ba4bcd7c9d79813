"""Metrics that programs make themselves: ``context.metrics`` of tasks, and ``gp.counter``."""

import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gearpy.errors import ConfigError
from gearpy.messages.metrics import MetricKind, UserMetric
from gearpy.metrics.histogram import Histogram

#: Of one task; who needs more puts keys into names, which belong into a stream of their own.
METRICS_MAX: Final = 50
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")


class MetricCounter:
    """Counts something that only grows. Begins at zero with each start of its task."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0.0

    def add(self, amount: float = 1) -> None:
        """Add an amount, which is not negative.

        Raises:
            ConfigError: it is.
        """
        if amount < 0:
            raise ConfigError(f"a counter never falls: {amount} was added; use a gauge for that")
        self.value += amount


class MetricGauge:
    """Holds the newest of some values."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0.0

    def set(self, value: float) -> None:
        self.value = value


class MetricHistogram:
    """Counts values by their size; see `metrics.histogram` for the buckets."""

    __slots__ = ("observe", "values")

    def __init__(self) -> None:
        self.values = Histogram()
        self.observe = self.values.observe  #: ``observe(value, times=1)`` counts a value.


Kind = TypeVar("Kind", MetricCounter, MetricGauge, MetricHistogram)


class UserMetrics:
    """Makes and keeps the metrics of one task; the same name gives the same metric again.

    Prometheus shows them as ``gearpy_user_NAME``, counters with ``_total`` behind.
    """

    def __init__(self) -> None:
        self._metrics: dict[str, MetricCounter | MetricGauge | MetricHistogram] = {}

    def counter(self, name: str) -> MetricCounter:
        """Return the counter of this name.

        Raises:
            ConfigError: it is no name, belongs to another kind, or there are too many.
        """
        return self._known(name, MetricCounter)

    def gauge(self, name: str) -> MetricGauge:
        return self._known(name, MetricGauge)

    def histogram(self, name: str) -> MetricHistogram:
        return self._known(name, MetricHistogram)

    def enter(self) -> None:
        _AT_WORK.set(self)

    def bound(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """Return a coroutine function that finds these metrics, whatever loop it runs on."""

        async def call(value: Any) -> Any:
            self.enter()
            return await function(value)

        return call

    def samples(self) -> tuple[UserMetric, ...]:
        """Return all metrics with their present values. May be called on another thread."""
        return tuple(_sampled(name, metric) for name, metric in self._metrics.copy().items())

    def _known(self, name: str, kind: type[Kind]) -> Kind:
        known = self._metrics.get(name)
        if known is None:
            _check(name, len(self._metrics))
            known = self._metrics[name] = kind()
        if not isinstance(known, kind):
            one, other = _KINDS[type(known)], _KINDS[kind]
            raise ConfigError(f"metric {name!r} is a {one} already: give the {other} another name")
        return known


_AT_WORK: Final[ContextVar[UserMetrics]] = ContextVar("metrics")


@dataclass(frozen=True, slots=True)
class NamedCounter:
    """The counter of a name, in whatever task it is used; counts into nothing outside of one."""

    name: str

    def add(self, amount: float = 1) -> None:
        _at_work().counter(self.name).add(amount)


@dataclass(frozen=True, slots=True)
class NamedGauge:
    """The gauge of a name; see `NamedCounter`."""

    name: str

    def set(self, value: float) -> None:
        _at_work().gauge(self.name).set(value)


@dataclass(frozen=True, slots=True)
class NamedHistogram:
    """The histogram of a name; see `NamedCounter`."""

    name: str

    def observe(self, value: float, times: int = 1) -> None:
        _at_work().histogram(self.name).observe(value, times)


def counter(name: str) -> NamedCounter:
    """Return a counter for the functions of a stream: each task that uses it has one of its own.

    Make it beside the functions; it may be pickled. Outside of a task, such as in a unit test of
    the function or on Spark, it counts into nothing.

    Raises:
        ConfigError: it is no name of a metric.

    Example:
        >>> import gearpy as gp
        >>> refused = gp.counter("refused")
        >>> def has_price(order):
        ...     if "price" not in order:
        ...         refused.add()
        ...     return "price" in order
        >>> has_price({})
        False
    """
    _check(name)
    return NamedCounter(name)


def gauge(name: str) -> NamedGauge:
    """Return a gauge for the functions of a stream; see `counter`."""
    _check(name)
    return NamedGauge(name)


def histogram(name: str) -> NamedHistogram:
    """Return a histogram for the functions of a stream; see `counter`."""
    _check(name)
    return NamedHistogram(name)


def _at_work() -> UserMetrics:
    return _AT_WORK.get(None) or UserMetrics()


def _check(name: str, number: int = 0) -> None:
    if not _NAME.fullmatch(name) or name.endswith("_total"):
        raise ConfigError(
            f"{name!r} is no name of a metric: begin with a letter, go on with small letters, "
            "digits and _, 60 at most; the unit last, as in fetch_seconds; without _total, which "
            "is added to counters"
        )
    if number >= METRICS_MAX:
        raise ConfigError(
            f"metric {name!r} would be number {number + 1} of this task, {METRICS_MAX} are "
            "allowed: a key or an id must not be part of a name; count by key in the stream"
        )


def _sampled(name: str, metric: MetricCounter | MetricGauge | MetricHistogram) -> UserMetric:
    kind = _KINDS[type(metric)]
    if isinstance(metric, MetricHistogram):
        return UserMetric(name=name, kind=kind, histogram=metric.values.sample())
    return UserMetric(name=name, kind=kind, value=float(metric.value))


_KINDS: Final[dict[type, MetricKind]] = {
    MetricCounter: "counter",
    MetricGauge: "gauge",
    MetricHistogram: "histogram",
}
