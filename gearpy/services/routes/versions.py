"""Routes of the versions of an application that runs: to update, scale and roll it back."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Body, Depends, File, Form, Query, UploadFile
from msgspec.structs import asdict, replace

from gearpy.cluster.client.client import ClusterClient
from gearpy.config.hidden import shown_args
from gearpy.core.base.times import event_time_in
from gearpy.core.scaling.bounds import tasks_and_bounds
from gearpy.messages.client import (
    GetPlan,
    GetVersions,
    UpdateApplication,
    UpdatePlanned,
    VersionList,
)
from gearpy.services.deps import Action, AppIdInPath, Asking, Client, Given, UploadedProgram
from gearpy.services.gearpump.replacing import DagOperationSuccess, replace_processor
from gearpy.services.problems import ProblemRaised
from gearpy.services.programs.submission import args_of
from gearpy.services.programs.uploads import name_of
from gearpy.transport.security.tokens import TokenScope

router: Final = APIRouter(prefix="/appmaster/{app_id}", tags=["versions"])

_TEXT_CHARS_MAX: Final = 10_000
_NAME_CHARS_MAX: Final = 300
_STEPS_MAX: Final = 1000
_TASKS_MAX: Final = 999_999
_BOUNDS_CHARS_MAX: Final = 30
_EXECUTORS_MAX: Final = 10_000
_VERSION_MAX: Final = 2**31 - 1

_Updates: TypeAlias = Annotated[object, Depends(Action("app update", TokenScope.SUBMIT))]
_Scales: TypeAlias = Annotated[object, Depends(Action("app scale", TokenScope.SUBMIT))]
_CallsOff: TypeAlias = Annotated[object, Depends(Action("app call-off", TokenScope.SUBMIT))]
_RollsBack: TypeAlias = Annotated[object, Depends(Action("app rollback", TokenScope.SUBMIT))]
_Args: TypeAlias = Annotated[
    str | None,
    Form(max_length=_TEXT_CHARS_MAX, description="Without it those of the program that runs."),
]
_StepName: TypeAlias = Annotated[str, Body(min_length=1, max_length=_NAME_CHARS_MAX)]
_Tasks: TypeAlias = Annotated[int, Body(ge=1, le=_TASKS_MAX)]
_Bounds: TypeAlias = Annotated[str, Body(max_length=_BOUNDS_CHARS_MAX)]

_PLAN_ONLY: Final = "Answer with the plan, and change nothing."
_ALLOW_DROP: Final = "Leave behind what the new version has no place for."
_AT: Final = "Event time: records from then on are of the new version. In ISO form, or as ms."
_EXECUTORS: Final = "Share its tasks; 0: none gets more tasks than one has now."


class ChangePlan(UpdatePlanned, frozen=True, kw_only=True):
    """The fate of the state of each step in another version, of which ``version`` is the number.

    ``has_begun``: it is being put in place, and `versions` tells whether it stays. Where autoscale
    has got other bounds only, nothing has begun. ``refusal`` is why it would be refused, or empty.
    """

    has_begun: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledOff:
    """The version that does not take the place of the one that runs."""

    app_id: int
    version: int


@router.get("/versions")
def list_versions(client: Client, caller: Asking, app_id: AppIdInPath) -> VersionList:
    """Return the versions of an application's program, as ``gear app history`` does."""
    listed = client.ask(GetVersions(app_id=app_id))
    if caller.scope >= TokenScope.ADMIN:
        return listed
    versions = tuple(replace(each, args=shown_args(each.args)) for each in listed.versions)
    return replace(listed, versions=versions)


@router.post("/update")
def update_application(
    given: Given,
    client: Client,
    app_id: AppIdInPath,
    _: _Updates,
    file: UploadedProgram,
    *,
    target: Annotated[
        str,
        Form(max_length=_NAME_CHARS_MAX, description="ATTR or MODULE:ATTR; else it is looked for."),
    ] = "",
    args: _Args = None,
    executors: Annotated[int, Form(ge=0, le=_EXECUTORS_MAX, description=_EXECUTORS)] = 0,
    allow_drop: Annotated[bool, Form(description=_ALLOW_DROP)] = False,
    at: Annotated[str, Form(max_length=_NAME_CHARS_MAX, description=_AT)] = "",
    dry_run: Annotated[bool, Form(description=_PLAN_ONLY)] = False,
) -> ChangePlan:
    """Replace a running program by another one, which goes on from its state."""
    at_event_ms = event_time_in(at) if at else None
    with given.uploads.file(name_of(file.filename), file.file) as path:
        mine = client.arguments(app_id) if args is None else args_of(args)
        artifact = given.submitting.upload(path, target=target, args=mine)
    message = UpdateApplication(
        app_id=app_id,
        artifact=artifact,
        executors=executors,
        allows_drop=allow_drop,
        is_trial_run=dry_run,
        at_event_ms=at_event_ms,
    )
    return _changed(client, message)


