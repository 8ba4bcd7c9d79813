"""A report of an application: all that its cluster knows of it, as the page asks for it."""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.looking import alerts_about, look_at
from gearpy.config.hidden import shown_setting
from gearpy.core.master.registry import TERMINAL
from gearpy.errors import AskTimeout, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import (
    GetCluster,
    GetEpochs,
    GetPlan,
    GetSubmission,
    ListQuarantined,
    QuarantinedRecord,
)
from gearpy.messages.metrics import SeriesData
from gearpy.views import text
from gearpy.views.app import app_view, processor_view

#: Rates are counted from one look to the other.
_APART_S: Final = 1.0
_RECORDS_MAX: Final = 100


class Report(Struct, frozen=True, kw_only=True):
    """All that a report is made of."""

    app_id: AppId
    name: str
    at_ms: int
    cluster_id: str
    answers: dict[str, Any]
    refused: dict[str, str]
    missing: list[str]


def report_of(client: ClusterClient, app_id: AppId, *, of_a_run: bool = False) -> Report:
    before = look_at(client, app_id, lately_ms=None)
    look = before
    if before.metrics is not None and before.summary.status not in TERMINAL:
        time.sleep(_APART_S)
        look = look_at(client, app_id, lately_ms=None)
    if of_a_run:
        look = replace(look, summary=replace(look.summary, app_master="/"))
    view = app_view(look, before, alerts=alerts_about(client, app_id))
    base = f"appmaster/{app_id}"
    answers: dict[str, Any] = {
        "session": {"scopes": ["read"], "login_required": False},
        f"{base}/view": view,
        f"{base}/series": look.series or SeriesData(app_id=app_id),
    }
    for each in look.detail.processors if look.detail else ():
        number = each.processor_id
        answers[f"{base}/processor/{number}"] = processor_view(look, number, before)
    refused, missing = dict[str, str](), list[str]()
    if look.detail is None:
        missing.append("processors, tasks and errors: nobody knows them (any more)")
    elif look.known_ms:
        missing.append(f"what came later; it is shown {text.past(look.known_ms)}")
    if look.detail is not None and look.metrics is None:
        missing.append("measurements: its app master does not give them")
    for name, ask in _QUESTIONS.items():
        try:
            answers |= {f"{base}/{path}": said for path, said in ask(client, app_id).items()}
        except (SubmitRefused, AskTimeout) as error:
            refused[f"{base}/{name}"] = str(error)
            if name in _TOLD:
                missing.append(f"{_TOLD[name]}: {error}")
    cluster_id = client.ask(GetCluster()).cluster_id
    return Report(
        app_id=app_id,
        name=view.name,
        at_ms=view.at_ms,
        cluster_id=cluster_id,
        answers=answers,
        refused=refused,
        missing=missing,
    )


def _config(client: ClusterClient, app_id: AppId) -> dict[str, Any]:
    own = client.ask(GetSubmission(app_id=app_id)).config  # A file to send on: without secrets.
    return {"config": {key: shown_setting(key, own[key]) for key in own}}


def _quarantine(client: ClusterClient, app_id: AppId) -> dict[str, Any]:
    """Return the list of records, and each with its traceback; their bytes stay where they are."""
    listed = client.ask(ListQuarantined(app_id=app_id))
    numbers = [each.number for each in listed.records[-_RECORDS_MAX:]]
    whole = (
        client.ask(ListQuarantined(app_id=app_id, numbers=tuple(numbers))).records
        if numbers
        else ()
    )
    answers: dict[str, Any] = {
        f"quarantine?number={each.number}": {"records": [_without_value(each)]} for each in whole
    }
    records = [_without_value(each) for each in listed.records]
    return answers | {"quarantine": {"total": listed.total or len(records), "records": records}}


def _without_value(record: QuarantinedRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _OF_RECORD}


_OF_RECORD: Final = ("number", "processor_id", "event_time_ms", "at_ms", "error")
#: Paths that the page asks for beside views, and who answers.
_QUESTIONS: Final[dict[str, Callable[[ClusterClient, AppId], dict[str, Any]]]] = {
    "config": _config,
    "quarantine": _quarantine,
    "plan": lambda client, app_id: {
        "plan": msgspec.json.decode(client.ask(GetPlan(app_id=app_id)).text)
    },
    "checkpoints": lambda client, app_id: {
        "checkpoints": {"epochs": client.ask(GetEpochs(app_id=app_id)).epochs}
    },
}
_TOLD: Final = {"config": "settings", "quarantine": "records in quarantine"}
