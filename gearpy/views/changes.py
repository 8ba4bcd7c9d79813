"""Changes of applications that run, in words."""

from collections.abc import Mapping
from typing import Final

from gearpy.messages.client import UpdatePlanned
from gearpy.views import text

#: The states of a version, as people say them.
STATES: Final[Mapping[str, str]] = {
    "waiting": "waits",
    "preparing": "being prepared",
    "trial": "on trial",
    "running": "runs",
    "replaced": "replaced",
    "failed": "failed",
}


def plan_lines(planned: UpdatePlanned) -> list[str]:
    """Return the fate of the state of each step, the steps whose code is replaced, and the loss."""
    lines = [text.printable(move.text) for move in planned.moves]
    if planned.is_same:
        lines.append("graph and state are the same: only code and arguments differ")
    lines += [text.printable(f"replaced {each}") for each in planned.differences]
    if planned.goes_on:
        lines.append(text.printable(f"goes on meanwhile: {', '.join(planned.goes_on)}"))
    lost = sum(each.is_lost for each in planned.moves)
    dropped = f"the state of {text.plural(lost, 'step')} is dropped"
    return [*lines, dropped if lost else "no state is dropped"]
