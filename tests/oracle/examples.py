"""Examples of each kind: drawn by Hypothesis from a seed, run, and made small when one is wrong."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from gearpy.errors import GearpyError
from gearpy.testing.epochs import EpochFaults
from tests.oracle import strategies as draws
from tests.oracle.driven import driven_join_problem, driven_windows_problem
from tests.oracle.programs import JoinProgram, WindowProgram, key_of
from tests.oracle.simulated import (
    Trouble,
    duckdb_problem,
    exact_problem,
    joins_problem,
    late_joins_problem,
    parallel_problem,
)
from tests.oracle.streams import Records, Row, Step


@dataclass(frozen=True, slots=True)
class Outcome:
    """What some examples came to.

    Attributes:
        problem: what is wrong with the smallest one that is, and that example; empty if none is.
    """

    kind: str
    seed: int
    done: int
    problem: str


_Example = tuple[Any, ...]

#: How often a wrong example is tried to be made smaller.
_TRIES_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class _Kind:
    examples: st.SearchStrategy[_Example]
    problem: Callable[..., str]


def run_examples(kind: str, first: int, count: int, *, shrinks: bool = True) -> Outcome:
    """Run so many examples of a kind; stops at the first wrong one.

    Args:
        first: the seed; with the same number of examples it gives them again.
    """
    done = tried = 0
    wrong: list[tuple[str, _Example]] = []

    @seed(first)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, *[Phase.shrink] * shrinks],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(KINDS[kind].examples)
    def run(example: _Example) -> None:
        nonlocal done, tried
        done += not wrong
        tried += bool(wrong)
        if tried > _TRIES_MAX:
            return
        if problem := _problem_of(KINDS[kind], example):
            wrong.append((problem, example))
            raise AssertionError(problem)

    try:
        run()
    except Exception:  # It takes it ill when the smallest example is given up.
        if not wrong:
            raise
    text = "" if not wrong else f"{wrong[-1][0]}; {'; '.join(map(repr, wrong[-1][1]))}"
    return Outcome(kind, first, done, text)


def _problem_of(kind: _Kind, example: _Example) -> str:
    try:
        return kind.problem(*example)
    except (GearpyError, AssertionError, LookupError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


@st.composite
def _troubles(draw: st.DrawFn) -> Trouble:
    """Draw crashes and epochs; with the number 0 nothing happens."""
    number = draw(st.integers(0, 1 << 30))
    if number == 0:
        return Trouble(seed=0)
    rng = Random(number)
    return Trouble(
        seed=number,
        crash_at_ms=tuple(sorted(rng.randrange(500) for _ in range(rng.randrange(5)))),
        cut_every_ms=rng.choice([5, 20, 60]),
        cut=rng.choice(["position", "event-time"]),
        faults=EpochFaults(
            store_ms=rng.choice([0, 5, 40]),
            commit_ms=rng.choice([0, 5, 40]),
            given_up=rng.choice([0.05, 0.3]),
            commits_lost=rng.choice([0.0, 0.3]),
            commits_repeated=rng.choice([0.0, 0.3]),
            told_again=rng.choice([0.0, 0.3]),
        ),
        pauses=rng.choice([0, 1, 3]),
    )


@st.composite
def _driven(draw: st.DrawFn, *, clock: str) -> _Example:
    program = draw(draws.window_programs(clocks=(clock,)))
    return program, draw(draws.scripts(sources=program.sources, ticks=True, idles=True))


@st.composite
def _driven_joins(draw: st.DrawFn) -> _Example:
    return draw(draws.join_programs()), draw(draws.scripts(sources=2, ticks=False, idles=True))


@st.composite
def _exact(draw: st.DrawFn) -> _Example:
    program = draw(draws.window_programs(has_wall=False))
    (steps,) = draw(draws.partitions(count=1, may_be_late=True))
    return replace(program, parallelism=1, sources=1), steps, draw(_troubles())


@st.composite
def _parallel(draw: st.DrawFn, *, may_be_late: bool, clock: str = "event") -> _Example:
    program = draw(draws.window_programs(clocks=(clock,), has_order=False))
    if not _is_told_at_once(program) or may_be_late or clock == "processing":
        program = replace(program, value="fold", aggregates=())
    parts = draw(draws.partitions(count=program.sources, may_be_late=may_be_late))
    return program, parts, draw(_troubles())


def _is_told_at_once(program: WindowProgram) -> bool:
    plan = program.plan
    return plan.kind != "count" and (plan.early is None or plan.accumulation != "discarding")


@st.composite
def _joins(draw: st.DrawFn, *, may_be_late: bool) -> _Example:
    program = draw(draws.join_programs(latest=False))
    lefts = draw(draws.partitions(count=program.partitions, may_be_late=may_be_late))
    rights = draw(draws.partitions(count=program.partitions, first=1000, may_be_late=may_be_late))
    if program.plan.kind == "asof":
        rights = _of_different_times(program, rights)
    return program, lefts, rights, draw(_troubles())


def _of_different_times(program: JoinProgram, parts: list[list[Step]]) -> list[list[Step]]:
    """Leave out records of the same key and time: which one is nearest depends on who is first."""
    seen = set[tuple[Any, int]]()

    def is_first(row: Row) -> bool:
        known = len(seen)
        seen.add((key_of(program, row), row["t"]))
        return len(seen) > known

    return [
        [
            replace(step, rows=tuple(filter(is_first, step.rows)))
            if isinstance(step, Records)
            else step
            for step in steps
        ]
        for steps in parts
    ]


def _parallel_problem(*example: Any) -> str:
    return parallel_problem(*example, may_be_late=False)


def _late_problem(*example: Any) -> str:
    return parallel_problem(*example, may_be_late=True)


#: What there are examples of, by name.
KINDS: Final[dict[str, _Kind]] = {
    "windows": _Kind(_driven(clock="event"), driven_windows_problem),
    "wall-windows": _Kind(_driven(clock="processing"), driven_windows_problem),
    "joins": _Kind(_driven_joins(), driven_join_problem),
    "windows-crashes": _Kind(_exact(), exact_problem),
    "windows-parallel": _Kind(_parallel(may_be_late=False), _parallel_problem),
    "windows-late": _Kind(_parallel(may_be_late=True), _late_problem),
    "wall-parallel": _Kind(_parallel(may_be_late=False, clock="processing"), _parallel_problem),
    "joins-crashes": _Kind(_joins(may_be_late=False), joins_problem),
    "joins-duckdb": _Kind(_joins(may_be_late=False), duckdb_problem),
    "joins-late": _Kind(_joins(may_be_late=True), late_joins_problem),
}
