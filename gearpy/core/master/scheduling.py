"""Requests for slots, and the workers that have them. Gearpump: `PriorityScheduler`."""

from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from gearpy.core.master.placing import Offer, PlacingPolicy, SpreadPolicy
from gearpy.core.master.quotas import NO_QUOTAS, Quotas
from gearpy.core.master.requests import Relaxation, ResourceRequest
from gearpy.core.master.slots import Grant, HeldSlots, Reservations, SlotLedger, WorkerSlots
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


class SlotScheduler:
    """Gives slots of workers to requests: restarts first, then as a policy says, then older first.

    A request that does not fit holds up no other, but slots that a restart waits for are kept from
    first starts. A granted slot is taken in the ledger at once.

    Invariant: no more slots are granted than a worker has free; a request waits only while its
    parts fit nowhere beside what is kept for others. A restart for which some worker is big enough
    is served in the end. A first start takes nobody beyond a quota.
    """

    def __init__(
        self,
        ledger: SlotLedger,
        *,
        reserve_ms: int = 120_000,
        policy: PlacingPolicy | None = None,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._ledger = ledger
        self._policy = policy or SpreadPolicy()
        self._quotas = quotas
        self._reservations = Reservations(timeout_ms=reserve_ms)
        self._expected: set[AppId] = set()
        self._totals: dict[AppId, int] = {}  # App masters have said so here.
        self._lines = WaitingLines()
        self._changes = 0  # It counts changes of requests and reservations.
        self._held_at: dict[bool, tuple[tuple[int, int], HeldSlots]] = {}

    def workers(self) -> dict[WorkerId, WorkerSlots]:
        return dict(sorted(self._ledger.workers.items()))

    def request(self, request: ResourceRequest) -> None:
        """Queue a request; `allocate` serves it.

        App masters that want the same are alike. All other requests depend on what their
        applications have.
        """
        self._changes += 1
        has_kept = self._reservations.slots_of(request.app_id) > 0
        is_alone = has_kept or not request.is_for_app_master
        self._lines.add(request, self._policy.order(request), is_alone=is_alone)

    def cancel(self, app_id: AppId) -> None:
        self._changes += 1
        self._lines.cancel(app_id)

    def waiting_slots(self, app_id: AppId) -> int:
        return sum(sum(each.parts) for each in self._lines.of(app_id))

    def missing(self, worker_slots: int) -> int:
        """Return the slots that are waited for, and that further workers of this size would have.

        They cannot help a request for certain workers, one that waits for a quota, or an executor
        that is bigger than they are.
        """
        missing = 0
        for waiting in self._lines:
            request, wanted = waiting.request, sum(waiting.parts)
            if request.worker_id is not None or request.hosts or self._lacks_quota(waiting):
                continue
            if request.is_divisible:
                missing += wanted
            elif _is_whole(request):
                if wanted <= worker_slots and not self._ledger.workers_of(request.app_id):
                    missing += wanted
            else:
                missing += sum(part for part in waiting.parts if part <= worker_slots)
        return missing

    def why_waiting(self, app_id: AppId) -> str | None:
        """Return the reason why an application's oldest request waits; None if it has all."""
        waiting = min(self._lines.of(app_id), key=lambda each: each.rank, default=None)
        if waiting is None:
            return None
        request, candidates = waiting.request, self._candidates(waiting.request)
        if request.hosts and not candidates:
            return f"needs a worker on {' or '.join(request.hosts)}, and there is none"
        biggest = max((worker.total for worker in candidates.values()), default=0)
        part = sum(waiting.parts) if _is_whole(request) else waiting.parts[0]
        if part > biggest and not request.is_divisible:
            return (
                f"needs {part} slots on one worker, but the biggest it may use has {biggest}: "
                "ask for more executors, fewer slots, or start a bigger worker"
            )
        if lacks := self._lacks_quota(waiting):
            return lacks
        free = sum(worker.free for worker in candidates.values())
        text = f"needs {sum(waiting.parts)} more slots, {free} are free on the workers it may use"
        most = max((worker.free for worker in candidates.values()), default=0)
        if not request.is_divisible and most < part <= free:
            text += f"; {part} of them it needs on one worker, where {most} at most are free"
        workers = self._ledger.workers
        kept = sum(workers[each].free for each in candidates)
        if not self._expected or request.is_restart:
            held = self._held(is_restart=request.is_restart)
            kept -= sum(held.room(each, request.app_id) for each in candidates)
        if kept:
            text += f", {kept} of them kept for applications that have lost theirs"
        if aside := [each for each, worker in candidates.items() if worker.is_aside]:
            names = ", ".join(f"worker {each}" for each in sorted(aside))
            text += f"; nothing starts on {names} until it stays: it was lost again and again"
        return text

    def _lacks_quota(self, waiting: Waiting) -> str:
        request = waiting.request
        user, left = self._quotas.user_of(request.app_id), self._quota_left(request)
        is_granted_whole = request.is_divisible or _is_whole(request)
        needs = sum(waiting.parts) if is_granted_whole else waiting.parts[-1]
        if left is None or needs <= left:
            return ""
        limit = self._quotas.limit(user)
        return (
            f"needs {sum(waiting.parts)} more slots, {max(0, left)} are left of the {limit} that "
            f"{user or 'its user'} may have (master.quotas)"
        )

    def on_lost(self, had: Grant, now_ms: int) -> None:
        """Keep the slots of an executor that has ended, or was not begun, for its application.

        As far as it needs them, see `on_total`.
        """
        self._changes += 1
        self._lines.set_apart(had.app_id)
        slots = had.slots
        if not had.is_for_app_master and had.app_id in self._totals:
            # It may have got others for an executor that it could not reach before that has
            # ended. Its own app master might find no room beside what it does not need.
            has = self._ledger.taken()[had.app_id] + self._reservations.of_executors(had.app_id)
            slots = min(slots, max(0, self._totals[had.app_id] - has))
        if slots:
            self._reservations.on_lost(had._replace(slots=slots), now_ms)

    def on_total(self, app_id: AppId, slots: int) -> None:
        self._totals[app_id] = slots

    def kept_slots(self, app_id: AppId) -> int:
        return self._reservations.slots_of(app_id)

    def on_regained(self, grant: Grant) -> None:
        self._changes += 1
        self._reservations.on_granted(grant)

    def on_application_over(self, app_id: AppId) -> None:
        self.cancel(app_id)
        self._reservations.on_application_over(app_id)
        self._totals.pop(app_id, None)
        self._expected.discard(app_id)

    def expect(self, app_id: AppId) -> None:
        """Let first starts wait until the needs of a restarted application are known."""
        self._expected.add(app_id)

    def on_heard(self, app_id: AppId) -> bool:
        was_expected = app_id in self._expected
        self._expected.discard(app_id)
        return was_expected and not self._expected

    @property
    def next_due_ms(self) -> int | None:
        return self._reservations.next_due_ms

    def on_tick(self, now_ms: int) -> None:
        self._changes += 1
        self._reservations.on_tick(now_ms)

    def allocate(self, now_ms: int) -> list[Grant]:
        grants: list[Grant] = []
        stopped: set[str] = set()  # Users whose requests wait for a quota.
        for waiting in self._lines.in_turn():
            is_restart = waiting.request.is_restart
            if self._expected and not is_restart:
                break  # These come last.
            left = self._quota_left(waiting.request)
            is_first = True
            if left is not None:
                user = self._quotas.user_of(waiting.request.app_id)
                is_first = user not in stopped
                if sum(waiting.parts) > left:
                    stopped.add(user)
            if is_first:
                grants += self._serve(waiting, self._held(is_restart=is_restart), now_ms)
        return grants

    def _quota_left(self, request: ResourceRequest) -> int | None:
        if request.is_restart or request.is_for_app_master or not self._quotas:
            return None
        user = self._quotas.user_of(request.app_id)
        limit = self._quotas.limit(user)
        if limit is None:
            return None
        taken = self._ledger.taken() + self._reservations.taken(apart=request.app_id)
        return limit - self._quotas.used(user, taken)

    def _serve(self, waiting: Waiting, held: HeldSlots, now_ms: int) -> list[Grant]:
        request = waiting.request
        quota = self._quota_left(request)
        if quota is None:
            quota = sum(waiting.parts)
        if request.is_divisible or _is_whole(request):
            if sum(waiting.parts) > quota:
                return []
            serve = self._serve_divided if request.is_divisible else self._serve_on_one
            return serve(waiting, held, now_ms)
        grants: list[Grant] = []
        left: list[int] = []
        for part in waiting.parts:
            worker_id = self._best_worker(waiting, part, held) if part <= quota else None
            if worker_id is None:
                left.append(part)
                continue
            quota -= part
            grants.append(self._grant(request, worker_id, part, now_ms))
            waiting.granted[worker_id] += 1
        waiting.parts = left
        return grants

    def _serve_on_one(self, waiting: Waiting, held: HeldSlots, now_ms: int) -> list[Grant]:
        parts, request = waiting.parts, waiting.request
        worker_id = self._best_worker(waiting, sum(parts), held)
        if worker_id is None:
            return []
        waiting.parts = []
        return [self._grant(request, worker_id, part, now_ms) for part in parts]

    def _serve_divided(self, waiting: Waiting, held: HeldSlots, now_ms: int) -> list[Grant]:
        request, (left,) = waiting.request, waiting.parts
        room = self._room(request, held, at_least=1)
        if sum(room.values()) < left:
            return []
        if any(slots >= left for slots in room.values()):
            return self._serve_on_one(waiting, held, now_ms)
        waiting.parts = []
        grants: list[Grant] = []
        for worker_id in sorted(room, key=lambda each: (-room[each], each)):
            if part := min(left, room[worker_id]):
                grants.append(self._grant(request, worker_id, part, now_ms))
                left -= part
        return grants

    def _room(
        self, request: ResourceRequest, held: HeldSlots, *, at_least: int
    ) -> dict[WorkerId, int]:
        room = {
            worker_id: held.room(worker_id, request.app_id)
            for worker_id, each in self._candidates(request).items()
            if each.free >= at_least
        }
        return {worker_id: slots for worker_id, slots in room.items() if slots >= at_least}

    def _grant(
        self, request: ResourceRequest, worker_id: WorkerId, slots: int, now_ms: int
    ) -> Grant:
        grant = Grant(
            request.app_id,
            request.launch,
            worker_id,
            slots,
            request.is_for_app_master,
            request.named,
        )
        self._changes += 1
        self._ledger.on_granted(grant, now_ms)
        self._reservations.on_granted(grant)
        return grant

    def _best_worker(self, waiting: Waiting, slots: int, held: HeldSlots) -> WorkerId | None:
        """Return the worker with room enough that the policy likes best; then the lowest id.

        What is kept for another executor of the same application it gets last, and an app master
        not at all: executors that then find no room of their size would be waited for without end.
        """
        request = waiting.request
        room = self._room(request, held, at_least=slots)
        spare = {each: held.spare(each, request.app_id, slots) for each in room}
        return min(
            (each for each in room if spare[each] >= slots or not request.is_for_app_master),
            key=lambda worker: (
                spare[worker] < slots,
                worker == request.avoid,
                not self._ledger.workers[worker].place.is_one_of(request.near),
                self._policy.rank(request, self._offer(waiting, worker, room[worker])),
                worker,
            ),
            default=None,
        )

    def _offer(self, waiting: Waiting, worker_id: WorkerId, room: int) -> Offer:
        workers = self._ledger.workers
        worker, own = workers[worker_id], waiting.granted[worker_id]
        host, granted = worker.place.host, waiting.granted.items()
        on_host = sum(
            count for each, count in granted if each in workers and workers[each].place.host == host
        )
        return Offer(
            worker_id,
            worker.place,
            room=room,
            used=worker.used,
            on_host=on_host if host else own,
            on_worker=own,
        )

    def _held(self, *, is_restart: bool) -> HeldSlots:
        now = self._changes, self._ledger.changes
        known = self._held_at.get(is_restart)
        if known is not None and known[0] == now:
            return known[1]
        held = self._reservations.held(self._ledger.workers)
        if not is_restart:
            for waiting in self._lines.restarts():
                self._hold(held, waiting)
        self._held_at[is_restart] = now, held
        return held

    def _hold(self, held: HeldSlots, waiting: Waiting) -> None:
        """Hold the slots that a restart waits for, beside those reserved for its application."""
        request, among = waiting.request, self._candidates(waiting.request)
        reserved = self._reservations.slots_of(request.app_id)
        if request.is_divisible:
            held.hold_anywhere(request.app_id, max(0, sum(waiting.parts) - reserved), among)
            return
        for part in [sum(waiting.parts)] if _is_whole(request) else waiting.parts:
            if reserved >= part:  # It waits for its own to become free, or to have a worker again.
                reserved -= part
            elif request.worker_id is not None:
                held.hold(request.worker_id, request.app_id, part)
            else:
                held.hold_somewhere(request.app_id, part, among)

    def _candidates(self, request: ResourceRequest) -> Mapping[WorkerId, WorkerSlots]:
        """Return the workers that a request may use.

        With `Relaxation.ONE_WORKER` the one where the application is, if it is anywhere.
        """
        workers = self._ledger.workers
        if request.worker_id is not None:
            named = workers.get(request.worker_id)
            workers = {} if named is None else {request.worker_id: named}
        if request.hosts:
            there = (each for each in workers if workers[each].place.is_one_of(request.hosts))
            workers = {each: workers[each] for each in there}
        if _is_whole(request) and (home := self._ledger.workers_of(request.app_id)):
            workers = {each: workers[each] for each in home if each in workers}
        return workers


def _is_whole(request: ResourceRequest) -> bool:
    return request.relaxation is Relaxation.ONE_WORKER
