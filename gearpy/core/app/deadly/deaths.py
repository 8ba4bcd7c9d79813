"""Processes that die by themselves: at which place of the input, and what follows.

Regions with tasks in one process die together, so their sources are searched together.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from gearpy.core.app.deadly.probing import Part, Probing, Verdict
from gearpy.core.app.regions.region import Region
from gearpy.core.dag.graph import Dag
from gearpy.ids import ExecutorId, ProcessorId, TaskId
from gearpy.messages.app import SourceProbe, TaskClock
from gearpy.messages.summaries import ErrorCard

#: A process that somebody else has ended says nothing of the input; see `exit_cause`.
_BY_OTHERS: Final = re.compile(
    r"exited with code 1(30|37|43)\b|killed by signal (1|2|3|9|15)\b(?!: out of memory)"
)
_BY_ITSELF: Final = re.compile(r"exited with code |killed by signal ")
_SHOWN_MAX: Final = 3
#: So long after what is read a process may die of it, as it tells where each thread stood.
_DIES_WITHIN_MS: Final = 300


def died_by_itself(cause: str) -> bool:
    return _BY_ITSELF.match(cause) is not None and _BY_OTHERS.match(cause) is None


class Deaths:
    """Tells `Probing` of the deaths and epochs of the regions that it is about."""

    def __init__(
        self, dag: Dag, *, steps_over: bool, place_text: Callable[[str, bytes], str]
    ) -> None:
        self._dag = dag
        self._steps_over = steps_over
        self._place_text = place_text
        self._sources = {
            task for spec in dag.processors.values() if spec.replays for task in spec.tasks()
        }
        self._probing = Probing(steps_over=steps_over)
        self.regions: list[Region] = []  #: That had tasks in the process that died.
        self._judged: set[int | None] = set()  # Attempts, which die once.

    def judge(
        self,
        regions: Iterable[Region],
        executor_id: ExecutorId,
        launch: int,
        cause: str,
        now_ms: int,
    ) -> Verdict:
        hit = [
            each
            for each in regions
            if each.launches.get(executor_id) == launch and each.made_at_ms > 0 and self._of(each)
            if each.attempt not in self._judged
        ]
        if not hit:
            return "restart"
        if not died_by_itself(cause):  # Nobody may know so far; see `Recovery`.
            is_searched = any(each in self.regions for each in hit)
            return "search" if is_searched and self._probing.goes_on() else "restart"
        if not self._probing.is_searching and hit != self.regions:
            self._probing, self.regions = Probing(steps_over=self._steps_over), hit
        elif not any(each in self.regions for each in hit):
            return "restart"
        self._judged = {each.attempt for each in self.regions}
        first = cause.partition("\n")[0]
        lived_ms = now_ms - max(each.made_at_ms for each in hit)
        return self._probing.on_death(self._place(), self._epochs, first, now_ms, lived_ms)

    def on_epoch(self, region: Region, now_ms: int) -> list[Region]:
        if not self._probing.is_searching or region not in self.regions:
            return []
        begins_again = self._probing.on_epoch(self._place(), self._epochs, now_ms)
        if self._probing.is_slow(self._epochs):
            region.epochs.first_end_ms = now_ms + _DIES_WITHIN_MS
        return self.regions if begins_again else []

    def orders(self, region: Region) -> tuple[SourceProbe, ...]:
        return self._probing.orders(self._of(region)) if region in self.regions else ()

    def told(
        self, error: ErrorCard, verdict: Verdict, reports: Mapping[TaskId, TaskClock]
    ) -> ErrorCard:
        places = [*self._places(reports)]
        more = f"; and {len(places) - _SHOWN_MAX} others" if len(places) > _SHOWN_MAX else ""
        if verdict == "search":
            follows = self._probing.text
        elif self._probing.why_stopped:
            follows = f"the input cannot be stepped over: {self._probing.why_stopped}"
        else:
            follows = (
                "another restart would not help: set application.on-error to 'quarantine', to have "
                "the record found and put aside"
            )
        head, line, tail = error.cause.partition("\n")
        where = "; ".join(places[:_SHOWN_MAX]) + more
        return replace(
            error, cause=f"{head}, again at one place of its input: {where}; {follows}{line}{tail}"
        )

    def _of(self, region: Region) -> list[TaskId]:
        return [task for task in region.placement if task in self._sources]

    @property
    def _epochs(self) -> int:
        return max((each.epochs.stored for each in self.regions), default=0)

    def _place(self) -> dict[Part, bytes]:
        newest = [each.history.newest for each in self.regions]
        return {
            (task.task_id, name): data
            for manifest in newest
            if manifest is not None
            for task in manifest.offsets
            if task.task_id in self._sources
            for name, data in task.offsets.items()
            if data
        }

    def _places(self, reports: Mapping[TaskId, TaskClock]) -> Iterator[str]:
        place = self._place()
        for region in self.regions:
            for pid in sorted({task.processor for task in self._of(region)}):
                spec = self._dag.processors[ProcessorId(pid)]
                at = {part: data for part, data in place.items() if part[0].processor == pid}
                if not at and region.history.newest is None:
                    names = json.loads(spec.partitions) if spec.partitions[:1] == "[" else []
                    of = f" of {', '.join(names[:_SHOWN_MAX])}" if names else ""
                    yield f"{spec.name} reads on from the beginning{of}"
                for (task, name), data in sorted(at.items()):
                    report = reports.get(task)
                    told = ""
                    if report is not None and report.done:
                        told = f" ({report.done:,} of {report.total:,} by its last report)"
                    yield f"{spec.name} reads on from {self._place_text(name, data)}{told}"
