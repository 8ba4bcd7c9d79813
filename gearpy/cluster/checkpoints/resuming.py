"""From what a user calls a checkpoint to the one that an application begins with."""

import re
from dataclasses import replace
from typing import Final

from gearpy.cluster.checkpoints.migration import check_moves
from gearpy.cluster.checkpoints.paths import find_named
from gearpy.cluster.checkpoints.tool import find_checkpoint, open_store
from gearpy.config.schema import Config
from gearpy.core.coordinator.log import DagVersions
from gearpy.core.dag.graph import Dag
from gearpy.core.dag.state_moves import StateMove, layout_of
from gearpy.core.master.checkpoint_names import ResumePoint, prefix_of
from gearpy.errors import ConfigError
from gearpy.ids import AppId
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import read_log

__all__ = ["resume_moves", "resume_point"]

_DIGITS_MAX: Final = 18  # Of the number of an application.
_PREFIX: Final = re.compile(r"[^/]*/?app[0-9]+", re.ASCII)


def resume_point(text: str, *, config: Config, cluster_id: str, drops_state: bool = False) -> str:
    """Return what `ClusterClient.submit` takes as ``resume_from``.

    Args:
        text: the number or name of an application of this cluster, or ``cluster/appN`` of any; each
            alone, for its newest epoch, or with ``@`` and an epoch.
        config: says where checkpoints are.
        cluster_id: of this cluster.
        drops_state: what the program has no place for may be left behind.

    Raises:
        ConfigError: there is no such checkpoint, or none can be seen from here.
        GearpyError: what is stored of that application cannot be read.
    """
    folder = config.checkpoint.folder
    place = f"checkpoint store {folder}"
    try:
        checkpoints = open_store(folder, named_by="checkpoint.folder")
    except ConfigError as error:
        raise _refusal(text, *error.mistakes) from error
    try:
        name = _full_name(text, checkpoints, cluster_id)
        prefix, epoch = find_checkpoint(checkpoints, name)
    except ConfigError as error:
        raise _refusal(text, *(f"{place}: {each}" for each in error.mistakes)) from error
    except OSError as error:
        raise _refusal(text, f"{place} cannot be read: {error}") from error
    return str(replace(ResumePoint.parse(f"{prefix}@{epoch or ''}"), drops_state=drops_state))


def resume_moves(point: str, dag: Dag, *, config: Config) -> list[StateMove]:
    """Return what becomes of the state of each step of a checkpoint in a graph.

    Args:
        point: the checkpoint, as `resume_point` gives it.
        dag: the graph.
        config: says where checkpoints are.

    Returns:
        Nothing if the checkpoint is of a gearpy that gave steps no ids.

    Raises:
        ConfigError: something that is kept has no place, and that was not allowed.
        GearpyError: what is stored of that application cannot be read.
    """
    found = ResumePoint.parse(point)
    checkpoints = open_store(config.checkpoint.folder, named_by="checkpoint.folder")
    known = DagVersions(read_log(checkpoints, found.prefix).state).read()
    if not known or known[-1].layout is None:
        return []
    return check_moves(known[-1].layout, layout_of(dag), drops_state=found.drops_state)


def _refusal(text: str, *mistakes: str) -> ConfigError:
    return ConfigError(*(f"--from-checkpoint {text}: {each}" for each in mistakes))


def _full_name(text: str, checkpoints: Checkpoints, cluster_id: str) -> str:
    """Return a name with the cluster in it: a number or name means an application of this one."""
    name, at, epoch = text.rpartition("@") if "@" in text else (text, "", "")
    if name.isascii() and name.isdigit() and len(name) <= _DIGITS_MAX:
        return f"{prefix_of(cluster_id, AppId(int(name)))}{at}{epoch}"
    if _PREFIX.fullmatch(name) or (epoch and not epoch.isdigit()):
        return text
    return f"{find_named(checkpoints, name, cluster=cluster_id)}{at}{epoch}"
