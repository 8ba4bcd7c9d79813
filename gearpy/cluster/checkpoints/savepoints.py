"""Savepoints in a checkpoint store: epochs under names, of applications that were stopped."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from gearpy.cluster.checkpoints.reading import stored_prefixes
from gearpy.core.coordinator.savepoints import Savepoint, Savepoints
from gearpy.core.coordinator.views import ApplicationView
from gearpy.errors import ConfigError, GearpyError
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import CoordinatorLog, newest_launch, read_log

#: Says of a message of the coordinator log that this tool has appended it.
_SOURCE: Final = "gear savepoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSavepoint:
    """A savepoint and whose it is: the application below ``prefix``, called ``application``."""

    prefix: str
    application: str
    savepoint: Savepoint

    @property
    def full_name(self) -> str:
        """The name that no other one in the store has."""
        return f"{self.prefix}@{self.savepoint.name}"


def stored_savepoints(
    checkpoints: Checkpoints, cluster: str | None = None, *, name: str = ""
) -> list[StoredSavepoint]:
    """Return the savepoints in a store, the oldest first.

    Applications whose log cannot be read are passed over; 'gear checkpoint repair' is for those.

    Args:
        checkpoints: the store.
        cluster: only those of this cluster.
        name: only those of this name.

    Raises:
        OSError: the store cannot be read.
    """
    found = list[StoredSavepoint]()
    for prefix in stored_prefixes(checkpoints, cluster or ""):
        with suppress(GearpyError):
            state = read_log(checkpoints, prefix).state
            application = ApplicationView(state).name
            found += [
                StoredSavepoint(prefix=prefix, application=application, savepoint=each)
                for each in Savepoints(state).read()
                if name in {"", each.name}
            ]
    return sorted(found, key=lambda each: each.savepoint.stored_ms)


def find_savepoint(
    checkpoints: Checkpoints, name: str, cluster: str | None = None
) -> StoredSavepoint:
    """Return the savepoint of a name, or of ``PREFIX@NAME``.

    Raises:
        ConfigError: there is none, or there are several of that name.
        OSError: the store cannot be read.
    """
    prefix, _, alone = name.rpartition("@")
    found = [
        each
        for each in stored_savepoints(checkpoints, cluster, name=alone)
        if prefix in {"", each.prefix}
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.full_name for each in found)
        raise ConfigError(f"several savepoints are called {alone!r}: name one of {names}")
    there = {each.savepoint.name for each in stored_savepoints(checkpoints, cluster)}
    raise ConfigError(f"no savepoint {name!r}; there are: {', '.join(sorted(there)) or 'none'}")


def drop_savepoint(
    checkpoints: Checkpoints, found: StoredSavepoint, *, wall_ms: Callable[[], int]
) -> None:
    """Take its name from a savepoint; its epoch stays as long as others of the application do.

    Raises:
        LogSuperseded: the application was launched meanwhile.
        LogBroken: the store cannot be used.
    """
    log = CoordinatorLog(
        checkpoints,
        found.prefix,
        launch=newest_launch(checkpoints, found.prefix),
        source=_SOURCE,
        wall_ms=wall_ms,
    )
    log.append(Savepoints(log.state).drop(found.savepoint.name))
