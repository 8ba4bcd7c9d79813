"""The keyed state of a step: a part of that of its task, below the id of the step."""

from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.task.api.interfaces import TaskContext


def step_state(context: TaskContext, kind: str, place: int) -> KeyedState:
    """Return the state of the step of this kind at a place in the chain."""
    return context.state.scope(context.step_ids[place] if context.step_ids else kind)


def step_bulk(
    context: TaskContext, kind: str, place: int, *, operator: str, is_keyed: bool = True
) -> BulkState:
    """Return the state of a step that keeps pairs by itself; see `KeyedState.bulk`."""
    return step_state(context, kind, place).bulk(kind, operator=operator, is_keyed=is_keyed)
