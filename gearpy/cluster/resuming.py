"""From what a user calls a checkpoint to the one that an application begins with."""

from typing import Final

from gearpy.cluster.checkpoint_tool import find_checkpoint, open_store
from gearpy.config.schema import Config
from gearpy.core.checkpoint_names import ResumePoint, prefix_of
from gearpy.errors import ConfigError
from gearpy.ids import AppId

__all__ = ["resume_point"]

_DIGITS_MAX: Final = 18  # Of the number of an application.


def resume_point(text: str, *, config: Config, cluster_id: str) -> str:
    """Return what `ClusterClient.submit` takes as ``resume_from``.

    Args:
        text: the number of an application of this cluster, or ``cluster/appN`` of any; each alone,
            for its newest epoch, or with ``@`` and an epoch.
        config: says where checkpoints are.
        cluster_id: of this cluster.

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
        prefix, epoch = find_checkpoint(checkpoints, _full_name(text, cluster_id))
    except ConfigError as error:
        raise _refusal(text, *(f"{place}: {each}" for each in error.mistakes)) from error
    except OSError as error:
        raise _refusal(text, f"{place} cannot be read: {error}") from error
    return str(ResumePoint.parse(f"{prefix}@{epoch or ''}"))


def _refusal(text: str, *mistakes: str) -> ConfigError:
    return ConfigError(*(f"--from-checkpoint {text}: {each}" for each in mistakes))


def _full_name(text: str, cluster_id: str) -> str:
    """Return a name with the cluster in it: a number alone means an application of this one."""
    name, at, epoch = text.partition("@")
    if name.isascii() and name.isdigit() and len(name) <= _DIGITS_MAX:
        return f"{prefix_of(cluster_id, AppId(int(name)))}{at}{epoch}"
    return text
