"""What a program uses to reach a cluster: submit, list, wait, stop."""

import getpass
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from gearpy.errors import ApplicationFailed, GearpyError, OperatorError, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.cluster import (
    ApplicationList,
    ApplicationSummary,
    Artifact,
    ErrorCard,
    GetApplication,
    ListApplications,
    ListWorkers,
    MasterMessage,
    Refused,
    ShutdownAccepted,
    ShutdownApplication,
    SubmitApplication,
    Submitted,
    WorkerList,
    WorkerSummary,
)

__all__ = ["ClusterClient", "RunningApplication", "error_of"]

_POLL_S: Final = 0.05
T = TypeVar("T")


class ClusterClient:
    """Talks to a master. Gearpump: `ClientContext`.

    Args:
        ask: sends a message and returns the answer; raises `GearpyError` when there is none.
    """

    def __init__(self, ask: Callable[[MasterMessage], Any]) -> None:
        self._ask = ask

    def submit(
        self,
        name: str,
        artifact: Artifact,
        *,
        executors: int = 1,
        config: Mapping[str, str] | None = None,
    ) -> "RunningApplication":
        """Start an application.

        Raises:
            SubmitRefused: the name is taken or malformed.
        """
        message = SubmitApplication(
            name=name,
            artifact=artifact,
            executors=executors,
            config=dict(config or {}),
            user=_user(),
        )
        submitted = self._expect(Submitted, message)
        return RunningApplication(self, submitted.app_id, name)

    def applications(self) -> tuple[ApplicationSummary, ...]:
        """Return all applications, oldest first."""
        return self._expect(ApplicationList, ListApplications()).applications

    def application(self, app_id: AppId) -> ApplicationSummary:
        """Return one application.

        Raises:
            SubmitRefused: there is none with this id.
        """
        return self._expect(ApplicationSummary, GetApplication(app_id=app_id))

    def workers(self) -> tuple[WorkerSummary, ...]:
        """Return all workers."""
        return self._expect(WorkerList, ListWorkers()).workers

    def shutdown(self, app_id: AppId) -> None:
        """Stop an application.

        Raises:
            SubmitRefused: there is none with this id, or it has ended.
        """
        self._expect(ShutdownAccepted, ShutdownApplication(app_id=app_id))

    def _expect(self, kind: type[T], message: MasterMessage) -> T:
        reply = self._ask(message)
        if isinstance(reply, Refused):
            raise SubmitRefused(reply.reason)
        assert isinstance(reply, kind), reply
        return reply


class RunningApplication:
    """An application that was submitted. Gearpump: `RunningApplication`."""

    def __init__(self, client: ClusterClient, app_id: AppId, name: str) -> None:
        self._client = client
        self.app_id = app_id
        self.name = name

    def summary(self) -> ApplicationSummary:
        """Ask how it is."""
        return self._client.application(self.app_id)

    def shutdown(self) -> None:
        """Stop it."""
        self._client.shutdown(self.app_id)

    def wait(
        self,
        timeout_s: float | None = None,
        *,
        on_progress: Callable[[ApplicationSummary], None] | None = None,
    ) -> ApplicationSummary:
        """Wait for the end; returns at the time-out, too, with the status at that time.

        Raises:
            OperatorError: user code raised.
            ApplicationFailed: it failed in another way.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            summary = self.summary()
            if on_progress is not None:
                on_progress(summary)
            if summary.status == "failed":
                raise error_of(summary)
            ended = summary.status not in ("pending", "active")
            if ended or (deadline is not None and time.monotonic() >= deadline):
                return summary
            time.sleep(_POLL_S)


def error_of(summary: ApplicationSummary) -> GearpyError:
    """Return the exception that says why an application failed."""
    card = summary.cause or ErrorCard(cause="no cause is known")
    if not card.operator:
        return ApplicationFailed(summary.name, card.cause)
    return OperatorError(
        operator=card.operator,
        cause=card.cause,
        source=card.source,
        source_line=card.source_line,
        record=card.record,
        event_time_ms=card.event_time_ms,
        traceback=card.traceback,
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
