"""Routes for what Gearpump does not tell: plan, why, checkpoints, quarantine, logs."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Body, Depends, Query
from msgspec.structs import replace

from gearpy.cluster.client.looking import look_at
from gearpy.messages.client import (
    DescribeApplication,
    GetEpochs,
    GetPlan,
    ListQuarantined,
    LogText,
    QuarantinedList,
    ReadLog,
    StoredEpoch,
)
from gearpy.messages.summaries import ClockHolderSummary, ConsumerSummary, LongTurnSummary
from gearpy.services.deps import Action, AppIdInPath, Client, ExecutorIdInPath
from gearpy.transport.security.tokens import TokenScope
from gearpy.views.app import findings_in
from gearpy.views.findings import clock_finding
from gearpy.views.model import Headline

router: Final = APIRouter(prefix="/appmaster/{app_id}", tags=["inside"])

_LINES_MAX: Final = 5000
_POSITION_CHARS_MAX: Final = 50
_NUMBERS_MAX: Final = 1000
_NUMBER_MAX: Final = 2**53 - 1
_Replays: TypeAlias = Annotated[object, Depends(Action("quarantine replay", TokenScope.SUBMIT))]
_Number: TypeAlias = Annotated[int, Query(ge=0, le=_NUMBER_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The task that holds the clock of an application, and all findings about it.

    Attributes:
        chain: from a source to the task that holds the clock.
        lag_ms: how long ago the sources had read what the slowest task has processed.
        culprit: the task that others wait for; null if the clock keeps up, or a task behind them
            waits for something outside.
        findings: all that is wrong, the worst first.
    """

    app_id: int
    name: str
    watermark_ms: int | None
    waits_for: str
    chain: tuple[ClockHolderSummary, ...]
    lag_ms: int
    long_turns: tuple[LongTurnSummary, ...]
    culprit: str | None
    consumers: tuple[ConsumerSummary, ...]
    findings: tuple[Headline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochsKept:
    """The epochs that an application could go back to, oldest first."""

    app_id: int
    epochs: tuple[StoredEpoch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The numbers of records that were given back to their operators."""

    app_id: int
    replayed: list[int]


@router.get("/why")
def get_why(client: Client, app_id: AppIdInPath) -> Why:
    """Return the task that holds the clock of an application, as ``gear why`` does."""
    look = look_at(client, app_id)
    summary, detail = look.summary, look.detail
    if detail is None or look.known_ms:
        detail = client.ask(DescribeApplication(app_id=app_id))
    return Why(
        app_id=app_id,
        name=summary.name,
        watermark_ms=summary.progress.watermark_ms,
        waits_for=summary.progress.waits_for,
        chain=detail.why,
        lag_ms=detail.lag_ms,
        long_turns=detail.long_turns,
        culprit=clock_finding(detail, summary.progress).task,
        consumers=detail.consumers,
        findings=findings_in(look),
    )


@router.get("/plan")
def get_plan(client: Client, app_id: AppIdInPath) -> dict[str, Any]:
    """Return the plan of an application, as ``gear plan --format json`` does."""
    plan: dict[str, Any] = json.loads(client.ask(GetPlan(app_id=app_id)).text)
    return plan


@router.get("/checkpoints")
def list_epochs(client: Client, app_id: AppIdInPath) -> EpochsKept:
    """Return the epochs that an application could go back to, with their sizes."""
    return EpochsKept(app_id=app_id, epochs=client.ask(GetEpochs(app_id=app_id)).epochs)


@router.get("/quarantine")
def list_quarantine(
    client: Client,
    app_id: AppIdInPath,
    number: Annotated[
        list[_Number],
        Query(max_length=_NUMBERS_MAX, description="These only, with value and traceback."),
    ] = [],  # noqa: B006 - never changed
) -> QuarantinedList:
    """Return the records in quarantine, oldest first."""
    listed = client.ask(ListQuarantined(app_id=app_id, numbers=tuple(number)))
    return replace(listed, total=listed.total or len(listed.records))


@router.post("/quarantine/replay")
def replay_quarantine(
    client: Client,
    app_id: AppIdInPath,
    _: _Replays,
    numbers: Annotated[
        list[Annotated[int, Body(ge=0, le=_NUMBER_MAX)]],
        Body(embed=True, max_length=_NUMBERS_MAX, description="None for all."),
    ],
) -> Replayed:
    """Give records back to their operators; one that fails again is put aside again."""
    given = client.replay_quarantined(app_id, numbers)
    return Replayed(app_id=app_id, replayed=[each.number for each in given])


@router.get("/executor/{executor_id}/log")
def read_log(
    client: Client,
    app_id: AppIdInPath,
    executor_id: ExecutorIdInPath,
    *,
    lines: Annotated[int, Query(ge=1, le=_LINES_MAX)] = 200,
    after: Annotated[
        str, Query(max_length=_POSITION_CHARS_MAX, description="A position: what came since.")
    ] = "",
) -> LogText:
    """Return the last lines of an executor's log; -1 is the app master."""
    return client.ask(ReadLog(app_id=app_id, executor_id=executor_id, lines=lines, after=after))
