"""Shows warnings of sources and sinks, and what programs log, on standard error."""

import logging
import sys
from typing import Final

from gearpy.views.text import printable

_OF_ALL: Final = logging.getLogger("gearpy")
_OF_SOURCES: Final = tuple(
    logging.getLogger(name) for name in ("gearpy.connectors", "gearpy.task.sources")
)
_OF_PROGRAMS: Final = logging.getLogger("gearpy.app")


class _SourceWarnings(logging.Handler):
    """Writes warnings as the command line writes errors; to the standard error of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        sys.stderr.write(printable(f"{level}{record.getMessage()}") + "\n")

    def filter(self, record: logging.LogRecord) -> bool:
        handlers = (*_OF_ALL.handlers, *logging.getLogger().handlers)
        is_logged = any(not isinstance(each, logging.NullHandler) for each in handlers)
        return not is_logged and record.name != "gearpy.connectors.streams.tcp"


_HANDLER: Final = _SourceWarnings(logging.WARNING)
_LINES: Final = _SourceWarnings(logging.INFO)


def show_source_warnings() -> None:
    """Show them where nobody has set up logging; lines of programs from "info" on."""
    for each in _OF_SOURCES:
        each.addHandler(_HANDLER)
    _OF_PROGRAMS.addHandler(_LINES)
    if _OF_PROGRAMS.level == logging.NOTSET:
        _OF_PROGRAMS.setLevel(logging.INFO)
