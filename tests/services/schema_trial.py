"""Requests made of a schema, and answers judged by it."""

from collections.abc import Mapping
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class SchemaTrial:
    """The operations of a schema by their names, but for those whose path fits ``left_out``."""

    def __init__(self, schema: Mapping[str, Any], *, left_out: str) -> None:
        known: Any = schemathesis.openapi.from_dict(dict(schema)).exclude(path_regex=left_out)
        found = [each.ok() for each in known.get_all_operations()]
        self.operations: dict[str, Any] = {each.label: each for each in found}

    def run(self, operation: str, url: str, *, number: int) -> None:
        """Make so many requests, and see that each answer is as the schema says."""

        @settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=self.operations[operation].as_strategy())
        def check(case: Any) -> None:
            if case.method != "GET" and "app_id" in (case.path_parameters or {}):
                case.path_parameters["app_id"] = 0  # The one that others look at goes on.
            case.call_and_validate(base_url=url, checks=_CHECKS)

        check()
