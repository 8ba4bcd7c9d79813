"""Savepoints in a checkpoint store: lists, finds and drops them. Their applications may run."""

from dataclasses import dataclass

from gearpy.cluster.checkpoints.changing import needed_by
from gearpy.cluster.checkpoints.reading import stored_prefixes
from gearpy.core.coordinator.savepoints import Savepoint
from gearpy.errors import ConfigError
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.savepoints import read_savepoints, remove_savepoint


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSavepoint:
    """A savepoint and whose it is: the application below ``prefix``."""

    prefix: str
    savepoint: Savepoint

    @property
    def full_name(self) -> str:
        return f"{self.prefix}@{self.savepoint.name}"


def stored_savepoints(
    checkpoints: Checkpoints, cluster: str | None = None, *, name: str = ""
) -> list[StoredSavepoint]:
    found = [
        StoredSavepoint(prefix=prefix, savepoint=each)
        for prefix in stored_prefixes(checkpoints, cluster or "")
        for each in read_savepoints(checkpoints, prefix)
        if name in {"", each.name}
    ]
    return sorted(found, key=lambda each: each.savepoint.stored_ms)


def find_savepoint(
    checkpoints: Checkpoints, name: str, cluster: str | None = None
) -> StoredSavepoint:
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


def drop_savepoint(checkpoints: Checkpoints, found: StoredSavepoint) -> None:
    """Drop a savepoint, and the files that nothing else needs. Its application may run.

    What the application needs of them is in its log: an epoch only has files that the one before
    it has had, or new ones.
    """
    files, name = found.savepoint.files, found.savepoint.name
    for other in stored_prefixes(checkpoints).keys() - {found.prefix}:
        if used := files & {*needed_by(checkpoints, other)}:
            raise ConfigError(
                f"{other} has begun with savepoint {name} and needs {len(used)} files of it, such "
                f"as {min(used)}: wait until it has stored everything anew, or drop {other} first"
            )
    unneeded = files - {*needed_by(checkpoints, found.prefix, but=name)}
    remove_savepoint(checkpoints, found.prefix, name)
    for file in sorted(unneeded):
        if file.startswith(f"{found.prefix}/"):
            checkpoints.drop(file)
