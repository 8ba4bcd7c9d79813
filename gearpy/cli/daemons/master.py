"""A master in this process, until it is told to stop."""

from gearpy.cli.terminal.log import log_to_console
from gearpy.cli.terminal.output import print_json
from gearpy.cluster.boot.daemon import MasterDaemon, address_to_listen
from gearpy.config.schema import Config

__all__ = ["run_master"]


def run_master(
    config: Config, *, host: str | None, port: int | None, as_json: bool, verbose: bool
) -> None:
    """Start it, say where it is, stop it at Ctrl-C or SIGTERM.

    Raises:
        ConfigError: it cannot listen at its address, or its address is not that of a master.
        GearpyError: its log cannot be read, or not be written any more.
    """
    log_to_console(config, verbose=verbose)
    host, port = address_to_listen(config, host=host, port=port)
    try:
        with MasterDaemon(config, host=host, port=port) as daemon:
            if as_json:
                print_json({"address": daemon.address})
            else:
                print(f"master ready at {daemon.address}", flush=True)
            daemon.wait()
    except KeyboardInterrupt:
        return  # It was asked to stop, and did.
