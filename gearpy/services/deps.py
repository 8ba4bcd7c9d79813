"""The cluster, the caller and the parts of the services, as every route is given them."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, File, Request, UploadFile
from fastapi import Path as PathParameter
from starlette.requests import HTTPConnection

from gearpy.cluster.client.client import ClusterClient
from gearpy.config.schema import Config
from gearpy.distribution import program
from gearpy.ids import AppId, ExecutorId
from gearpy.services.problems import Problem, ProblemRaised
from gearpy.services.programs.submission import Submitting
from gearpy.services.programs.uploads import Uploads
from gearpy.services.push.topics import Topics
from gearpy.services.push.watching import Watching
from gearpy.services.security.access import Caller, asker_of
from gearpy.services.security.guard import GuardSettings, TakenAction
from gearpy.services.security.sessions import Logins
from gearpy.transport.security.tokens import TokenScope

ID_MAX: Final = 2**31 - 1

#: The actions that the page of one run offers; its services do nothing else.
OF_ONE_RUN: Final = frozenset(
    {
        "app ask",
        "alert silence",
        "app call-off",
        "app drain",
        "app kill",
        "app rollback",
        "app scale",
        "quarantine replay",
    }
)

#: In the schema of every route: the form of whatever goes wrong.
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"model": Problem, "description": "Refused."},
    "5XX": {"model": Problem, "description": "The cluster does not answer."},
}

AppIdInPath: TypeAlias = Annotated[AppId, PathParameter(ge=0, le=ID_MAX)]
ExecutorIdInPath: TypeAlias = Annotated[ExecutorId, PathParameter(ge=-1, le=ID_MAX)]
UploadedProgram: TypeAlias = Annotated[
    UploadFile, File(description="A .py file, a .zip or a .whl.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    client: ClusterClient
    config: Config
    guard: GuardSettings
    logins: Logins
    watching: Watching
    topics: Topics
    uploads: Uploads
    submitting: Submitting
    of_one_run: bool = False


def deps_of(request: HTTPConnection) -> Deps:
    deps = request.app.state.deps
    assert isinstance(deps, Deps)
    return deps


def caller_of(request: Request) -> Caller | None:
    caller: Caller | None = request.state.caller
    return caller


def _client_of(request: Request) -> ClusterClient:
    client, caller = deps_of(request).client, caller_of(request)
    return client if caller is None else client.in_name_of(asker_of(caller))


def _known_caller(request: Request) -> Caller:
    caller = caller_of(request)
    assert caller is not None, "the guard lets nobody unknown through to this route"
    return caller


Client: TypeAlias = Annotated[ClusterClient, Depends(_client_of)]
Given: TypeAlias = Annotated[Deps, Depends(deps_of)]
Asking: TypeAlias = Annotated[Caller, Depends(_known_caller)]


@dataclass(frozen=True, slots=True)
class Action:
    """The right to do something unsafe: every unsafe route has one, and it is in the audit log."""

    name: str
    scope: TokenScope

    def __call__(self, request: Request) -> Caller:
        parts = [f"{key}={value}" for key, value in request.path_params.items()]
        request.state.action = TakenAction(self.name, " ".join(parts))
        caller = _known_caller(request)
        if caller.scope < self.scope:
            raise ProblemRaised(
                403,
                f"{self.name} needs the scope {self.scope.text}, and {caller.name} has "
                f"{caller.scope.text}",
                f"gear token add NAME --scope {self.scope.text}",
            )
        if deps_of(request).of_one_run and self.name not in OF_ONE_RUN:
            raise ProblemRaised(
                403,
                f"{self.name} is not for the services of one run, which end with it",
                f"start a cluster: {program('local')}",
            )
        return caller
