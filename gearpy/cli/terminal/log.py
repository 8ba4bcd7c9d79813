"""The handler of gearpy's log on the command line."""

import logging
import sys
from typing import Final

from gearpy.cluster.embedded.source_warnings import show_source_warnings
from gearpy.cluster.host.logs import log_to
from gearpy.config.schema import Config

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(*, verbose: bool, warnings: bool = False, quiet: bool = False) -> None:
    """Show all log records (``verbose``), or warnings, or only warnings of sources and sinks.

    The cause of a command's end is shown as its error, so that a command that runs one thing only
    needs no log to tell it; records that a source leaves out, or a sink removes, show only here.
    ``quiet`` leaves out lines of steps, but for errors. Users' own loggers are theirs to set up.
    """
    logger = logging.getLogger("gearpy")
    if not verbose and not warnings:
        if quiet:
            logging.getLogger("gearpy.app").setLevel(logging.ERROR)
        logger.addHandler(logging.NullHandler())
        show_source_warnings()
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)


def log_to_console(config: Config, *, verbose: bool) -> None:
    """Show a daemon's log on standard error, too, if wanted; it has a file of its own."""
    if verbose:
        log_to(logging.StreamHandler(sys.stderr), config.log)
    else:
        logging.getLogger().addHandler(logging.NullHandler())  # Python shows warnings otherwise.
