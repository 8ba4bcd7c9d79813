"""Rules that tell when somebody should look: the table of them, and the same for Prometheus."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """One rule: it holds when a value has been above a bound for so long.

    Attributes:
        name: of the rule, for people and for routes of alerts.
        level: *warn* is worth a look, *bad* is a loss or a halt.
        value: what is compared, as a query of Prometheus with the label ``app`` if it is of an
            application.
        above: the bound.
        for_s: how long it must hold, in seconds.
        text: what is so, in one sentence; ``{{...}}`` as Prometheus fills it in.
        advice: what to do.
    """

    name: str
    level: Literal["warn", "bad"]
    value: str
    above: float
    for_s: int
    text: str
    advice: str

    @property
    def query(self) -> str:
        """The query of Prometheus that has an answer when the rule holds."""
        return f"({self.value}) > {self.above:g}"


#: All rules, the loudest first.
ALERT_RULES: Final = (
    AlertRule(
        name="GearpyApplicationFailed",
        level="bad",
        value='delta(gearpy_applications{status="failed"}[10m])',
        above=0,
        for_s=0,
        text="An application has failed.",
        advice="gear info lists it; gear why says the cause, and what to restart.",
    ),
    AlertRule(
        name="GearpyClockStalled",
        level="bad",
        value="sum by (app) (changes(gearpy_application_clock_seconds[5m]) == bool 0)"
        " * on (app) (sum by (app) (rate(gearpy_records_in_total[5m])) > bool 0)",
        above=0,
        for_s=60,
        text="Event time of {{ $labels.app }} has not moved for 5 minutes, though records come.",
        advice="gear why names the task that holds it, and what that task waits for.",
    ),
    AlertRule(
        name="GearpyEpochsFailing",
        level="bad",
        value="sum by (app) (increase(gearpy_checkpoints_failed_total[10m]))",
        above=3,
        for_s=0,
        text="Epochs of {{ $labels.app }} are given up again and again.",
        advice="A restart would go far back: look at the checkpoint folder, and for slow tasks.",
    ),
    AlertRule(
        name="GearpyNoWorkers",
        level="bad",
        value="1 - clamp_max(gearpy_workers, 1)",
        above=0,
        for_s=60,
        text="The cluster has no worker.",
        advice="Start workers, or see why they cannot reach the master.",
    ),
    AlertRule(
        name="GearpyRestarting",
        level="warn",
        value="sum by (app) (increase(gearpy_restarts_total[15m]))",
        above=2,
        for_s=0,
        text="{{ $labels.app }} restarts again and again.",
        advice="gear app describe has the failures.",
    ),
    AlertRule(
        name="GearpyBackpressured",
        level="warn",
        value="max by (app, processor) (rate(gearpy_backpressured_seconds_total[1m]))",
        above=0.5,
        for_s=300,
        text="{{ $labels.app }}: processor {{ $labels.processor }} waits for those behind it.",
        advice="Give the busiest processor behind it more parallelism, or make it cheaper.",
    ),
    AlertRule(
        name="GearpyQuarantineGrows",
        level="warn",
        value="sum by (app) (increase(gearpy_quarantined_records_total[10m]))",
        above=0,
        for_s=0,
        text="User code of {{ $labels.app }} raises on records, which are put aside.",
        advice="gear quarantine list shows why; mend the program, then replay them.",
    ),
    AlertRule(
        name="GearpyApplicationWaits",
        level="warn",
        value='gearpy_applications{status="pending"}',
        above=0,
        for_s=300,
        text="An application has been waiting to run for 5 minutes.",
        advice="gear why says for what; often for slots: start workers, or stop something.",
    ),
)


def rule_file() -> str:
    """Return the rules as a rule file of Prometheus."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Alerts of gearpy; made by: gear metrics rules"
    yield "groups:"
    yield "  - name: gearpy"
    yield "    rules:"
    for rule in ALERT_RULES:
        yield f"      - alert: {rule.name}"
        yield f"        expr: {json.dumps(rule.query)}"
        if rule.for_s:
            yield f"        for: {rule.for_s}s"
        yield f"        labels: {{severity: {_SEVERITIES[rule.level]}}}"
        yield "        annotations:"
        yield f"          summary: {json.dumps(rule.text)}"
        yield f"          description: {json.dumps(rule.advice)}"


_SEVERITIES: Final = {"warn": "warning", "bad": "critical"}
