"""A whole cluster in this process, until it is told to stop."""

import threading
from typing import Literal

from gearpy.cli.terminal import text
from gearpy.cli.terminal.log import log_to_stderr
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.net.masters import the_only
from gearpy.config.schema import Config

__all__ = ["run_cluster"]


def run_cluster(
    config: Config,
    *,
    workers: int,
    slots: int | None,
    executors: Literal["thread", "process"],
    as_json: bool,
    verbose: bool,
) -> None:
    """Start it, say where it is, stop it at Ctrl-C or SIGTERM.

    Raises:
        ConfigError: it cannot listen at its address.
    """
    log_to_stderr(verbose=verbose, warnings=True)
    the_only(config.cluster.masters)
    try:
        with LocalCluster(
            config, workers=workers, slots=slots, listen=True, executors=executors
        ) as cluster:
            _print_ready(
                cluster.address,
                workers=workers,
                slots=slots or config.worker.slots,
                as_json=as_json,
            )
            threading.Event().wait()
    except KeyboardInterrupt:
        return  # It was asked to stop, and did.


def _print_ready(address: str, *, workers: int, slots: int, as_json: bool) -> None:
    if as_json:
        print_json({"address": address, "workers": workers, "slots": slots})
    else:
        print(
            f"gearpy local cluster at {address}, {text.plural(workers, 'worker')} "
            f"x {text.plural(slots, 'slot')}; stop with Ctrl-C",
            flush=True,
        )
