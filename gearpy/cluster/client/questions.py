"""Questions about a cluster, which change nothing."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from gearpy.core.master.registry import TERMINAL
from gearpy.errors import ChangeForbidden, ProtocolError, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import GetSubmission, ListApplications, Refused
from gearpy.messages.metrics import GetMetrics, GetSeries, MetricsData, SeriesData, SeriesSpan
from gearpy.messages.question import Question, answer_of
from gearpy.messages.summaries import ApplicationSummary

_NAMES_SHOWN_MAX: Final = 10
A = TypeVar("A")


class ClusterQuestions:
    """Asks a master, and those who the master knows."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask = ask

    def ask(self, question: Question[A]) -> A:
        """Send a question and return its answer, of the kind that the question names.

        Raises:
            SubmitRefused: the answer is `Refused`; the docstring of the question says when.
            GearpyError: there is no cluster, or no answer in time.

        Example:
            .. code-block:: python

                from gearpy.messages.client import GetPlan

                print(client.ask(GetPlan(app_id=client.find("shop"))).text)
        """
        return self._expected(question, self._ask(question))

    def send(self, message: object) -> Any:
        """Send any message for clients and return its answer, of whatever kind, a `Refused` too.

        Raises:
            GearpyError: there is no cluster, or no answer in time.
        """
        return self._ask(message)

    # -- applications --------------------------------------------------------------------

    def applications(self) -> tuple[ApplicationSummary, ...]:
        """Return all applications, oldest first."""
        found = self.ask(ListApplications())
        applications = found.applications
        while found.more_from:
            found = self.ask(ListApplications(first=found.more_from))
            applications += found.applications
        return applications

    def find(self, text: str | None = None) -> AppId:
        """Return the id that ``text`` is, or that of the application of this name.

        Of several with that name, the one that lives, or else the newest; without a name the only
        one that lives.

        Raises:
            SubmitRefused: there is none.
        """
        if text is not None and text.isascii() and text.isdigit():
            return AppId(int(text))
        known = self.applications()
        if text is None:
            living = [each for each in known if each.status not in TERMINAL]
            if len(living) == 1:
                return living[0].app_id
            names = ", ".join(f"{each.name} ({each.app_id})" for each in living[-_NAMES_SHOWN_MAX:])
            raise SubmitRefused(f"which application: there are {names or 'none'}")
        named = [each for each in known if each.name == text]
        living = [each for each in named if each.status not in TERMINAL]
        if named:
            return (living or named)[-1].app_id
        there = [f"{each.name} ({each.app_id})" for each in known[-_NAMES_SHOWN_MAX:]]
        raise SubmitRefused(
            f"no application is called {text!r}; there are: {', '.join(there) or 'none'}"
        )

    def arguments(self, app_id: AppId) -> tuple[str, ...]:
        """Return the arguments of the program that an application runs now."""
        known = self.ask(GetSubmission(app_id=app_id))
        running = known.restarts_with or known.artifact
        return known.args if running is None else running.args

    # -- measurements --------------------------------------------------------------------

    def metrics(self, app_id: AppId, *, or_last: bool = False) -> MetricsData:
        """Return the newest measurements of all tasks and executors, and the last events."""
        first = GetMetrics(app_id=app_id, or_last=or_last)
        data = self.ask(first)
        tasks, more_from = [*data.tasks], data.more_from
        while more_from:
            page = self.ask(replace(first, first=more_from))
            tasks += page.tasks
            more_from = page.more_from
        return replace(data, tasks=tuple(tasks), more_from=0)

    def series(
        self,
        app_id: AppId,
        since_ms: int = 0,
        *,
        or_last: bool = False,
        within: SeriesSpan = "10m",
    ) -> SeriesData:
        """Return the last ten minutes of an application or more, or points after a wall time."""
        first = GetSeries(app_id=app_id, since_ms=since_ms, or_last=or_last, within=within)
        data = self.ask(first)
        processors, more_from = [*data.processors], data.more_from
        while more_from:
            page = self.ask(replace(first, first=more_from))
            if page.at_ms != data.at_ms:  # A point has come meanwhile.
                return self.series(app_id, since_ms, or_last=or_last, within=within)
            processors += page.processors
            more_from = page.more_from
        return replace(data, processors=tuple(processors), more_from=0)

    @staticmethod
    def _expected(question: Question[A], reply: object) -> A:
        if isinstance(reply, Refused):
            raise (ChangeForbidden if reply.is_forbidden else SubmitRefused)(reply.reason)
        if not isinstance(reply, answer_of(type(question))):
            name, answer = type(question).__name__, type(reply).__name__
            raise ProtocolError(f"{name} was answered with {answer}: is this a master?")
        return cast("A", reply)
