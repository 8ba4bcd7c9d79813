"""Where in a checkpoint store an application is, for tools that ask no cluster."""

import re
from collections.abc import Iterable
from typing import Final

from gearpy.errors import ConfigError
from gearpy.ids import AppId
from gearpy.storage.checkpoints import Checkpoints

__all__ = ["application_prefixes", "find_prefix"]

#: `LaunchExecutor.checkpoints`, and what is below it. Older ones are not below a cluster's id.
_NAME: Final = re.compile(r"(?:([^/]+)/)?app([0-9]+)/")
_SHOWN_MAX: Final = 10


def application_prefixes(checkpoints: Checkpoints, app_id: AppId) -> list[str]:
    """Return below which names of a store there is an application with this id, in order.

    Clusters that share a store may have one each.

    Raises:
        OSError: the store cannot be read.
    """
    return sorted(_prefixes(checkpoints.names("")).get(app_id, ()))


def find_prefix(checkpoints: Checkpoints, app_id: AppId, *, cluster: str | None = None) -> str:
    """Return below which name everything of an application is.

    Args:
        checkpoints: the store.
        app_id: of the application.
        cluster: its id, the part of the name before the application's; None: the only one that has
            the application.

    Raises:
        ConfigError: there is no such application, or several clusters have it.
        OSError: the store cannot be read.
    """
    known = _prefixes(checkpoints.names(""))
    found = sorted(known.get(app_id, ()))
    if cluster is not None:
        found = [each for each in found if each.rpartition("/")[0] == cluster]
    if len(found) == 1:
        return found[0]
    if found:
        clusters = _listed(each.rpartition("/")[0] or repr("") for each in found)
        raise ConfigError(
            f"application {app_id} is in the checkpoint store for several clusters, {clusters}: "
            "choose one with --cluster"
        )
    stored = _listed(prefix for each in sorted(known) for prefix in sorted(known[each]))
    whose = "" if cluster is None else f" of cluster {cluster!r}"
    raise ConfigError(
        f"there is nothing of application {app_id}{whose} in the checkpoint store, only of: "
        f"{stored or 'none'}; what succeeds is deleted; another store is named with --checkpoints"
    )


def _prefixes(names: Iterable[str]) -> dict[AppId, set[str]]:
    found: dict[AppId, set[str]] = {}
    for name in names:
        place = _NAME.match(name)
        if place is not None:
            found.setdefault(AppId(int(place[2])), set()).add(place[0].rstrip("/"))
    return found


def _listed(texts: Iterable[str]) -> str:
    every = list(texts)
    more = f" and {len(every) - _SHOWN_MAX} more" if len(every) > _SHOWN_MAX else ""
    return ", ".join(every[:_SHOWN_MAX]) + more
