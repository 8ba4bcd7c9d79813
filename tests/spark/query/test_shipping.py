"""What of a program travels to Spark's workers as code."""

import json
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import gearpy as gp
from gearpy.dsl.plan.linear import linear_plans
from gearpy.spark.query.plan import LinearPlan
from gearpy.spark.query.shipping import own_modules, record_classes, send_by_value


@gp.register_record
@dataclass(frozen=True, slots=True)
class ShippedRecord:
    n: int


def _own(record: Any, more: int = 0) -> Any:
    return record


class _Callable:
    def __call__(self, record: Any) -> Any:
        return record

    def method(self, record: Any) -> Any:
        return record


def _plan(build: Any) -> LinearPlan:
    app = gp.StreamApp("app")
    build(app.read(gp.collection([1]))).write(gp.to_list([]))
    (plan,) = linear_plans("app", app.plan)
    return plan


def test_modules_of_the_program_travel_and_installed_ones_do_not() -> None:
    mine = sys.modules[__name__]

    for function in (_own, partial(_own, more=1), _Callable(), _Callable().method, ShippedRecord):
        assert mine in own_modules([function]), function
    assert own_modules([json.dumps, str.upper, None, 5, gp.StreamApp]) == []


def test_record_classes_travel_by_their_names() -> None:
    found = record_classes([sys.modules[__name__], json])

    assert found["ShippedRecord"].cls is ShippedRecord
    assert {each.cls.__module__ for each in found.values()} == {__name__}


def test_functions_are_found_wherever_a_plan_has_them() -> None:
    plans = [
        _plan(lambda s: s.map(_own)),
        _plan(lambda s: s.map_batches(_own)),
        _plan(lambda s: s.key_by(_own).window(gp.global_window()).count()),
        _plan(lambda s: s.window(gp.global_window()).sum(_own)),
        _plan(lambda s: s.window(gp.global_window()).reduce(_own)),
        _plan(lambda s: s.window(gp.global_window()).aggregate(v=gp.agg.custom(int, _own))),
    ]

    assert all("ShippedRecord" in send_by_value(plan) for plan in plans)
