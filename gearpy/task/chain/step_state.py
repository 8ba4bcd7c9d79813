"""Where in the keyed state of a task the steps of a chain keep theirs: below the id of the step.

Checkpoints of a gearpy that knew no ids have it below what the step is, and its place in the
chain; an application that goes on from one leaves it there.
"""

from gearpy.state.keyed import KeyedState
from gearpy.state.kinds.bulk import BulkState
from gearpy.task.api.interfaces import TaskContext

__all__ = ["step_bulk", "step_state"]


def step_state(context: TaskContext, kind: str, place: int) -> KeyedState:
    """Return the state of the step of this kind at a place in the chain."""
    return context.state.scope(context.step_ids[place] if context.step_ids else kind)


def step_bulk(
    context: TaskContext, kind: str, place: int, *, operator: str, is_keyed: bool = True
) -> BulkState:
    """Return the same for a step that keeps pairs by itself; see `KeyedState.bulk`."""
    scope = step_state(context, kind, place)
    tag = kind if context.step_ids else str(place)
    return scope.bulk(tag, operator=operator, is_keyed=is_keyed)
