"""One line for each unsafe action: who, what, from where, and what came of it."""

import json
import logging
from typing import Final

from gearpy.services.security.access import Caller

#: The logger; its lines are `key=value` with values that cannot break a line.
AUDIT: Final = logging.getLogger("gearpy.audit")


def note_action(caller: Caller | None, action: str, target: str, address: str, status: int) -> None:
    """Log an action that was carried out or refused; ``action`` is the command of ``gear``."""
    who = json.dumps(caller.name if caller else None)
    outcome = "done" if status < 400 else f"refused ({status})"  # noqa: PLR2004 - statuses of HTTP
    AUDIT.info(
        "user=%s action=%s target=%s from=%s: %s",
        who,
        json.dumps(action),
        json.dumps(target),
        address,
        outcome,
    )
