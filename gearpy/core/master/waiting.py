"""The requests that wait for slots, in their order, and which of them are alike."""

from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from gearpy.core.master.requests import ResourceRequest
from gearpy.ids import AppId, WorkerId

#: The place of a request: restarts first, then by a policy's order, then the older.
Rank: TypeAlias = tuple[bool, tuple[int, ...], int]


@dataclass(slots=True, eq=False)
class Waiting:
    """A request and the parts of it that were not granted yet."""

    request: ResourceRequest
    rank: Rank
    line: Hashable
    parts: list[int]
    granted: Counter[WorkerId] = field(default_factory=Counter)


class WaitingLines:
    """Requests in lines: those of one line are alike, so that where one waits, all behind it do.

    Invariant: the requests of a line are in order; a line is never empty.
    """

    def __init__(self) -> None:
        self._lines: dict[Hashable, OrderedDict[int, Waiting]] = {}
        self._by_app: dict[AppId, dict[int, Waiting]] = {}
        self._number = 0

    def __iter__(self) -> Iterator[Waiting]:
        for line in self._lines.values():
            yield from line.values()

    def of(self, app_id: AppId) -> Collection[Waiting]:
        return self._by_app.get(app_id, {}).values()

    def restarts(self) -> list[Waiting]:
        lines = (line for line in self._lines.values() if _first(line).request.is_restart)
        waiting = (each for line in lines for each in line.values())
        return sorted(waiting, key=lambda each: each.rank)

    def in_turn(self) -> Iterator[Waiting]:
        """Yield the first request of each line, in order, and the next one of it if that got all.

        The caller takes what was granted from ``parts``.
        """
        heads = [(_first(line).rank, key) for key, line in self._lines.items()]
        heapify(heads)
        while heads:
            _, key = heappop(heads)
            waiting = _first(self._lines[key])
            yield waiting
            if not waiting.parts:
                self._remove(waiting)
                if key in self._lines:
                    heappush(heads, (_first(self._lines[key]).rank, key))

    def add(self, request: ResourceRequest, order: tuple[int, ...], *, is_alone: bool) -> None:
        self._number += 1
        rank = (not request.is_restart, order, self._number)
        line: Hashable = self._number
        if not is_alone:
            place = request.relaxation, request.worker_id, request.hosts
            what = request.slots, request.is_for_app_master
            line = (request.is_restart, order, *what, place)
        self._put(Waiting(request, rank, line, request.parts()))

    def set_apart(self, app_id: AppId) -> None:
        for waiting in list(self.of(app_id)):
            self._remove(waiting)
            waiting.line = waiting.rank[-1]
            self._put(waiting)

    def cancel(self, app_id: AppId) -> None:
        for waiting in list(self.of(app_id)):
            self._remove(waiting)

    def _put(self, waiting: Waiting) -> None:
        number = waiting.rank[-1]
        self._lines.setdefault(waiting.line, OrderedDict())[number] = waiting
        self._by_app.setdefault(waiting.request.app_id, {})[number] = waiting

    def _remove(self, waiting: Waiting) -> None:
        number, app_id = waiting.rank[-1], waiting.request.app_id
        line, own = self._lines[waiting.line], self._by_app[app_id]
        del line[number], own[number]
        if not line:
            del self._lines[waiting.line]
        if not own:
            del self._by_app[app_id]


def _first(line: "OrderedDict[int, Waiting]") -> Waiting:
    return next(iter(line.values()))
