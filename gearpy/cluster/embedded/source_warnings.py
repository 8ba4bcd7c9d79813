"""Shows warnings of sources and sinks, such as a bad row that was left out, on standard error."""

import logging
import sys
from typing import Final

from gearpy.views.text import printable

_OF_ALL: Final = logging.getLogger("gearpy")
_OF_CONNECTORS: Final = logging.getLogger("gearpy.connectors")


class _SourceWarnings(logging.Handler):
    """Writes warnings as the command line writes errors; to the standard error of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(printable(f"warning: {record.getMessage()}") + "\n")

    def filter(self, record: logging.LogRecord) -> bool:
        handlers = (*_OF_ALL.handlers, *logging.getLogger().handlers)
        is_logged = any(not isinstance(each, logging.NullHandler) for each in handlers)
        return not is_logged and record.name != "gearpy.connectors.streams.tcp"


_HANDLER: Final = _SourceWarnings(logging.WARNING)


def show_source_warnings() -> None:
    _OF_CONNECTORS.addHandler(_HANDLER)
