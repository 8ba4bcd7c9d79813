"""The rules and the dashboard: they ask for metrics that there are, by labels that these have."""

import json
import re
from collections.abc import Iterator

import pytest

from gearpy.metrics.alert_rules import ALERT_RULES, rule_file
from gearpy.metrics.catalogue import CATALOGUE
from gearpy.metrics.dashboard import CHARTS, dashboard

QUERIES = [
    *(rule.query for rule in ALERT_RULES if rule.value),
    *(query for chart in CHARTS for query, _ in chart.lines),
]
_METRIC = re.compile(r"\b(?:gearpy|process|python)_\w+")
_BY = re.compile(r"\b(?:by|on) \(([^)]*)\)|\{([^}]*)\}")


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_metrics_and_labels_of_the_catalogue(query: str) -> None:
    named = [each.removesuffix("_bucket") for each in _METRIC.findall(query)]
    labels = {label for name in named for label in CATALOGUE[name].labels} | {"le"}

    assert named
    assert {*_labels(query)} <= labels


def test_a_dashboard_has_all_charts() -> None:
    panels = json.loads(dashboard())["panels"]

    assert [each["title"] for each in panels] == [chart.title for chart in CHARTS]
    assert len({(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}) == len(CHARTS)
    assert all(each["targets"] for each in panels)


def test_a_rule_file_has_all_rules_that_prometheus_can_follow() -> None:
    text, known = rule_file(), [rule for rule in ALERT_RULES if rule.value]

    assert re.findall(r"alert: (\w+)", text) == [rule.alert for rule in known]
    assert "GearpyBackPressure" in text
    assert len({rule.name for rule in ALERT_RULES}) == len(ALERT_RULES)
    assert all(json.dumps(rule.advice.format(app="{{ $labels.app }}")) in text for rule in known)
    assert [rule.name for rule in ALERT_RULES if not rule.value] == [
        "store-away",
        "executor-memory",
    ]


def _labels(query: str) -> Iterator[str]:
    for listed, selected in _BY.findall(query):
        yield from (each.strip() for each in listed.split(",") if each)
        yield from re.findall(r"(\w+)(?:=|!)", selected)
