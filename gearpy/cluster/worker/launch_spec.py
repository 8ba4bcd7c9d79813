"""LaunchSpec: a worker's instructions to a process it starts, on its standard input."""

from dataclasses import dataclass, field

from gearpy.messages.cluster import LaunchExecutor


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """Everything that a process of an application needs to begin.

    ``config`` is the worker's configuration with that of the application over it, ``own`` the
    worker's alone: an app master finds in the coordinator log what goes over it. ``token`` is
    the line of a `wire.connection.keys.LaunchToken`, a secret: it is why all this is neither in the
    arguments nor in the environment, where other users see it.
    """

    launch: LaunchExecutor
    config: dict[str, str]
    own: dict[str, str]
    token: str = field(repr=False)
    worker_node: str  # For readers of the log.
    artifacts: str  # Folder of fetched artifacts, which all processes of the worker share.
