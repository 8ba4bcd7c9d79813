"""Metrics that programs make themselves, through ``context.metrics``."""

import re
from typing import Final, TypeVar

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
        """Set the value."""
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
        """Return the gauge of this name; raises as `counter` does."""
        return self._known(name, MetricGauge)

    def histogram(self, name: str) -> MetricHistogram:
        """Return the histogram of this name; raises as `counter` does."""
        return self._known(name, MetricHistogram)

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


def _check(name: str, number: int) -> None:
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
