"""A change of an application that runs: its plan, and whether it stays."""

from collections.abc import Callable
from typing import TypeAlias

from gearpy.errors import ChangeFailed, ConfigError
from gearpy.messages.client import UpdatePlanned, VersionSummary
from gearpy.views.changes import plan_lines

#: Waits for a version of this number, so many seconds; returns how it is then.
WaitForVersion: TypeAlias = Callable[[int, float | None], VersionSummary]


class AskedChange:
    """A change of an application that runs; made by `RunningApplication.update` and others.

    Attributes:
        plan: the number of the new version, and what becomes of the state of each step.

    Args:
        name: of the application.
        wait_for_version: tells how the new version is; None if it was only planned.
    """

    def __init__(
        self, name: str, plan: UpdatePlanned, wait_for_version: WaitForVersion | None
    ) -> None:
        self.plan = plan
        self._name = name
        self._wait_for_version = wait_for_version

    def wait(self, timeout_s: float | None = None) -> VersionSummary:
        """Wait until the new version stays; returns at the time-out, too, while it is on trial.

        Args:
            timeout_s: how many seconds to wait; without it, for as long as it takes.

        Raises:
            ChangeFailed: it was given up, or has failed in its trial; the version before goes on.
            ConfigError: it was only planned.
            SubmitRefused: the application has ended meanwhile.
        """
        if self._wait_for_version is None:
            raise ConfigError("this change was only planned: ask for it without dry_run=True")
        outcome = self._wait_for_version(self.plan.version, timeout_s)
        if outcome.state == "failed":
            raise ChangeFailed(self._name, outcome.number, outcome.reason)
        return outcome

    def __str__(self) -> str:
        return "\n".join(plan_lines(self.plan))
