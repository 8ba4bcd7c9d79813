"""Finds the runs of this user that a command names, and what they have left."""

import os
import socket
from contextlib import suppress
from typing import Final

from gearpy.cluster.client.report import Report
from gearpy.cluster.client.runs import RunEntry, last_report, live_runs
from gearpy.config.schema import Config
from gearpy.errors import SubmitRefused

_TRY_S: Final = 0.5


def run_called(name: str) -> RunEntry | None:
    """Return the run of this user of a name; of an application, of a process.

    Raises:
        SubmitRefused: there are several.
    """
    runs = live_runs()
    named = [each for each in runs if each.name == name]
    called = named if len(named) == 1 else [each for each in runs if each.is_called(name)]
    if len(called) > 1:
        pids = ", ".join(str(each.pid) for each in called)
        raise SubmitRefused(f"{len(called)} runs are called {name!r}: give the process, of {pids}")
    return called[0] if called else None


def is_named(master: str | None) -> bool:
    """Tell whether a user has named a cluster, so that no run is meant."""
    return master is not None or "GEARPY_CLUSTER_MASTERS" in os.environ


def left_report(config: Config, master: str | None, ref: str | None) -> Report | None:
    """Return what a run that has ended has left, if nothing of that name goes on.

    None: ask who goes on.
    """
    if ref is None or is_named(master) or run_called(ref) is not None:
        return None
    if any(is_there(each) for each in config.cluster.masters):
        return None
    return last_report(ref)


def is_there(address: str) -> bool:
    """Tell whether somebody listens at an address, host:port."""
    host, _, port = address.rpartition(":")
    with suppress(OSError, ValueError), socket.create_connection((host, int(port)), _TRY_S):
        return True
    return False
