"""The master's applications and the states they go through. Gearpump: `AppManager`."""

import re
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from gearpy.errors import SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import SubmitApplication
from gearpy.messages.summaries import (
    ApplicationProgress,
    ApplicationStatus,
    ApplicationSummary,
    ErrorCard,
)

ApplicationEvent: TypeAlias = Literal["ready", "ended", "failed", "shut-down", "interrupted"]

#: The whole life of an application. Gearpump: `ApplicationStatus.canTransitTo`.
TRANSITIONS: Final[Mapping[tuple[ApplicationStatus, ApplicationEvent], ApplicationStatus]] = {
    ("pending", "ready"): "active",
    ("pending", "ended"): "succeeded",
    ("pending", "failed"): "failed",
    ("pending", "shut-down"): "terminated",
    ("pending", "interrupted"): "pending",
    ("active", "ended"): "succeeded",
    ("active", "failed"): "failed",
    ("active", "shut-down"): "terminated",
    ("active", "interrupted"): "pending",
}

#: States that no event leads out of.
TERMINAL: Final[frozenset[ApplicationStatus]] = frozenset({"succeeded", "failed", "terminated"})

_EVENT_OF: Final[Mapping[ApplicationStatus, ApplicationEvent]] = {
    "pending": "interrupted",
    "active": "ready",
    "succeeded": "ended",
    "failed": "failed",
    "terminated": "shut-down",
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_NAME_CHARS_MAX: Final = 128


def is_legal(old: ApplicationStatus, new: ApplicationStatus) -> bool:
    return TRANSITIONS.get((old, _EVENT_OF[new])) == new


class Registry:
    """Every application that the master knows, from submission to long after its end.

    Invariant: ids count up and are never used again; among the living (pending or active)
    no two have one name; a terminal state, its time and its cause never change.
    """

    def __init__(
        self, *, next_id: int = 1, applications: Iterable[ApplicationSummary] = ()
    ) -> None:
        self.next_id = next_id
        self._applications = {each.app_id: each for each in applications}
        known = self._applications.values()
        self._living = {each.name: each.app_id for each in known if each.status not in TERMINAL}
        #: A heap by time; with some that are forgotten.
        self._ended = [(each.finished_ms, each.app_id) for each in known if each.status in TERMINAL]
        heapify(self._ended)

    def submit(self, request: SubmitApplication, now_ms: int) -> AppId:
        if refusal := self.refusal_of(request):
            raise SubmitRefused(refusal)
        app_id = AppId(self.next_id)
        self.next_id += 1
        self._applications[app_id] = ApplicationSummary(
            app_id=app_id,
            name=request.name,
            status="pending",
            user=request.user,
            submitted_ms=now_ms,
        )
        self._living[request.name] = app_id
        return app_id

    def on_status(
        self,
        app_id: AppId,
        status: ApplicationStatus,
        *,
        progress: ApplicationProgress | None = None,
        cause: ErrorCard | None = None,
        now_ms: int,
    ) -> bool:
        """Take the report of an app master; return whether the state has changed.

        ``pending`` means that the app master is lost and will be started again, or that the
        application waits for slots that it has lost. A report
        that repeats the state only brings progress; one that may not follow is ignored.
        """
        old = self._applications.get(app_id)
        if old is None or old.status in TERMINAL:
            return False
        reported = progress or old.progress
        if not is_legal(old.status, status) or old.status == status:
            self._applications[app_id] = replace(old, progress=reported)
            return False
        is_first_start = status == "active" and not old.started_ms
        new = self._applications[app_id] = replace(
            old,
            status=status,
            progress=reported,
            cause=cause if status == "failed" else None,
            started_ms=now_ms if is_first_start else old.started_ms,
            finished_ms=now_ms if status in TERMINAL else 0,
        )
        if status in TERMINAL:
            del self._living[old.name]
            heappush(self._ended, (new.finished_ms, new.app_id))
        return True

    def on_progress(self, app_id: AppId, progress: ApplicationProgress) -> None:
        old = self._applications.get(app_id)
        if old is not None and old.status not in TERMINAL:
            self._applications[app_id] = replace(old, progress=progress)

    def forget(self, app_id: AppId) -> None:
        old = self._applications.pop(app_id)
        assert old.status in TERMINAL, f"application {app_id} is {old.status}"

    def shutdown(self, app_id: AppId, now_ms: int) -> bool:
        return self.on_status(app_id, "terminated", now_ms=now_ms)

    def get(self, app_id: AppId) -> ApplicationSummary | None:
        return self._applications.get(app_id)

    def living(self, name: str) -> ApplicationSummary | None:
        app_id = self._living.get(name)
        return None if app_id is None else self._applications[app_id]

    @property
    def ended_count(self) -> int:
        return len(self._applications) - len(self._living)

    def oldest_ended(self) -> AppId | None:
        while self._ended and self._ended[0][1] not in self._applications:
            heappop(self._ended)
        return self._ended[0][1] if self._ended else None

    def summaries(self) -> tuple[ApplicationSummary, ...]:
        return tuple(self._applications.values())

    def refusal_of(self, request: SubmitApplication, *, instead_of: AppId | None = None) -> str:
        """Return the reason to refuse an application, or nothing; the name of one is free."""
        name = request.name
        if not _NAME.fullmatch(name) or len(name) > _NAME_CHARS_MAX:
            return (
                f"application name {name[:_NAME_CHARS_MAX]!r} is not allowed: begin with a letter "
                "or underscore, go on with letters, digits, underscores, dashes or dots, "
                f"{_NAME_CHARS_MAX} characters at most"
            )
        if request.executors < 0:
            return (
                f"application {name!r} asks for {request.executors} executors: ask for 1 or more, "
                "or for 0, which is as few as there is room for"
            )
        other = self.living(name)
        if other is not None and other.app_id != instead_of:
            return (
                f"application {name!r} is already {other.status} with id {other.app_id}: "
                "stop it first or choose another name"
            )
        return ""
