"""Rules that tell when somebody should look: one table of them, and the same for Prometheus.

`views.alerts` follows those of applications by what it measures itself, in the same words.
"""

import json
from typing import Final, Literal

from msgspec import Struct


class AlertRule(Struct, frozen=True, kw_only=True):
    """One rule: it holds when a value has been at a bound, or above it, for so long.

    Attributes:
        level: *warn* is worth a look, *bad* is a loss or a halt.
        below: it has ceased to hold when the value is under this one: no more than ``above``.
        says: what is so, in a sentence with ``{value}`` or ``{where}``, such as a processor.
        value: the value as a query of Prometheus, with the label ``app`` if it is of an
            application; empty where nobody exports it.
        text: ``says`` for Prometheus; ``{{...}}`` as it fills it in.
    """

    name: str
    level: Literal["warn", "bad"]
    above: float
    below: float
    for_s: int
    says: str
    unit: Literal["seconds", "share", "count"]
    advice: str
    value: str
    text: str

    @property
    def query(self) -> str:
        """The query of Prometheus that has an answer when the rule holds.

        Prometheus estimates how much a count has grown, and gives 2.9 for 3.
        """
        bound = self.above - 0.5 if self.unit == "count" else self.above
        return f"({self.value}) > {bound:g}"

    @property
    def alert(self) -> str:
        return "Gearpy" + "".join(part.capitalize() for part in self.name.split("-"))


#: All rules, the loudest first.
ALERT_RULES: Final = (
    AlertRule(
        name="failed",
        level="bad",
        above=1,
        below=1,
        for_s=0,
        says="{where}",
        unit="count",
        advice="correct what its error names, and start it again",
        value='delta(gearpy_applications{status="failed"}[10m])',
        text="An application has failed.",
    ),
    AlertRule(
        name="store-away",
        level="bad",
        above=1,
        below=1,
        for_s=5,
        says="it waits for {where}",
        unit="count",
        advice="bring the store back, or make room: nothing is lost, and it goes on then",
        value="",
        text="",
    ),
    AlertRule(
        name="stalled-clock",
        level="bad",
        above=60,
        below=30,
        for_s=0,
        says="event time stands still for {value}, though records come in",
        unit="seconds",
        advice="'gear why' names the task that holds it, and what that task waits for",
        value="60 * (changes((min by (app) (gearpy_watermark_seconds))[1m:5s]) == bool 0)"
        " * on (app) (sum by (app) (rate(gearpy_records_in_total[1m])) > bool 0) + 1",
        text="Event time of {{ $labels.app }} stands still, though records come in.",
    ),
    AlertRule(
        name="epochs-failing",
        level="bad",
        above=3,
        below=1,
        for_s=0,
        says="an epoch was given up {value} times within 10 minutes",
        unit="count",
        advice="a restart would go far back: look at the checkpoint store, and for slow tasks",
        value="sum by (app) (increase(gearpy_checkpoints_failed_total[10m]))",
        text="Epochs of {{ $labels.app }} are given up again and again.",
    ),
    AlertRule(
        name="executor-memory",
        level="bad",
        above=0.9,
        below=0.8,
        for_s=60,
        says="{where} uses {value} of the memory that it may have",
        unit="share",
        advice="keep state on disk (state.backend), use more executors, or raise "
        "executor.memory-max-bytes",
        value="",
        text="",
    ),
    AlertRule(
        name="no-workers",
        level="bad",
        above=1,
        below=1,
        for_s=60,
        says="the cluster has no worker",
        unit="count",
        advice="start workers, or see why they cannot reach the master",
        value="1 - clamp_max(gearpy_workers, 1)",
        text="The cluster has no worker.",
    ),
    AlertRule(
        name="restarts",
        level="warn",
        above=3,
        below=1,
        for_s=0,
        says="tasks were restarted {value} times within 10 minutes",
        unit="count",
        advice="the failures in 'gear app describe' say why",
        value="sum by (app) (increase(gearpy_restarts_total[10m]))",
        text="{{ $labels.app }} restarts again and again.",
    ),
    AlertRule(
        name="back-pressure",
        level="warn",
        above=0.5,
        below=0.3,
        for_s=180,
        says="{where} is held back {value} of its time",
        unit="share",
        advice="give the busiest processor behind it more parallelism, or make it cheaper",
        value="avg by (app, processor) (rate(gearpy_backpressured_seconds_total[1m]))",
        text="{{ $labels.app }}: processor {{ $labels.processor }} waits for those behind it.",
    ),
    AlertRule(
        name="quarantine",
        level="warn",
        above=1,
        below=1,
        for_s=0,
        says="{value} more in quarantine within 10 minutes",
        unit="count",
        advice="'gear quarantine list {app}' shows why; correct the program, then replay them",
        value="sum by (app) (increase(gearpy_quarantined_records_total[10m]))",
        text="User code of {{ $labels.app }} raises on records, which are put aside.",
    ),
    AlertRule(
        name="late-records",
        level="warn",
        above=0.01,
        below=0.005,
        for_s=60,
        says="{value} of all records came too late within 10 minutes",
        unit="share",
        advice="allow more lateness, or write late records to a stream of their own",
        value="sum by (app) (increase(gearpy_late_records_total[10m]))"
        " / sum by (app) (increase(gearpy_records_in_total[10m]))",
        text="Many records of {{ $labels.app }} come too late to count.",
    ),
    AlertRule(
        name="waiting",
        level="warn",
        above=1,
        below=1,
        for_s=300,
        says="{where}",
        unit="count",
        advice="often it is for slots: start workers, or stop something",
        value='gearpy_applications{status="pending"}',
        text="An application has been waiting to run for 5 minutes.",
    ),
)


def rule_file() -> str:
    lines = ["# Alerts of gearpy; made by: gear metrics rules", "groups:", "  - name: gearpy"]
    lines.append("    rules:")
    for rule in (each for each in ALERT_RULES if each.value):
        lines += [
            f"      - alert: {rule.alert}",
            f"        expr: {json.dumps(rule.query)}",
            *([f"        for: {rule.for_s}s"] if rule.for_s else []),
            f"        labels: {{severity: {_SEVERITIES[rule.level]}}}",
            "        annotations:",
            f"          summary: {json.dumps(rule.text)}",
            f"          description: {json.dumps(rule.advice.format(app='{{ $labels.app }}'))}",
        ]
    return "\n".join(lines) + "\n"


_SEVERITIES: Final = {"warn": "warning", "bad": "critical"}
