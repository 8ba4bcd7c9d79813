"""A dashboard for Grafana: charts of all that matters, made of one table of queries."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart. ``lines`` are queries of Prometheus with what to call the lines they give."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]


_PROCESSOR: Final = "{{app}} {{processor}}"


def _quantile(share: float, metric: str, by: str) -> str:
    return f"histogram_quantile({share}, sum by ({by}, le) (rate({metric}_bucket{_SOME}[1m])))"


#: What the dashboard's choice of applications selects.
_SOME: Final = '{app=~"$app"}'

#: The charts, in the order in which they are read.
CHARTS: Final = (
    Chart(
        title="Records in, by processor",
        unit="cps",
        lines=(
            (f"sum by (app, processor) (rate(gearpy_records_in_total{_SOME}[1m]))", _PROCESSOR),
        ),
    ),
    Chart(
        title="Records out, by processor",
        unit="cps",
        lines=(
            (f"sum by (app, processor) (rate(gearpy_records_out_total{_SOME}[1m]))", _PROCESSOR),
        ),
    ),
    Chart(
        title="Busy and held back, share of time",
        unit="percentunit",
        lines=(
            (
                f"avg by (app, processor) (rate(gearpy_busy_seconds_total{_SOME}[1m]))",
                f"{_PROCESSOR} busy",
            ),
            (
                f"avg by (app, processor) (rate(gearpy_backpressured_seconds_total{_SOME}[1m]))",
                f"{_PROCESSOR} held back",
            ),
        ),
    ),
    Chart(
        title="Latency from the sources",
        unit="s",
        lines=(
            (_quantile(0.5, "gearpy_latency_seconds", "app, processor"), f"{_PROCESSOR} p50"),
            (_quantile(0.99, "gearpy_latency_seconds", "app, processor"), f"{_PROCESSOR} p99"),
        ),
    ),
    Chart(
        title="Processing time of a record",
        unit="s",
        lines=(
            (
                _quantile(0.99, "gearpy_process_duration_seconds", "app, processor"),
                f"{_PROCESSOR} p99",
            ),
        ),
    ),
    Chart(
        title="Watermark behind wall time",
        unit="s",
        lines=((f"max by (app, processor) (gearpy_watermark_lag_seconds{_SOME})", _PROCESSOR),),
    ),
    Chart(
        title="Waiting and unacknowledged records",
        unit="short",
        lines=(
            (f"sum by (app, processor) (gearpy_queue_records{_SOME})", f"{_PROCESSOR} wait"),
            (f"sum by (app, processor) (gearpy_pending_records{_SOME})", f"{_PROCESSOR} sent"),
        ),
    ),
    Chart(
        title="Records left to read",
        unit="short",
        lines=((f"sum by (app) (gearpy_source_lag_records{_SOME})", "{{app}}"),),
    ),
    Chart(
        title="State",
        unit="bytes",
        lines=((f"sum by (app, processor) (gearpy_state_bytes{_SOME})", _PROCESSOR),),
    ),
    Chart(
        title="Epochs: time to store",
        unit="s",
        lines=((_quantile(0.99, "gearpy_checkpoint_duration_seconds", "app"), "{{app}} p99"),),
    ),
    Chart(
        title="Epochs: size",
        unit="bytes",
        lines=((f"gearpy_checkpoint_size_bytes{_SOME}", "{{app}}"),),
    ),
    Chart(
        title="Late, skipped and quarantined records",
        unit="short",
        lines=(
            (f"sum by (app) (increase(gearpy_late_records_total{_SOME}[5m]))", "{{app}} late"),
            (
                f"sum by (app) (increase(gearpy_skipped_records_total{_SOME}[5m]))",
                "{{app}} skipped",
            ),
            (
                f"sum by (app) (increase(gearpy_quarantined_records_total{_SOME}[5m]))",
                "{{app}} quarantined",
            ),
        ),
    ),
    Chart(
        title="Restarts and epochs given up",
        unit="short",
        lines=(
            (f"increase(gearpy_restarts_total{_SOME}[5m])", "{{app}} restarts"),
            (f"increase(gearpy_checkpoints_failed_total{_SOME}[5m])", "{{app}} given up"),
        ),
    ),
    Chart(
        title="Memory of processes",
        unit="bytes",
        lines=(('process_resident_memory_bytes{process!=""}', "{{app}} {{process}}"),),
    ),
    Chart(
        title="Processor time, cores",
        unit="short",
        lines=(('rate(process_cpu_seconds_total{process!=""}[1m])', "{{app}} {{process}}"),),
    ),
    Chart(
        title="Garbage collection, share of time",
        unit="percentunit",
        lines=(("rate(python_gc_pause_seconds_total[1m])", "{{app}} {{process}}"),),
    ),
    Chart(
        title="Slots", unit="short", lines=(("gearpy_slots", "all"), ("gearpy_free_slots", "free"))
    ),
    Chart(
        title="Applications by status", unit="short", lines=(("gearpy_applications", "{{status}}"),)
    ),
)

_WIDTH: Final = 12
_HEIGHT: Final = 8
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> str:
    return json.dumps(
        {
            "title": "gearpy",
            "uid": "gearpy",
            "tags": ["gearpy"],
            "schemaVersion": 39,
            "refresh": "10s",
            "time": {"from": "now-30m", "to": "now"},
            "templating": {"list": [_DATASOURCE, _APPLICATIONS]},
            "panels": [*_panels()],
        },
        indent=2,
    )


_DATASOURCE: Final = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": "prometheus",
}
_APPLICATIONS: Final = {
    "name": "app",
    "label": "Application",
    "type": "query",
    "datasource": _SOURCE,
    "query": "label_values(gearpy_records_in_total, app)",
    "refresh": 2,
    "multi": True,
    "includeAll": True,
    "allValue": ".*",
    "current": {"text": "All", "value": "$__all"},
}


def _panels() -> Iterator[dict[str, Any]]:
    for place, chart in enumerate(CHARTS):
        row, column = divmod(place, 2)
        yield {
            "id": place + 1,
            "type": "timeseries",
            "title": chart.title,
            "datasource": _SOURCE,
            "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
            "fieldConfig": {"defaults": {"unit": chart.unit, "min": 0}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend}
                for number, (query, legend) in enumerate(chart.lines)
            ],
        }
