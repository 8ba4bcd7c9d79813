"""Routes to look at the state of the steps of an application, as at the end of an epoch."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.states.stored import StateMoment, StateSummary, moment_of, rows_of
from gearpy.ids import AppId
from gearpy.messages.client import GetEpochs
from gearpy.services.deps import AppIdInPath, Client
from gearpy.services.problems import ProblemRaised
from gearpy.wire.values.records import NO_CLASSES

router: Final = APIRouter(prefix="/appmaster/{app_id}/state", tags=["inside"])

_NAME_CHARS_MAX: Final = 300
_KEY_CHARS_MAX: Final = 1000
_EPOCH_MAX: Final = 2**53 - 1
_ROWS_MAX: Final = 10_000
#: Larger epochs are looked at by who has the memory for it: the command line.
_BYTES_MAX: Final = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesKept:
    """The states of the steps of an application."""

    app_id: int
    states: list[StateSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateColumn:
    """A column: its name, and its type as Arrow writes it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRows:
    """Rows of a state; ``total`` says how many there are, with that key if one was given."""

    app_id: int
    moment: StateMoment
    columns: list[StateColumn]
    rows: list[dict[str, Any]]
    total: int


@router.get("")
def list_states(client: Client, app_id: AppIdInPath) -> StatesKept:
    """Return the states of each step: their names, kinds and sizes."""
    _check_size(client, app_id)
    states = client.states(app_id, classes=NO_CLASSES)
    return StatesKept(app_id=app_id, states=states.summaries())


@router.get("/{step}")
def get_state(
    client: Client,
    app_id: AppIdInPath,
    step: Annotated[
        str, Path(max_length=_NAME_CHARS_MAX, description="Name, id, or number of its processor.")
    ],
    *,
    state: Annotated[
        str, Query(max_length=_NAME_CHARS_MAX, description="Which, if it has several.")
    ] = "",
    epoch: Annotated[
        int | None, Query(ge=1, le=_EPOCH_MAX, description="The newest by default.")
    ] = None,
    key: Annotated[
        str | None, Query(max_length=_KEY_CHARS_MAX, description="Only of this key, as text.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=_ROWS_MAX)] = 100,
) -> StateRows:
    """Return the state of a step, exactly as at the end of an epoch, or the part of one key."""
    _check_size(client, app_id)
    table = client.states(app_id, classes=NO_CLASSES).table(step, state, epoch=epoch)
    rows, total = rows_of(table, key=key, limit=limit)
    columns = [StateColumn(name=each.name, type=str(each.type)) for each in table.schema]
    return StateRows(
        app_id=app_id, moment=moment_of(table), columns=columns, rows=rows, total=total
    )


def _check_size(client: ClusterClient, app_id: AppId) -> None:
    sizes = {each.region: each.size_bytes for each in client.ask(GetEpochs(app_id=app_id)).epochs}
    if max(sizes.values(), default=0) > _BYTES_MAX:
        raise ProblemRaised(
            413,
            f"an epoch of application {app_id} has {max(sizes.values())} bytes, at most "
            f"{_BYTES_MAX} are read for a request",
            f"gear state query {app_id} STEP",
        )
