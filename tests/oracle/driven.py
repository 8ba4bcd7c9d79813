"""Runs of programs that a `FlowDriver` feeds step by step, compared with the definition."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

from gearpy.connectors.memory import to_list
from gearpy.dsl.application import StreamApp
from gearpy.dsl.streams.stream import Stream
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Message
from gearpy.task.stages.plan import physical_plan
from gearpy.testing.driver import FlowDriver
from gearpy.testing.manual_source import ManualSource
from tests.oracle.joins import Side, accepted, joined
from tests.oracle.programs import (
    JoinProgram,
    Shown,
    WindowProgram,
    changed,
    joined_stream,
    key_of,
    plain,
    value_of,
    windowed_stream,
)
from tests.oracle.streams import End, Idle, Promise, Records, Step, Tick
from tests.oracle.windows import Arrival, Firing, WindowPlan, WindowReplay

#: When a simulation begins. What settles takes some ms, so no time that matters is near others.
_WALL_MS: Final = 1_000_000
_BLUR_MS: Final = 1000


class SharedClock:
    """How far event time is behind several sources: the least that those promise that matter.

    Where all that have not ended are idle, it is the most that they have promised.
    """

    def __init__(self, sources: int) -> None:
        self.now_ms = MIN_MS
        self._promised = [MIN_MS] * sources
        self._silent: set[int] = set()

    def on_step(self, step: Step) -> int:
        """Take a step; return the watermark behind it."""
        match step:
            case Records():
                self._silent.discard(step.source)
            case Promise():
                self._promised[step.source] = max(self._promised[step.source], step.time_ms)
            case Idle():
                self._silent.add(step.source)
            case End():
                self._promised[step.source] = MAX_MS
                self._silent.add(step.source)
            case Tick():
                pass
        known = [ms for at, ms in enumerate(self._promised) if at not in self._silent]
        idle = [ms for ms in self._promised if ms < MAX_MS]
        self.now_ms = max(self.now_ms, min(known, default=max(idle, default=MAX_MS)))
        return self.now_ms

    def promised_ms(self, source: int) -> int:
        return self._promised[source]


def waits_for_order(app: StreamApp) -> bool:
    """Tell whether some step gets its records in the order of event time."""
    processors = physical_plan(app.build()).processors
    return any(step.order == "event time" for each in processors for step in each.steps)


class _Driven:
    def __init__(self, sources: int) -> None:
        self.app = StreamApp("oracle")
        self.sources = [ManualSource(f"source-{number}") for number in range(sources)]
        self.results: list[Message] = []
        self.late: list[Any] = []
        self.flow: FlowDriver | None = None

    def read(self, at: int) -> Stream[Any]:
        return self.app.read(self.sources[at], parallelism=1)

    def start(self) -> None:
        self.flow = FlowDriver(self.app)

    def do(self, step: Step) -> list[Message]:
        assert self.flow is not None
        match step:
            case Records():
                self.flow.send_all(
                    self.sources[step.source], *(Message(row, row["t"]) for row in step.rows)
                )
            case Promise():
                self.flow.watermark(self.sources[step.source], step.time_ms)
            case Idle():
                self.flow.idle(self.sources[step.source])
            case Tick():
                self.flow.advance(f"{step.duration_ms}ms")
            case End():
                self.flow.end(self.sources[step.source])
        results = list(self.results)
        self.results.clear()
        return results

    def end_problem(self, late: Sequence[Arrival], *, is_aside: bool) -> str:
        """Stop; return what is wrong with the late records, or nothing."""
        assert self.flow is not None
        if self.flow.late_records != len(late):
            return f"{self.flow.late_records} records were counted as late, not {len(late)}"
        aside = difference(map(plain, self.late), (plain(each.row) for each in late if is_aside))
        self.flow.stop()
        return aside and f"late records set aside: {aside}"


def driven_windows_problem(program: WindowProgram, steps: Sequence[Step]) -> str:
    driven = _Driven(program.sources)
    streams = [driven.read(at) for at in range(program.sources)]
    stream = streams[0].merge(*streams[1:]) if len(streams) > 1 else streams[0]
    windows = windowed_stream(program, stream)
    windows.write(to_list(driven.results, messages=True))
    if program.plan.policy == "side":
        windows.late.write(to_list(driven.late))
    driven.start()
    expected = Expected(program, is_ordered=waits_for_order(driven.app))
    for number, step in enumerate(steps):
        wanted = [_wanted(program, firing) for firing in expected.on_step(step)]
        shown = [_shown(program, message) for message in driven.do(step)]
        if problem := _step_problem(program, step, shown, wanted):
            return f"step {number}, {type(step).__name__}: {problem}"
    return driven.end_problem(expected.replay.late, is_aside=program.plan.policy == "side")


class Expected:
    def __init__(self, program: WindowProgram, *, is_ordered: bool) -> None:
        self._program = program
        self._is_ordered = is_ordered
        self._is_by_event = program.plan.clock == "event"
        self._waiting: list[tuple[int, int, int, Any]] = []  # Place, source, number, row.
        self._number = 0
        self._wall_ms = _WALL_MS
        self.replay = WindowReplay(program.plan, _WALL_MS)
        self._clock = SharedClock(program.sources)

    def on_step(self, step: Step) -> list[Firing]:
        fired: list[Firing] = []
        if isinstance(step, Records):
            for row in (row for given in step.rows for row in changed(self._program, given)):
                if not self._waits(step.source, row):
                    fired += self._on_record(row)
        if isinstance(step, Tick):
            self._wall_ms += step.duration_ms
            fired += self.replay.on_wall(self._wall_ms)
        watermark_ms = self._clock.on_step(step)
        return [*fired, *self._on_due(watermark_ms), *self.replay.on_watermark(watermark_ms)]

    def _on_record(self, row: Any) -> list[Firing]:
        return self.replay.on_record(key_of(self._program, row), row, row["t"])

    def _waits(self, source: int, row: Any) -> bool:
        """Let a record wait that is late, or any where their order counts."""
        promised_ms = self._clock.promised_ms(source)
        is_late = row["t"] < promised_ms
        if not (self._is_by_event and (is_late or (self._is_ordered and promised_ms > MIN_MS))):
            return False
        self._number += 1
        self._waiting.append((max(row["t"], promised_ms), source, self._number, row))
        return True

    def _on_due(self, watermark_ms: int) -> list[Firing]:
        """Take the records that event time has passed, late ones when it is where they were."""
        is_alone = self._program.sources == 1
        fired: list[Firing] = []
        for each in sorted(self._waiting, key=itemgetter(0, 1, 2)):
            place_ms, _, _, row = each
            if place_ms < watermark_ms or (is_alone and place_ms == watermark_ms):
                self._waiting.remove(each)
                if row["t"] < place_ms:
                    fired += self.replay.on_watermark(place_ms)
                if self._is_ordered:
                    fired += self.replay.on_place(place_ms)
                fired += self._on_record(row)
        return fired


def driven_join_problem(program: JoinProgram, steps: Sequence[Step]) -> str:
    driven = _Driven(2)
    joined_stream(program, driven.read(0), driven.read(1)).write(
        to_list(driven.results, messages=True)
    )
    driven.start()
    assert driven.flow is not None
    clock, sides, shown = SharedClock(2), list[Side](), list[Shown]()
    for step in steps:
        if isinstance(step, Records):
            for row in step.rows:
                key, promised_ms = key_of(program, row), clock.promised_ms(step.source)
                known_ms = max(clock.now_ms, promised_ms if row["t"] < promised_ms else MIN_MS)
                sides.append(Side(len(sides), step.source, key, row, row["t"], known_ms))
        clock.on_step(step)
        shown += [plain(message.value) for message in driven.do(step)]
    taken = accepted(program.plan, sides)
    shown = [in_sets(program, each) for each in shown]
    wanted = [join_result(program, each) for each in joined(program.plan, taken)]
    if problem := difference(shown, wanted):
        return problem
    late = driven.flow.late_records
    if late != len(sides) - len(taken):
        return f"{late} records were counted as late, not {len(sides) - len(taken)}"
    driven.flow.stop()
    return ""


def join_result(program: JoinProgram, each: tuple[Any, ...]) -> Shown:
    if program.combines and program.plan.kind != "cogroup":
        return tuple(plain(each[1:3]))
    return in_sets(program, plain(each))


def in_sets(program: JoinProgram, shown: Shown) -> Shown:
    if program.plan.kind != "cogroup":
        return shown
    key, lefts, rights, *bounds = shown
    return (key, *(tuple(sorted(each, key=repr)) for each in (lefts, rights)), *bounds)


def difference(shown: Iterable[Shown], wanted: Iterable[Shown]) -> str:
    """Return what is too much and what is missing, whatever the order."""
    has, should = Counter(shown), Counter(wanted)
    if has == should:
        return ""
    return f"too much: {_some(has - should)}, missing: {_some(should - has)}"


def _some(results: Counter[Shown]) -> list[Any]:
    return sorted(results.items(), key=repr)[:3]


def _shown(program: WindowProgram, message: Message) -> Shown:
    key, value, start, end, *rest = message.value
    if program.plan.kind == "session" and program.plan.clock == "processing":
        start, end = (ms // _BLUR_MS * _BLUR_MS for ms in (start, end))
    return (plain(key), plain(value), start, end, *rest, message.timestamp)


def _wanted(program: WindowProgram, firing: Firing) -> Shown:
    value = plain(value_of(program, firing.arrivals))
    return (plain(firing.key), value, *firing[2:])


def _order(plan: WindowPlan, results: list[Shown]) -> list[Any]:
    """Return what has an order: the keys that fire together in a sliding window have none."""
    return [each[2:4] for each in results] if plan.kind == "sliding" else results


def _step_problem(
    program: WindowProgram, step: Step, shown: list[Shown], wanted: list[Shown]
) -> str:
    if problem := difference(shown, wanted):
        return problem
    plan = program.plan
    # What settles takes some ms of wall time; so what waits for that is due in any order.
    is_blurred = plan.clock == "processing" and plan.kind == "session"
    is_blurred = is_blurred or isinstance(step, Tick)
    if program.parallelism == 1 and not is_blurred and _order(plan, shown) != _order(plan, wanted):
        return f"in another order: {shown} and not {wanted}"
    return ""
