"""Finds the checkpoint an application begins with, from the name that a user gives."""

import re
from typing import Final

from msgspec.structs import replace

from gearpy.cluster.checkpoints.migration import check_moves
from gearpy.cluster.checkpoints.reading import (
    StoredEpochs,
    find_application,
    name_of,
    open_store,
    stored_prefixes,
)
from gearpy.cluster.checkpoints.stored_savepoints import StoredSavepoint, stored_savepoints
from gearpy.config.schema import Config
from gearpy.core.coordinator.views import DagVersions
from gearpy.core.dag.graph import Dag
from gearpy.core.dag.state_moves import StateMove, layout_of
from gearpy.core.master.checkpoint_names import ResumePoint, prefix_of
from gearpy.errors import ConfigError
from gearpy.ids import AppId
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import read_log
from gearpy.storage.savepoints import read_savepoint

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_EPOCH: Final = re.compile(r"[0-9]{0,18}", re.ASCII)
_PREFIX: Final = re.compile(r"(?:[^/@]+/)?app[0-9]+", re.ASCII)
_SHOWN_CHARS_MAX: Final = 100


def resume_point(text: str, *, config: Config, cluster_id: str, allows_drop: bool = False) -> str:
    """Return the checkpoint as `ClusterClient.submit` takes it for ``resume_from``.

    Args:
        text: the name of a savepoint of this cluster; or the number or name of an application of
            it, or ``cluster/appN`` of any, each alone, for its newest epoch, or with ``@`` and an
            epoch or savepoint.
    """
    folder = config.checkpoint.folder
    place = f"checkpoint store {folder}"
    try:
        checkpoints = open_store(folder, named_by="checkpoint.folder")
    except ConfigError as error:
        raise _refusal(text, *error.mistakes) from error
    try:
        point = _found(text, checkpoints, cluster_id)
    except ConfigError as error:
        raise _refusal(text, *(f"{place}: {each}" for each in error.mistakes)) from error
    except OSError as error:
        raise _refusal(text, f"{place} cannot be read: {error}") from error
    return str(replace(point, allows_drop=allows_drop))


def resume_moves(point: str, dag: Dag, *, config: Config) -> list[StateMove]:
    found = ResumePoint.parse(point)
    checkpoints = open_store(config.checkpoint.folder, named_by="checkpoint.folder")
    if found.savepoint:
        known = [read_savepoint(checkpoints, found.prefix, found.savepoint).graph]
    else:
        known = DagVersions(read_log(checkpoints, found.prefix).state).read()
    if not known:
        return []
    return check_moves(known[-1].layout, layout_of(dag), allows_drop=found.allows_drop)


def shown_since(point: str, *, config: Config) -> str:
    found = ResumePoint.parse(point)
    checkpoints = open_store(config.checkpoint.folder, named_by="checkpoint.folder")
    if found.savepoint:
        epoch = max(read_savepoint(checkpoints, found.prefix, found.savepoint).epochs.values())
    elif found.epoch is not None:
        epoch = found.epoch
    else:
        return ""
    newest = max((each.epoch for each in StoredEpochs(checkpoints, found.prefix)), default=0)
    if newest <= epoch:
        return ""
    return (
        f"application {found.app_id} has gone on from this epoch {epoch} to epoch {newest}: what "
        "its sinks have committed since stays there, and the same results come a second time. Give "
        "the new application sinks of its own, or remove those results first"
    )


def _refusal(text: str, *mistakes: str) -> ConfigError:
    return ConfigError(*(f"--from-checkpoint {text}: {each}" for each in mistakes))


def _found(text: str, checkpoints: Checkpoints, cluster_id: str) -> ResumePoint:
    if (found := _savepoint(text, checkpoints, cluster_id)) is not None:
        return ResumePoint.parse(found.full_name)
    name, _, epoch = text.rpartition("@") if "@" in text else (text, "", "")
    if not _EPOCH.fullmatch(epoch):
        raise ConfigError(
            f"{text[:_SHOWN_CHARS_MAX]!r} names no checkpoint: write the number of an application, "
            "or its cluster too, as in k3f9a1c2/app3, and then the epoch, as in 3@17, if it is not "
            "the newest"
        )
    if _NUMBER.fullmatch(name):
        prefix = prefix_of(cluster_id, AppId(int(name)))
    elif _PREFIX.fullmatch(name):
        prefix = name
    else:
        there = {each.savepoint.name for each in stored_savepoints(checkpoints, cluster_id)}
        prefix = find_application(
            checkpoints,
            name,
            cluster=cluster_id,
            else_try=(
                f"savepoints are: {', '.join(sorted(there)) or 'none'}; another store is named "
                "with --set checkpoint.folder=PLACE"
            ),
        )
    wanted = int(epoch) if epoch else None
    stored = StoredEpochs(checkpoints, prefix)
    regions = {each.region for each in stored.find(wanted)}
    if lacking := sorted(stored.manifests.keys() - regions):
        raise ConfigError(
            f"{prefix} has epoch {epoch} of some regions only, and not of {lacking}: each has "
            "epochs of its own, take the newest"
        )
    return ResumePoint.parse(f"{prefix}@{wanted or ''}")


def _savepoint(text: str, checkpoints: Checkpoints, cluster_id: str) -> StoredSavepoint | None:
    application, _, name = text.rpartition("@")
    if not name or name[0].isdigit() or _PREFIX.fullmatch(text):
        return None
    named = stored_savepoints(checkpoints, name=name)
    if not application:
        named = [each for each in named if each.prefix.startswith(f"{cluster_id}/")]
        others = stored_prefixes(checkpoints, cluster_id) if named else ()
        if any(name_of(checkpoints, each) == name for each in others):
            raise ConfigError(
                f"an application and a savepoint are called {name!r}: write {name}@ for the "
                f"application, or {named[-1].full_name}"
            )
    else:
        named = [each for each in named if _is_of(each, application, cluster_id)]
    if len(named) > 1:
        names = ", ".join(each.full_name for each in named)
        raise ConfigError(f"several savepoints are called {name!r}: write one of {names}")
    if application and not named:
        raise ConfigError(f"{application} has no savepoint {name!r}: see gear savepoint list")
    return named[0] if named else None


def _is_of(found: StoredSavepoint, application: str, cluster_id: str) -> bool:
    mine = found.prefix.startswith(f"{cluster_id}/")
    number = found.prefix.rpartition("/app")[2]
    return found.prefix == application or (
        mine and application in {number, found.savepoint.application}
    )
