"""Requests made of the schema: no answer is an error of ours, and each is what the schema says."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gearpy.services.application import ROUTERS, routes_app
from tests.services.conftest import Served

#: The stream does not end.
_LEFT_OUT = "/events$"
_SCHEMA: Any = schemathesis.openapi.from_dict(routes_app().openapi()).exclude(path_regex=_LEFT_OUT)
OPERATIONS = [each.ok() for each in _SCHEMA.get_all_operations()]
_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.label for each in OPERATIONS])
def test_answers_are_as_the_schema_says(served: Served, operation: Any) -> None:
    """A few requests for each route."""
    _try(operation, served.services.url, number=10)


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.label for each in OPERATIONS])
def test_many_answers_are_as_the_schema_says(served: Served, operation: Any) -> None:
    """Many, as far as a machine with much else to do tries them in four minutes."""
    _try(operation, served.services.url, number=200)


def _try(operation: Any, url: str, *, number: int) -> None:
    @settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        if case.method != "GET" and "app_id" in (case.path_parameters or {}):
            case.path_parameters["app_id"] = 0  # The one that others look at goes on.
        case.call_and_validate(base_url=url, checks=_CHECKS)

    check()


def test_the_schema_has_every_route() -> None:
    """All but the files of the page."""
    routes = [each for router in ROUTERS for each in router.routes]

    assert len(OPERATIONS) >= len(routes) - 1
