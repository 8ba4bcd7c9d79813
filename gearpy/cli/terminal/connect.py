"""Connects commands: to the master of a cluster, or to a run on this machine."""

from gearpy.cli.terminal.runs import is_there, run_called
from gearpy.cluster.boot.remote import RemoteCluster, connect
from gearpy.cluster.client.runs import RUN_APP, RunClient, live_runs
from gearpy.config.schema import Config
from gearpy.errors import SubmitRefused


def connected(config: Config) -> RemoteCluster:
    """Return a client of the masters, and of no other cluster that takes their place."""
    return connect(config=config)


def found(config: Config, ref: str | None) -> RemoteCluster | RunClient:
    """Return a client of the run that is named, or that is the only one; else of the cluster.

    A cluster that is there counts more where none is named.

    Raises:
        SubmitRefused: there is no cluster, and several runs, or none of that name.
    """
    runs = live_runs()
    if ref is not None and (entry := run_called(ref, runs)) is not None:
        return RunClient(entry)
    if not runs or any(is_there(each) for each in config.cluster.masters):
        return connected(config)
    names = ", ".join(map(str, runs))
    if ref not in {None, str(RUN_APP)}:  # Another number is of a cluster that is away.
        raise SubmitRefused(f"no run is called {ref!r}, and there is no cluster; runs: {names}")
    if len(runs) > 1:
        raise SubmitRefused(f"{len(runs)} runs go on here: name one of {names}")
    return RunClient(runs[0])
