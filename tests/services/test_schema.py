"""Requests made of the schema: no answer is an error of ours, and each is what the schema says."""

from typing import TYPE_CHECKING

import pytest
from fastapi.routing import APIRoute

from gearpy.services.application import ROUTERS, routes_app
from gearpy.services.routes import prometheus, session
from gearpy.services.security.guard import API
from tests.services.conftest import Served

if TYPE_CHECKING:
    from tests.services.schema_trial import SchemaTrial

#: The stream does not end.
_LEFT_OUT = "/events"


def operations() -> list[str]:
    """Return what the schema calls each route: its method and path."""
    found = []
    for router in (*ROUTERS, session.open_router, prometheus.router):
        prefix = API if router in ROUTERS else ""
        for route in router.routes:
            if not isinstance(route, APIRoute):
                continue  # A WebSocket has no place in the schema.
            if route.include_in_schema and not route.path.endswith(_LEFT_OUT):
                found += [f"{method} {prefix}{route.path}" for method in route.methods or ()]
    return sorted(found)


OPERATIONS = operations()


@pytest.fixture(scope="module")
def trial() -> "SchemaTrial":
    """Return what tries operations.

    It is imported here: that, and to read the schema, take two seconds, which each process of a run
    would spend to collect tests.
    """
    from tests.services.schema_trial import SchemaTrial  # noqa: PLC0415

    return SchemaTrial(routes_app().openapi(), left_out=f"{_LEFT_OUT}$")


def test_the_schema_has_every_route(trial: "SchemaTrial") -> None:
    assert sorted(trial.operations) == OPERATIONS


@pytest.mark.parametrize("operation", OPERATIONS)
def test_answers_are_as_the_schema_says(
    served: Served, trial: "SchemaTrial", operation: str
) -> None:
    trial.run(operation, served.services.url, number=2)


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
def test_many_answers_are_as_the_schema_says(
    served: Served, trial: "SchemaTrial", operation: str
) -> None:
    """Many, as far as a machine with much else to do tries them in four minutes."""
    trial.run(operation, served.services.url, number=200)
