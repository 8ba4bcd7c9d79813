"""The generated loop of map, filter and flat_map does what the functions one by one do."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS
from gearpy.task.api.interfaces import TaskCounters
from gearpy.task.api.rejects import Rejects
from gearpy.task.chain.fused import FusedStage, RowOperator, fused_stages
from gearpy.wire.values.payload import decode_value
from tests.task.stage_build import columns_of, results_of

FUNCTIONS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "add": ("map", lambda n: n + 1),
    "negate": ("map", int.__neg__),
    "even": ("filter", lambda n: n % 2 == 0),
    "small": ("filter", lambda n: -100 < n < 100),
    "truthy": ("filter", int),
    "twice": ("flat_map", lambda n: [n, n]),
    "below": ("flat_map", lambda n: range(n % 4)),
    "lazily": ("flat_map", lambda n: (n * k for k in range(3))),
    "nothing": ("flat_map", lambda _: ()),
}


NO_ITERABLE = (
    "TypeError: flat_map(f) must return an iterable, it returned 5; use map, or return [] for "
    "nothing"
)


def a_chain(*names: str) -> list[RowOperator]:
    return [RowOperator(FUNCTIONS[name][0], name, FUNCTIONS[name][1]) for name in names]


def an_operator(kind: Any, function: Callable[[Any], Any], name: str = "op") -> RowOperator:
    return RowOperator(kind, name, function)


def one_by_one(names: list[str], values: list[int], times: list[int]) -> list[tuple[int, int]]:
    pairs = list(zip(values, times, strict=True))
    for name in names:
        kind, function = FUNCTIONS[name]
        if kind == "map":
            pairs = [(function(value), time) for value, time in pairs]
        elif kind == "filter":
            pairs = [(value, time) for value, time in pairs if function(value)]
        else:
            pairs = [(out, time) for value, time in pairs for out in function(value)]
    return pairs


@given(
    st.lists(st.sampled_from(sorted(FUNCTIONS)), min_size=1, max_size=6),
    st.lists(st.integers(-50, 50), max_size=20),
    st.integers(1, 10),
)
def test_chain_gives_what_its_functions_give(
    names: list[str], values: list[int], limit: int
) -> None:
    """Invariant: same records, times and order; a portion is as long as the limit, but the last."""
    times = list(range(len(values)))
    has_loop = any(FUNCTIONS[name][0] == "flat_map" for name in names)

    portions = list(results_of(FusedStage(a_chain(*names), limit=limit), values, times))

    out = [pair for portion in portions for pair in zip(*portion, strict=True)]
    assert out == one_by_one(names, values, times)
    assert all(values for values, _ in portions)
    if has_loop:
        assert all(len(values) == limit for values, _ in portions[:-1])
        assert all(len(values) <= limit for values, _ in portions)
    else:
        assert len(portions) <= 1


def test_endless_flat_map_is_pulled_as_far_as_asked() -> None:
    pulled = []

    def explode(_: Any) -> Iterator[int]:
        for number in itertools.count():
            pulled.append(number)
            yield number

    portions = results_of(FusedStage([an_operator("flat_map", explode)], limit=10), [1], [0])
    first, second = next(portions), next(portions)

    assert first[0] == list(range(10))
    assert second[0] == list(range(10, 20))
    assert len(pulled) == 20


@given(st.integers(1, 40))
def test_chain_may_be_of_any_length(length: int) -> None:
    """Python takes 20 nested loops; longer chains become several."""
    operators = a_chain(*(["lazily", "add", "even"] * length))[: 3 * length]
    once = [RowOperator("flat_map", "once", lambda n: [n + 1]) for _ in range(length)]

    stages = fused_stages([*once, operators[1]], limit=4)

    values, times = [5, 6], [1, 2]
    for stage in stages:
        ((values, times),) = results_of(stage, values, times)
    assert values == [5 + length + 1, 6 + length + 1]
    assert times == [1, 2]


def test_stage_holds_nothing_back() -> None:
    stage = FusedStage(a_chain("add"), limit=4)

    assert list(columns_of(stage.on_watermark(5))) == []
    assert stage.hold_ms == MAX_MS
    stage.close(completed=True)


def two(n: int) -> int:
    return n // (n - 2)


def broken_iterator(n: int) -> Iterator[int]:
    yield n
    yield two(n)


@pytest.mark.parametrize(
    ("kind", "function", "line"),
    [
        ("map", two, "return n // (n - 2)"),
        ("map", lambda n: two(n), "return n // (n - 2)"),  # noqa: PLW0108
        ("filter", two, "return n // (n - 2)"),
        ("flat_map", broken_iterator, "return n // (n - 2)"),
        ("flat_map", lambda n: (two(k) for k in [n]), "return n // (n - 2)"),
    ],
    ids=["map", "lambda", "filter", "flat-map", "generator"],
)
@pytest.mark.parametrize("before", [[], ["add"], ["twice", "add"]], ids=len)
def test_error_names_operator_record_time_and_line(
    kind: Any, function: Callable[[Any], Any], line: str, before: list[str]
) -> None:
    chain = [*a_chain(*before), an_operator(kind, function, "bad"), *a_chain("add")]
    value = 2 - before.count("add")

    with pytest.raises(OperatorError, match="ZeroDivisionError") as raised:
        list(results_of(FusedStage(chain, limit=100), [5, value, 7], [10, 20, 30]))

    error = raised.value
    assert error.operator == "bad"
    assert (error.record, error.event_time_ms) == ("2", 20)
    assert error.source.startswith(f"{__file__}:")
    assert error.source_line == line


@pytest.mark.parametrize(
    ("kind", "function", "record", "cause"),
    [
        ("map", int, "x", "ValueError: invalid literal for int() with base 10: 'x'"),
        ("filter", float, "x", "ValueError: could not convert string to float: 'x'"),
        ("flat_map", lambda _: 5, "x", NO_ITERABLE),
        ("map", None, "x", "TypeError: 'NoneType' object is not callable"),
        ("map", lambda text: next(c for c in text if c == "y"), "x", "StopIteration"),
    ],
    ids=["int", "float", "no-iterable", "no-function", "next"],
)
def test_error_without_a_line_of_the_user_names_operator_and_record(
    kind: Any, function: Any, record: str, cause: str
) -> None:
    """A builtin has no line. `StopIteration` would look like a bug of ours."""
    chain = [an_operator("map", str), an_operator(kind, function, "bad")]

    with pytest.raises(OperatorError) as raised:
        list(results_of(FusedStage(chain, limit=100), [record], [20]))

    error = raised.value
    assert (error.operator, error.cause) == ("bad", cause)
    assert (error.record, error.event_time_ms) == (repr(record), 20)


# -- going on behind bad records -------------------------------------------------------------


def unless(bad: int, calls: list[int]) -> Callable[[int], int]:
    """Return a function that raises for a number, and notes its calls."""

    def checked(n: int) -> int:
        calls.append(n)
        if n == bad:
            raise ValueError(n)
        return n

    return checked


@given(
    st.lists(st.sampled_from(sorted(FUNCTIONS)), max_size=3),
    st.lists(st.sampled_from(sorted(FUNCTIONS)), max_size=3),
    st.lists(st.integers(-5, 5), max_size=20),
    st.integers(-5, 5),
)
def test_loop_goes_on_behind_bad_records(
    before: list[str], after: list[str], values: list[int], bad: int
) -> None:
    """Property: bad ones leave no trace, the others are as without them, none is taken twice.

    In quarantine is what entered the loop, and the error tells what its operator got.
    """
    counters = TaskCounters()
    calls: list[int] = []
    seen: list[int] = []

    def look(n: int) -> int:
        seen.append(n)
        return n

    chain = [
        an_operator("map", look),
        *a_chain(*before),
        an_operator("map", unless(bad, calls), "checked"),
        *a_chain(*after),
    ]
    rejects = Rejects("quarantine", counters, "1.0")
    times = list(range(len(values)))
    is_bad = [bad in [out for out, _ in one_by_one(before, [n], [0])] for n in values]

    stage = FusedStage(chain, limit=1000, rejects=rejects)
    portions = list(results_of(stage, values, times))

    kept = [at for at in times if not is_bad[at]]
    out = [pair for portion in portions for pair in zip(*portion, strict=True)]
    assert out == one_by_one(before + after, [values[at] for at in kept], kept)
    assert seen == values
    dropped = [at for at in times if is_bad[at]]
    assert [decode_value(record.value) for record in rejects.records] == [
        values[at] for at in dropped
    ]
    assert [record.event_time_ms for record in rejects.records] == dropped
    assert {record.error.operator for record in rejects.records} <= {"checked"}
    assert {record.error.record for record in rejects.records} <= {repr(bad)}
    assert counters.quarantined_records == len(dropped)


@pytest.mark.parametrize("then", [[], ["add"]])
@pytest.mark.parametrize(("returned", "told"), [(None, "None"), (5, "5")])
def test_flat_map_that_returns_no_iterable_is_told(
    then: list[str], returned: Any, told: str
) -> None:
    stage = FusedStage([an_operator("flat_map", lambda _: returned), *a_chain(*then)], limit=9)
    cause = rf"flat_map\(f\) must return an iterable, it returned {told}; use map, or return \[\]"

    with pytest.raises(OperatorError, match=cause) as raised:
        list(results_of(stage, [7], [1]))

    assert (raised.value.record, raised.value.event_time_ms) == ("7", 1)


async def later(value: int) -> int:
    return value


@pytest.mark.parametrize("keep", [[], ["truthy"]])
def test_map_that_returns_coroutines_is_told(keep: list[str]) -> None:
    """Of a lambda nobody can see it before; nobody would await them."""
    kept = [an_operator("filter", bool)] if keep else []
    stage = FusedStage([an_operator("map", lambda n: later(n + 1), "ask"), *kept], limit=9)

    with pytest.raises(OperatorError, match=r"returned a coroutine.*use map_async") as raised:
        list(results_of(stage, [7, 8], [1, 2]))

    assert (raised.value.operator, raised.value.event_time_ms) == ("ask", 1)
