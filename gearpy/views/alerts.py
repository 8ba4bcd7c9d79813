"""Alerts: rules about applications, and when they begin and stop to hold.

A rule measures something in each view of an application. Above its threshold it is *pending*, after
a while *firing*; it is *resolved* when it has been below a second, lower threshold for a while, so
that a value that swings around the threshold does not ring each time. The table of rules is
`metrics.alert_rules`; Prometheus has the same.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gearpy.core.master.registry import TERMINAL
from gearpy.ids import AppId
from gearpy.messages.client import AlertChange, AlertSilence, FiringAlert
from gearpy.messages.summaries import STORE
from gearpy.metrics.alert_rules import ALERT_RULES, AlertRule
from gearpy.views import text
from gearpy.views.findings import sentence
from gearpy.views.model import AppView

_MINUTE_MS: Final = 60_000
#: Counts are looked at over so long at most.
_TRAIL_MS: Final = 10 * _MINUTE_MS
#: Two points of a trail are so far apart, or further.
_POINT_MS: Final = 5_000
#: A rule is resolved after it has not held for so long.
_QUIET_MS: Final = _MINUTE_MS
#: That an application has failed is told for so long.
_FAILED_MS: Final = 60 * _MINUTE_MS


class Measured(NamedTuple):
    """A measurement of a rule, with its place: a processor, an executor, or none."""

    value: float
    where: str = ""


#: Those that are about an application, and that can be measured in its views.
RULES: Final = tuple(rule for rule in ALERT_RULES if rule.name != "no-workers")


class _Point(Struct, frozen=True):
    """Counts of an application at one time; those that end in a restart begin again at 0."""

    at_ms: int
    records_in: int
    late: int
    quarantined: int
    restarts: int
    aborted: int


class _Trail:
    """The counts of an application in the last minutes, and since when event time stands."""

    def __init__(self) -> None:
        self._points: deque[_Point] = deque()
        self._watermark_ms: int | None = None
        self._moved_ms = self._read_ms = 0

    def add(self, view: AppView) -> None:
        totals, at_ms = view.totals, view.at_ms
        if totals.watermark_ms != self._watermark_ms or not self._points:
            self._watermark_ms, self._moved_ms = totals.watermark_ms, at_ms
        if self._points and totals.records_in > self._points[-1].records_in:
            self._read_ms = at_ms
        if self._points and at_ms - self._points[-1].at_ms < _POINT_MS:
            return
        self._points.append(
            _Point(
                at_ms=at_ms,
                records_in=totals.records_in,
                late=totals.late,
                quarantined=totals.quarantined,
                restarts=totals.restarts,
                aborted=sum(each.aborted for each in view.epochs),
            )
        )
        while at_ms - self._points[0].at_ms > _TRAIL_MS:
            self._points.popleft()

    def stands_ms(self, at_ms: int) -> int:
        comes = self._watermark_ms is not None and at_ms - self._read_ms < _MINUTE_MS
        return at_ms - self._moved_ms if comes else 0

    def increase(self, count: Callable[[_Point], int]) -> int:
        values = [count(each) for each in self._points]
        steps = pairwise(values)
        return sum(now - was if now >= was else now for was, now in steps)


class AlertLimits(NamedTuple):
    """The limits of executors, which no view tells; 0 for no limit."""

    memory_max_bytes: int = 0


_NO_LIMITS: Final = AlertLimits()
_Measure: TypeAlias = Callable[[AppView, _Trail, AlertLimits], Measured | None]


def _failed(view: AppView, _trail: _Trail, _limits: AlertLimits) -> Measured:
    is_recent = view.at_ms - view.finished_ms < _FAILED_MS
    has_failed = view.status == "failed" and is_recent
    return Measured(float(has_failed), sentence(view.headline) if has_failed else "")


def _late(_view: AppView, trail: _Trail, _limits: AlertLimits) -> Measured | None:
    records = trail.increase(lambda point: point.records_in)
    late = trail.increase(lambda point: point.late)
    return Measured(late / records) if records else None


def _memory(view: AppView, _trail: _Trail, limits: AlertLimits) -> Measured | None:
    if not limits.memory_max_bytes:
        return None
    return _highest(
        (each.rss_bytes / limits.memory_max_bytes, f"executor {each.id}")
        for each in view.executors
        if each.rss_bytes is not None
    )


def _highest(values: Iterable[tuple[float | None, str]]) -> Measured | None:
    known = [Measured(value, where) for value, where in values if value is not None]
    return max(known, default=None)


#: What each rule measures: None where it is not known, and nothing follows.
MEASURES: Final[Mapping[str, _Measure]] = {
    "failed": _failed,
    "store-away": lambda view, _, __: Measured(
        float((view.waits or "").startswith(STORE)), view.waits or ""
    ),
    "stalled-clock": lambda view, trail, _: Measured(trail.stands_ms(view.at_ms) / 1000),
    "epochs-failing": lambda _, trail, __: Measured(trail.increase(lambda each: each.aborted)),
    "executor-memory": _memory,
    "restarts": lambda _, trail, __: Measured(trail.increase(lambda each: each.restarts)),
    "back-pressure": lambda view, _, __: _highest(
        (each.backpressured, each.name) for each in view.processors
    ),
    "quarantine": lambda _, trail, __: Measured(trail.increase(lambda each: each.quarantined)),
    "late-records": _late,
    "waiting": lambda view, _, __: Measured(
        float(view.status == "pending"), view.waits or "it has not begun to run"
    ),
}


class _Machine:
    """One rule for one application: quiet, pending, firing."""

    def __init__(self, rule: AlertRule) -> None:
        self.rule = rule
        self.alert: FiringAlert | None = None  # While it fires.
        self._since_ms: int | None = None  # When it began to hold.
        self._quiet_ms: int | None = None  # When it stopped to, while it still fires.

    def on_measured(
        self, measured: Measured, view: AppView
    ) -> Literal["firing", "resolved"] | None:
        at_ms = view.at_ms
        limit = self.rule.above if self.alert is None else self.rule.below
        if measured.value >= limit:
            self._quiet_ms = None
            if self._since_ms is None:
                self._since_ms = at_ms
            if self.alert is None and at_ms - self._since_ms < 1000 * self.rule.for_s:
                return None
            was_firing = self.alert is not None
            self.alert = FiringAlert(
                app_id=AppId(view.app_id),
                name=view.name,
                rule=self.rule.name,
                level=self.rule.level,
                since_ms=self._since_ms,
                text=said(self.rule, measured, view.name),
            )
            return None if was_firing else "firing"
        if self.alert is None:
            self._since_ms = None
            return None
        if self._quiet_ms is None:
            self._quiet_ms = at_ms
        if at_ms - self._quiet_ms < _QUIET_MS:
            return None
        return "resolved"

    def reset(self) -> None:
        self.alert = self._since_ms = self._quiet_ms = None


class AppAlerts:
    """The alerts of one application.

    Invariant: of each rule "firing" and "resolved" come in turns, beginning with "firing"; between
    them the alert is among `alerts`.
    """

    def __init__(
        self, rules: Sequence[AlertRule] = RULES, limits: AlertLimits = _NO_LIMITS
    ) -> None:
        self._machines = [_Machine(rule) for rule in rules]
        self._limits = limits
        self._trail = _Trail()

    @property
    def alerts(self) -> tuple[FiringAlert, ...]:
        firing = [each.alert for each in self._machines if each.alert is not None]
        return tuple(sorted(firing, key=lambda each: each.since_ms))

    def on_view(self, view: AppView) -> list[AlertChange]:
        """Take the next view of the application; return the alerts that have changed.

        Of an application that has ended nothing fires but that it has failed.
        """
        self._trail.add(view)
        changes, has_ended = list[AlertChange](), view.status in TERMINAL
        for machine in self._machines:
            measured = MEASURES[machine.rule.name](view, self._trail, self._limits)
            if has_ended and machine.rule.name != "failed":
                if machine.alert is not None:
                    changes.append(self._resolved(machine, view))
                machine.reset()
                continue
            if measured is None:
                continue
            change = machine.on_measured(measured, view)
            if change == "firing" and machine.alert is not None:
                changes.append(_change("firing", view.at_ms, machine.alert))
            elif change == "resolved":
                changes.append(self._resolved(machine, view))
        return changes

    def on_forgotten(self, view: AppView) -> list[AlertChange]:
        firing = [each for each in self._machines if each.alert is not None]
        return [self._resolved(each, view) for each in firing]

    def _resolved(self, machine: _Machine, view: AppView) -> AlertChange:
        assert machine.alert is not None, "only what fires can be resolved"
        change = _change("resolved", view.at_ms, machine.alert)
        machine.reset()
        return change


class AlertBook:
    """The alerts of all applications of a cluster."""

    def __init__(
        self, rules: Sequence[AlertRule] = RULES, limits: AlertLimits = _NO_LIMITS
    ) -> None:
        self._rules, self._limits = rules, limits
        self._apps: dict[int, tuple[AppAlerts, AppView]] = {}

    def on_views(self, views: Iterable[AppView]) -> list[AlertChange]:
        changes: list[AlertChange] = []
        before, self._apps = self._apps, {}
        for view in views:
            known = before.pop(view.app_id, None)
            alerts = known[0] if known else AppAlerts(self._rules, self._limits)
            changes += alerts.on_view(view)
            self._apps[view.app_id] = alerts, view
        for alerts, view in before.values():
            changes += alerts.on_forgotten(view)
        return changes

    def name_of(self, app_id: int) -> str:
        return self._apps[app_id][1].name if app_id in self._apps else ""

    def firing(self) -> tuple[FiringAlert, ...]:
        """Return all that fires, of each application the longest firing first."""
        return tuple(each for alerts, _ in self._apps.values() for each in alerts.alerts)


class Silences:
    """The alerts that nobody is told of for a while.

    Invariant: of an alert "firing" and "resolved" are told in turns. What fires behind a silence is
    told when that has ended, and what was told before it is also resolved.
    """

    def __init__(self) -> None:
        self._silences: dict[tuple[int, str], AlertSilence] = {}
        self._told = set[tuple[int, str]]()  # They fire, for all that others know.

    def take(self, silence: AlertSilence) -> None:
        self._silences[silence.app_id, silence.rule] = silence

    def lasting(self, firing: Iterable[FiringAlert], now_ms: int) -> tuple[AlertSilence, ...]:
        alerts = {(int(each.app_id), each.rule): each for each in firing}
        self._silences = {
            key: each for key, each in self._silences.items() if each.until_ms > now_ms
        }
        return tuple(
            replace(each, alert=alerts.get(key)) for key, each in sorted(self._silences.items())
        )

    def told(
        self, changes: Iterable[AlertChange], firing: Iterable[FiringAlert], now_ms: int
    ) -> list[AlertChange]:
        self.lasting((), now_ms)
        told: list[AlertChange] = []
        for change in changes:
            key = change.app_id, change.alert.rule
            if change.state == "resolved" and key in self._told:
                self._told.discard(key)
                told.append(change)
            elif change.state == "firing" and key not in self._silences:
                self._told.add(key)
                told.append(change)
        for alert in firing:
            key = alert.app_id, alert.rule
            if not (key in self._told or key in self._silences):
                self._told.add(key)
                told.append(_change("firing", now_ms, alert))
        return told


def _change(state: Literal["firing", "resolved"], at_ms: int, alert: FiringAlert) -> AlertChange:
    return AlertChange(state=state, at_ms=at_ms, app_id=alert.app_id, name=alert.name, alert=alert)


def unknown_rule(name: str) -> str:
    return f"there is no rule {name!r}: the rules are {', '.join(each.name for each in RULES)}"


def said(rule: AlertRule, measured: Measured, name: str) -> str:
    value = {
        "seconds": text.duration(round(measured.value * 1000)),
        "share": text.share(measured.value),
        "count": text.count(measured.value),
    }[rule.unit]
    advice = rule.advice.format(app=name)
    return f"{rule.says.format(where=measured.where, value=value).removesuffix('.')}: {advice}"


def rules_of(thresholds: Mapping[str, float], *, off: Iterable[str] = ()) -> tuple[AlertRule, ...]:
    """Return the rules with thresholds of one's own."""
    left_out = {*off}
    return tuple(
        replace(
            rule,
            above=thresholds.get(rule.name, rule.above),
            below=rule.below * thresholds.get(rule.name, rule.above) / rule.above,
        )
        for rule in RULES
        if rule.name not in left_out
    )