@router.post("/call-off")
def call_off_change(client: Client, app_id: AppIdInPath, _: _CallsOff) -> CalledOff:
    """Give up a change that waits for its event time, or is being prepared."""
    return CalledOff(app_id=app_id, version=client.call_off(app_id))


@router.post("/scale")
def scale_application(
    client: Client,
    app_id: AppIdInPath,
    _: _Scales,
    steps: Annotated[
        dict[_StepName, _Tasks | _Bounds],
        Body(
            min_length=1,
            max_length=_STEPS_MAX,
            description="Tasks of steps, by id or name; of text such as 1..8 autoscale chooses.",
        ),
    ],
    *,
    executors: Annotated[int, Body(ge=0, le=_EXECUTORS_MAX, description=_EXECUTORS)] = 0,
    at: Annotated[str, Body(max_length=_NAME_CHARS_MAX, description=_AT)] = "",
    dry_run: Annotated[bool, Body(description=_PLAN_ONLY)] = False,
) -> ChangePlan:
    """Give steps another number of tasks, or bounds for autoscale; keys move with their state."""
    scale, bounds = tasks_and_bounds(steps)
    message = UpdateApplication(
        app_id=app_id,
        scale=scale,
        bounds=bounds,
        executors=executors,
        is_trial_run=dry_run,
        at_event_ms=event_time_in(at) if at else None,
    )
    return _changed(client, message)


@router.post("/rollback")
def roll_back_application(
    client: Client,
    app_id: AppIdInPath,
    _: _RollsBack,
    version: Annotated[int, Body(ge=0, le=_VERSION_MAX, description="One of `versions`.")],
    *,
    allow_drop: Annotated[bool, Body(description=_ALLOW_DROP)] = False,
    at: Annotated[str, Body(max_length=_NAME_CHARS_MAX, description=_AT)] = "",
    dry_run: Annotated[bool, Body(description=_PLAN_ONLY)] = False,
) -> ChangePlan:
    """Put an earlier program in place of the one that runs, with what is kept now."""
    message = UpdateApplication(
        app_id=app_id,
        version=version,
        allows_drop=allow_drop,
        is_trial_run=dry_run,
        at_event_ms=event_time_in(at) if at else None,
    )
    return _changed(client, message)


@router.post("/dynamicdag")
def change_graph(
    given: Given,
    client: Client,
    app_id: AppIdInPath,
    _: _Updates,
    args: Annotated[
        str,
        Query(max_length=_TEXT_CHARS_MAX, description="A ReplaceProcessor of Gearpump, as JSON."),
    ],
    *,
    allow_drop: Annotated[bool, Query(description=_ALLOW_DROP)] = False,
    jar: Annotated[
        UploadFile | None, File(description="The program that takes the place of all.")
    ] = None,
) -> DagOperationSuccess:
    """Change the tasks of a processor, or the program, by Gearpump's names."""
    asked = replace_processor(args)
    has_program = jar is not None or bool(asked.handle)
    wanted = asked.change_of(client.ask(GetPlan(app_id=app_id)).text, has_program=has_program)
    artifact = None
    if jar is not None:
        with given.uploads.file(name_of(jar.filename), jar.file) as path:
            artifact = given.submitting.upload(path, args=client.arguments(app_id))
    elif asked.handle:
        kept = given.uploads.kept(asked.handle)
        artifact = given.submitting.upload(kept, args=client.arguments(app_id))
    _changed(client, wanted.message(app_id, artifact, allows_drop=allow_drop))
    return DagOperationSuccess()


def _changed(client: ClusterClient, message: UpdateApplication) -> ChangePlan:
    planned = client.change(message)
    refusal = planned.refusal.replace("--allow-drop (allow_drop=True in Python)", "allow_drop")
    if refusal and not message.is_trial_run:
        raise ProblemRaised(409, refusal, "look at the plan: dry_run")
    has_begun = not message.is_trial_run and bool(planned.moves)
    return ChangePlan(**asdict(replace(planned, refusal=refusal)), has_begun=has_begun)
