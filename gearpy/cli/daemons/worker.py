"""A worker in this process, until it is told to stop."""

import sys
from collections.abc import Callable
from contextlib import suppress

from gearpy.cli.terminal.log import log_to_console
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.boot.daemon import WorkerDaemon
from gearpy.config.schema import Config
from gearpy.errors import NodeGivenUp

__all__ = ["run_worker"]


def run_worker(config: Config, *, as_json: bool, verbose: bool) -> None:
    """Start it, say when a master has it, stop what it runs at Ctrl-C or SIGTERM, then itself.

    Raises:
        ConfigError: it cannot listen at its address, or a folder cannot be made.
        ConnectionLost: it has found no master again for too long.
    """
    log_to_console(config, verbose=verbose)

    def tell(text: str) -> None:
        if as_json:
            print_json({"ready": text})
        else:
            print(text, flush=True)

    try:
        while True:
            with suppress(NodeGivenUp):  # Begin anew: as another node, with nothing that runs.
                _run_one(config, tell)
                return
    except KeyboardInterrupt:
        return  # It was asked to stop, and did.


def _run_one(config: Config, tell: Callable[[str], None]) -> None:
    with WorkerDaemon(config, on_ready=tell, on_waiting=_tell_on_stderr) as daemon:
        daemon.wait()


def _tell_on_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
