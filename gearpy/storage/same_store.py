"""The question whether two machines see the same store, answered by the log of an application.

It is apart from `coordinator_log`, as each executor asks it and none reads the log.
"""

from gearpy.errors import ConfigError, LogBroken
from gearpy.storage.checkpoints import Checkpoints


def log_folder(prefix: str) -> str:
    """Return the folder of an application's log; ``prefix`` is `LaunchExecutor.checkpoints`."""
    return f"{prefix}/coordinator"


def check_same_store(checkpoints: Checkpoints, prefix: str) -> None:
    """Refuse a store that does not have the log of an application's app master.

    Raises:
        ConfigError: it does not.
        LogBroken: the store cannot be used.
    """
    try:
        is_there = any(True for _ in checkpoints.names(log_folder(prefix)))
    except OSError as error:
        raise LogBroken(f"coordinator log {log_folder(prefix)}: {error}") from error
    if not is_there:
        raise ConfigError(
            f"checkpoint.folder {checkpoints.place} has nothing of {prefix} here, where its app "
            "master has: is the folder mounted on this machine, and the same as on the others?"
        )
