"""Runs of programs in a `Simulation` with crashes, whose results must each be there once.

With one partition, read with pauses, and one task of each kind, all happens in one order, and the
results are exactly those of the definition. Else they depend on who comes first; then what they
come to in the end must be right.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gearpy.columns.row_schema import row_schema_of
from gearpy.core.epoch.pace import EpochCut
from gearpy.dsl.application import StreamApp
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.testing.epochs import EpochFaults
from gearpy.testing.simulation import Simulation
from gearpy.testing.transactions import MemoryTransactions
from tests.oracle.driven import Expected, difference, in_sets, join_result, waits_for_order
from tests.oracle.joins import JoinPlan, Side, joined
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
from tests.oracle.streams import COLUMNS, End, Promise, Records, Row, ScriptSource, Step
from tests.oracle.windows import Firing, WindowPlan, WindowReplay

#: Pauses in which all that a step leads to has happened.
_PACE: Final = 6

_Parts = Sequence[Sequence[Step]]
_NO_FAULTS: Final = EpochFaults()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    seed: int
    crash_at_ms: tuple[int, ...] = ()
    cut_every_ms: int | None = None
    cut: EpochCut = "position"
    faults: EpochFaults = _NO_FAULTS
    pauses: int = 1  #: Of sources, where their pace is free.

    def run(self, app: StreamApp) -> None:
        Simulation(
            app,
            seed=self.seed,
            crash_at_ms=self.crash_at_ms,
            may_miss=True,
            cut_every_ms=self.cut_every_ms,
            cut=self.cut,
            faults=self.faults,
        ).run()


# -- one order ---------------------------------------------------------------------------------


def exact_problem(program: WindowProgram, steps: Sequence[Step], trouble: Trouble) -> str:
    """Run windows over one partition, step by step; return what is wrong, or nothing."""
    trouble = replace(trouble, cut="position", faults=replace(trouble.faults, damaged=0.0))
    shown, aside, is_ordered = _run_windows(program, [steps], trouble, pauses=_PACE)
    expected = Expected(program, is_ordered=is_ordered)
    firings = [each for step in (*steps, End(0)) for each in expected.on_step(step)]
    wanted = [_wanted(program, each) for each in firings]
    # A restart may change which of the keys that fire together comes first, as their state is
    # read again in any order.
    if _by_key(shown) != _by_key(wanted):
        return difference(shown, wanted) or f"in another order: {shown} and not {wanted}"
    if program.plan.policy == "side":
        return difference(map(plain, aside), (plain(each.row) for each in expected.replay.late))
    return ""


def _by_key(shown: Iterable[Shown]) -> dict[Any, list[Shown]]:
    results = defaultdict[Any, list[Shown]](list)
    for each in shown:
        results[each[0]].append(each)
    return results


def _replayed(
    program: WindowProgram, replay: WindowReplay, steps: Iterable[Step]
) -> Iterator[Firing]:
    for step in steps:
        if isinstance(step, Promise):
            yield from replay.on_watermark(step.time_ms)
        elif isinstance(step, Records):
            for row in (row for given in step.rows for row in changed(program, given)):
                yield from replay.on_record(key_of(program, row), row, row["t"])
    yield from replay.on_watermark(MAX_MS)


def _wanted(program: WindowProgram, firing: Firing) -> Shown:
    return (plain(firing.key), plain(value_of(program, firing.arrivals)), *firing[2:7])


def _run_windows(
    program: WindowProgram, parts: _Parts, trouble: Trouble, *, pauses: int
) -> tuple[list[Shown], list[Row], bool]:
    """Return the shown results and late records, and whether records came by event time."""
    app = StreamApp("oracle", parallelism=program.parallelism)
    schema = row_schema_of(COLUMNS) if program.columns else None
    source = ScriptSource(parts, pauses=pauses, schema=schema)
    results, aside = MemoryTransactions("results"), MemoryTransactions("late")
    stream = windowed_stream(program, app.read(source), has_columns=program.columns)
    stream.write(results)
    if program.plan.policy == "side":
        stream.late.write(aside)
    trouble.run(app)
    assert not results.retracted or trouble.faults.damaged
    return [plain(each) for each in results.values], aside.values, waits_for_order(app)


# -- any order ---------------------------------------------------------------------------------


def parallel_problem(
    program: WindowProgram, parts: _Parts, trouble: Trouble, *, may_be_late: bool
) -> str:
    """Run windows over several partitions and tasks; return what is wrong in the end, or nothing.

    The records of a result are told by it (``program.value`` is "fold") where it fires often.
    """
    shown, aside, _ = _run_windows(program, parts, trouble, pauses=trouble.pauses)
    if problem := _numbers_problem(program.plan, shown):
        return problem
    plan = program.plan
    if may_be_late or plan.kind == "count" or plan.clock == "processing":
        return _kept_problem(program, parts, shown, aside)
    if aside:
        return f"late records where none is late: {aside}"
    batch = _batch(program, parts)
    if plan.accumulation == "discarding":
        return _parts_problem(program, shown, batch)
    final = _net(shown) if plan.accumulation == "retracting" else _at_close(shown)
    return difference(map(_cut, final.elements()), batch)


def _batch(program: WindowProgram, parts: _Parts) -> list[Shown]:
    """Return key, value, start and end of all windows, computed from all records at once."""
    plan = replace(
        program.plan, early=None, late=None, is_bare=False, accumulation="discarding", lateness_ms=0
    )
    replay = WindowReplay(plan)
    records = [step for steps in parts for step in steps if isinstance(step, Records)]
    return [_wanted(program, each)[:4] for each in _replayed(program, replay, records)]


def _cut(shown: Shown) -> Shown:
    return shown[:4]


def _net(shown: Iterable[Shown]) -> Counter[Shown]:
    net = Counter[Shown]()
    for *result, retracts in shown:
        net[tuple(result)] += -1 if retracts else 1
    return Counter({each: n for each, n in net.items() if n})


def _at_close(shown: Iterable[Shown]) -> Counter[Shown]:
    return Counter(each for each in shown if each[5] == "on-time")


def _parts_problem(program: WindowProgram, shown: list[Shown], batch: list[Shown]) -> str:
    """See that the firings of each window make it up; those of a session may be narrower."""
    if program.plan.early is None:
        return difference(map(_cut, shown), batch)
    made_up = defaultdict[Shown, list[Any]](list)
    for key, value, start, end, *_ in shown:
        for of, _, first, last in batch:
            if of == key and first <= start and end <= last:
                made_up[key, first, last] += value if program.value == "fold" else [value]
    wanted = {(key, start, end): value for key, value, start, end in batch}
    has = (
        (*window, tuple(sorted(values)) if program.value == "fold" else sum(values))
        for window, values in made_up.items()
    )
    return difference(has, ((*window, value) for window, value in wanted.items()))


def _numbers_problem(plan: WindowPlan, shown: list[Shown]) -> str:
    """See that firings are numbered without gaps, and retracted only what was put out."""
    results = [each for each in shown if not each[6]]
    if plan.kind not in {"session", "count"}:
        numbers = defaultdict[Shown, list[int]](list)
        for key, _, start, end, number, *_ in results:
            numbers[key, start, end].append(number)
        for window, of in numbers.items():
            if sorted(of) != list(range(len(of))):
                return f"firings of {window} have the numbers {sorted(of)}"
    retracted = Counter(each[:6] for each in shown if each[6])
    if too_many := retracted - Counter(each[:6] for each in results):
        return f"retracted what was not put out: {too_many}"
    return ""


def _kept_problem(
    program: WindowProgram, parts: _Parts, shown: list[Shown], aside: list[Row]
) -> str:
    """See that each record is in a result or late: in one, unless windows overlap."""
    plan = program.plan
    if plan.accumulation == "accumulating":
        return _growth_problem(plan, shown)
    net = _net(shown) if plan.accumulation == "retracting" else Counter(each[:6] for each in shown)
    has = Counter(number for each in net.elements() for number in each[1])
    has.update(row["id"] for row in aside)
    rows = [
        row for steps in parts for step in steps if isinstance(step, Records) for row in step.rows
    ]
    wanted = Counter(each["id"] for row in rows for each in changed(program, row))
    if plan.kind == "sliding":
        most = -(-plan.size_ms // plan.every_ms)
        too_many = has - Counter({number: n * most for number, n in wanted.items()})
    else:
        too_many = has - wanted
    missing = Counter[int]() if plan.policy == "drop" and _can_be_late(plan) else wanted - has
    return f"too often: {too_many}, missing: {missing}" if too_many or missing else ""


def _can_be_late(plan: WindowPlan) -> bool:
    return plan.clock == "event" and plan.kind not in {"count", "global"}


def _growth_problem(plan: WindowPlan, shown: list[Shown]) -> str:
    if plan.kind in {"session", "count"}:
        return ""
    firings = defaultdict[Shown, dict[int, Counter[int]]](dict)
    for key, value, start, end, number, *_ in shown:
        firings[key, start, end][number] = Counter(value)
    for window, of in firings.items():
        for number in range(1, len(of)):
            if lost := of[number - 1] - of[number]:
                return f"firing {number} of {window} has lost {lost}"
    return ""


# -- joins -------------------------------------------------------------------------------------


def joins_problem(program: JoinProgram, lefts: _Parts, rights: _Parts, trouble: Trouble) -> str:
    """Run a join of two streams of which nothing is late; return what is wrong, or nothing."""
    shown = [in_sets(program, plain(each)) for each in _run_join(program, lefts, rights, trouble)]
    pairs = joined(program.plan, list(_sides(program, lefts, rights)))
    return difference(shown, (join_result(program, each) for each in pairs))


def duckdb_problem(program: JoinProgram, lefts: _Parts, rights: _Parts, trouble: Trouble) -> str:
    from tests.oracle.duck import by_duckdb, by_numbers  # noqa: PLC0415 - only here

    shown = _run_join(replace(program, combines=False), lefts, rights, trouble)
    sides = list(_sides(program, lefts, rights))
    return difference(by_numbers(program.plan, shown), by_duckdb(program.plan, sides))


def late_joins_problem(
    program: JoinProgram, lefts: _Parts, rights: _Parts, trouble: Trouble
) -> str:
    """Run a join of which something may be late; return what is wrong, or nothing.

    Which records are late depends on who comes first, so no more is known than that an inner join
    gives no pair that it would not give if none was late.
    """
    program = replace(program, plan=_inner(program.plan))
    shown = [in_sets(program, plain(each)) for each in _run_join(program, lefts, rights, trouble)]
    pairs = joined(program.plan, list(_sides(program, lefts, rights)))
    too_many = Counter(shown) - Counter(join_result(program, each) for each in pairs)
    return f"too much: {too_many}" if too_many else ""


def _inner(plan: JoinPlan) -> JoinPlan:
    """Return the inner join; over windows that late records do not change."""
    kind: Any = "interval" if plan.kind == "interval" else "window"
    windows: Any = "tumbling" if plan.windows == "session" else plan.windows
    return replace(plan, kind=kind, how="inner", windows=windows)


def _run_join(program: JoinProgram, lefts: _Parts, rights: _Parts, trouble: Trouble) -> list[Any]:
    app = StreamApp("oracle", parallelism=program.parallelism)
    schema = row_schema_of(COLUMNS) if program.columns else None
    left, right = (
        app.read(ScriptSource(parts, pauses=trouble.pauses, schema=schema), name=name)
        for name, parts in (("left", lefts), ("right", rights))
    )
    results = MemoryTransactions("results")
    joined_stream(program, left, right).write(results)
    trouble.run(app)
    return results.values


def _sides(program: JoinProgram, *parts: _Parts) -> Iterator[Side]:
    number = 0
    for side, some in enumerate(parts):
        for row in (
            row
            for steps in some
            for step in steps
            if isinstance(step, Records)
            for row in step.rows
        ):
            yield Side(number, side, key_of(program, row), row, row["t"], MIN_MS)
            number += 1
