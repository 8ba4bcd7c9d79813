"""Where in a checkpoint store an application is, for tools that ask no cluster."""

import re
from collections.abc import Iterable
from typing import Final

from gearpy.core.coordinator.log import ApplicationView
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import AppId
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import read_log

__all__ = ["application_prefixes", "find_application", "find_named", "find_prefix"]

#: `LaunchExecutor.checkpoints`, and what is below it. Older ones are not below a cluster's id.
_NAME: Final = re.compile(r"(?:([^/]+)/)?app([0-9]+)/")
_SHOWN_MAX: Final = 10
_DIGITS_MAX: Final = 18  # Of the number of an application.


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
        f"{stored or 'none'}; what succeeded is deleted after checkpoint.keep-succeeded hours; "
        "another store is named with --checkpoints"
    )


def find_application(checkpoints: Checkpoints, text: str, *, cluster: str | None = None) -> str:
    """Return below which name everything of an application is that a user names.

    Args:
        checkpoints: the store.
        text: its number; or its name, for the newest that has it.
        cluster: its id; None: there is only one that has it.

    Raises:
        ConfigError: there is no such application, or several clusters have it.
        OSError: the store cannot be read.
    """
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX:
        return find_prefix(checkpoints, AppId(int(text)), cluster=cluster)
    return find_named(checkpoints, text, cluster=cluster)


def find_named(checkpoints: Checkpoints, name: str, *, cluster: str | None = None) -> str:
    """Return below which name the newest application is that is called so.

    Raises:
        ConfigError: there is none, or several clusters have one.
        OSError: the store cannot be read.
    """
    called = dict[str, str]()  # By prefix, the oldest first.
    for app_id, prefixes in sorted(_prefixes(checkpoints.names("")).items()):
        for prefix in sorted(prefixes):
            if cluster in (None, prefix.rpartition("/")[0]):
                called[prefix] = _name_of(checkpoints, prefix) or f"app{app_id}"
    found = [prefix for prefix, each in called.items() if each == name]
    clusters = {each.rpartition("/")[0] for each in found}
    if len(clusters) > 1:
        raise ConfigError(
            f"an application {name!r} is in the checkpoint store for several clusters, "
            f"{_listed(sorted(clusters))}: choose one with --cluster"
        )
    if not found:
        known = _listed(sorted(set(called.values())))
        raise ConfigError(
            f"there is no application {name!r} in the checkpoint store, only: {known or 'none'}; "
            "another store is named with --checkpoints"
        )
    return found[-1]


def _name_of(checkpoints: Checkpoints, prefix: str) -> str:
    """Return the name of an application; empty if its log does not say it."""
    try:
        return ApplicationView(read_log(checkpoints, prefix).state).name
    except GearpyError:
        return ""


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
