"""The ends of commands as the shell sees them: exit status and a text."""

import signal
from typing import Final

from gearpy.cluster.embedded.output import NO_READER
from gearpy.errors import (
    AskTimeout,
    ConfigError,
    ConnectionLost,
    GearpyError,
    ProtocolError,
    SubmitRefused,
)

SUCCESS: Final = 0
FAILED: Final = 1
WRONG_USE: Final = 2
NO_CLUSTER: Final = 3
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells have it.
TERMINATED: Final = 143  # 128 + SIGTERM.

#: Shown below the help of the program.
HELP: Final = (
    f"Exit codes: {SUCCESS} success; "
    f"{FAILED} the application or a new version failed, or what was asked does not hold; "
    f"{WRONG_USE} wrong usage (file, configuration, graph, or refused); "
    f"{NO_CLUSTER} no cluster, or it cannot be reached; "
    f"{INTERRUPTED} interrupted; "
    f"{NO_READER} nobody reads the output any more; "
    f"{TERMINATED} terminated before it could stop gracefully."
)


def exit_code_of_signal(number: int, *, drained: bool = False) -> int:
    """Return the exit code of a command that a signal has ended.

    Who sends SIGTERM has asked for a good end; that is a success. Ctrl-C ends the script around
    the command, too, whatever came of it.
    """
    if number == signal.SIGTERM:
        return SUCCESS if drained else TERMINATED
    return INTERRUPTED


def exit_code_of(error: GearpyError) -> int:
    if isinstance(error, ConfigError | SubmitRefused):
        return WRONG_USE
    if isinstance(error, ConnectionLost | ProtocolError | AskTimeout):
        return NO_CLUSTER
    return FAILED
