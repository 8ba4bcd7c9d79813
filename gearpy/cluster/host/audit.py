"""One line for each change that somebody asked for: who, what, from where, and what came of it."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gearpy.cluster.host.logs import LogHandler, LogSettings, formatter
from gearpy.config.schema import Config

#: The logger; its lines are `key=value` with values that cannot break a line.
AUDIT: Final = logging.getLogger("gearpy.audit")


def note_action(user: str | None, action: str, target: str, address: str, outcome: str) -> None:
    """Log an action that was carried out or refused; ``action`` is the command of ``gear``."""
    AUDIT.info(
        "user=%s action=%s target=%s from=%s: %s",
        json.dumps(user),
        json.dumps(action),
        json.dumps(target),
        address or "-",
        outcome,
    )


@contextmanager
def audit_log(config: Config) -> Iterator[None]:
    """Have actions noted in ``audit.log`` below ``log.folder``, once for a whole process."""
    if any(each.name == config.log.folder for each in AUDIT.handlers):
        yield  # The master and the services of `gear local` are one process.
        return
    file = LogSettings.of(config).open("audit.log")
    file.check()
    handler = LogHandler(file)
    handler.name = config.log.folder
    handler.setFormatter(formatter(config.log.format))
    AUDIT.addHandler(handler)
    AUDIT.setLevel(logging.INFO)
    AUDIT.propagate = False  # A terminal shows what went wrong, and not what was done.
    try:
        yield
    finally:
        AUDIT.removeHandler(handler)
        handler.close()
