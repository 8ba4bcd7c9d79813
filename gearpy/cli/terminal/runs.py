"""Finds the runs of this user that a command names, and what they have left."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gearpy.cluster.client.report import Report
from gearpy.cluster.client.runs import RunEntry, last_report, live_runs
from gearpy.config.schema import Config
from gearpy.errors import SubmitRefused
from gearpy.transport.api import split_address

_TRY_S: Final = 1.0


def run_called(name: str, runs: Sequence[RunEntry]) -> RunEntry | None:
    """Return the one of these runs that has a name; or its application, or its process.

    Raises:
        SubmitRefused: there are several.
    """
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
    """Return the last state of a run that has ended, if no run of that name goes on.

    None: ask who goes on.
    """
    if ref is None or is_named(master) or run_called(ref, live_runs()) is not None:
        return None
    if any(is_there(each) for each in config.cluster.masters):
        return None
    return last_report(ref)


def is_there(address: str) -> bool:
    """Tell whether somebody listens at an address, host:port."""
    with suppress(OSError), socket.create_connection(split_address(address), _TRY_S):
        return True
    return False
