"""Generated loops beside the aggregates one by one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.base.fields import key_getter, value_getter
from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.windows import TumblingWindows
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS
from gearpy.task.aggregates.fold import Fold, WindowFold
from gearpy.task.aggregates.rows import RunningAggregate, fold_of
from gearpy.task.aggregates.top_n import top_records
from gearpy.task.api.interfaces import TaskCounters
from gearpy.task.api.rejects import Rejects
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of


@dataclass(frozen=True)
class Order:
    user: str
    price: Any
    n: Any


class Pair(NamedTuple):
    user: str
    price: Any
    n: Any


def doubled(record: Any) -> Any:
    price = value_getter("price")(record)
    return None if price is None else price * 2


def whole(record: Any) -> Any:
    return tuple(value_getter(name)(record) for name in ("user", "price", "n"))


EVERY: list[Aggregate] = [
    agg.count(),
    *(make("price") for make in (agg.sum, agg.min, agg.max, agg.mean, agg.first, agg.last)),
    *(make("price") for make in (agg.collect, agg.distinct, agg.variance, agg.stddev)),
    agg.any("n"),
    agg.all("n"),
    agg.sum("n"),
    agg.top(2, "price"),
    agg.sum(doubled),
    agg.max(doubled),
    agg.collect(whole),
    agg.last(whole),
    agg.custom(list, lambda kept, value: [*kept, value], of="n", merge=lambda a, b: a + b),
    *(make("price") for make in (agg.median, agg.approx_distinct, agg.mode, agg.count_if)),
    agg.quantile([0, 0.9], "n"),
    agg.heavy_hitters(2, "n"),
    agg.arg_min("user", by="price"),
    agg.arg_max(by=doubled),
    agg.ewma("n", half_life="10ms"),
    agg.sum("price", where="n"),
    agg.collect("price", where=lambda record: doubled(record) is not None),
    agg.arg_max("n", by="price", where="n"),
]
PRICES = st.one_of(st.none(), st.integers(), st.floats(-100, 100), st.booleans())
FIELDS = st.tuples(st.sampled_from(["ann", "bob"]), PRICES, PRICES)
KINDS = st.sampled_from([lambda f: dict(zip(("user", "price", "n"), f, strict=True)), Order, Pair])
RECORDS = st.lists(st.tuples(FIELDS, st.integers(0, 30), KINDS), max_size=20)
CHOSEN = st.lists(st.sampled_from(EVERY), min_size=1, max_size=5)
KEYS = st.sampled_from(
    [
        key_getter("user"),
        key_getter("user", "n"),
        key_getter("price"),
        lambda record: record["user"] if isinstance(record, dict) else record.user,
    ]
)


def made(kind: Any, fields: tuple[Any, ...]) -> Any:
    return kind(fields) if not isinstance(kind, type) else kind(*fields)


def add(aggregate: Aggregate, kept: Any, record: Any, time: int) -> Any:
    value = value_getter(aggregate.value)(record)
    return aggregate.add(kept, (time, value) if aggregate.is_timed else value)


def expected(
    chosen: Mapping[str, Aggregate], key: Any, records: list[Any], times: list[int]
) -> dict[Any, dict[str, Any]]:
    kept: dict[Any, dict[str, Any]] = {}
    for record, time in zip(records, times, strict=True):
        parts = kept.setdefault(key(record), {name: of.create() for name, of in chosen.items()})
        for name, aggregate in chosen.items():
            parts[name] = add(aggregate, parts[name], record, time)
    return {
        each: {name: chosen[name].result(part) for name, part in parts.items()}
        for each, parts in kept.items()
    }


def unused(error: BaseException, at: int) -> None:
    raise AssertionError(f"record {at}: {error!r}")


@given(RECORDS, CHOSEN, KEYS, st.integers(0, 20))
def test_loop_gives_what_aggregates_give_one_by_one(
    drawn: list[Any], chosen: list[Aggregate], key: Any, cut: int
) -> None:
    """Property: whatever records are made of, wherever batches end; keys in order of arrival."""
    aggregates = {f"a{at}": each for at, each in enumerate(chosen)}
    fold = fold_of(aggregates)
    records = [made(kind, fields) for fields, _, kind in drawn]
    times = [time for _, time, _ in drawn]
    kept: dict[Any, Any] = {}

    for part in (slice(cut), slice(cut, None)):
        if fold.loop is None:
            _fold_in(fold, kept, key, records[part], times[part])
        else:
            keys = fold.loop(key)(kept, records[part], times[part], unused)
            assert list(keys) == [key(record) for record in records[part]]

    assert fold.result is not None
    found = {each: fold.result(value) for each, value in kept.items()}
    wanted = expected(aggregates, key, records, times)
    assert list(found.items()) == list(wanted.items())
    assert [*map(repr, found.values())] == [*map(repr, wanted.values())]


def _fold_in(fold: Fold, kept: Any, key: Any, records: list[Any], times: list[int]) -> None:
    for record, time in zip(records, times, strict=True):
        at, more = key(record), (time,) if fold.timed else ()
        kept[at] = fold.add(kept[at], record, *more) if at in kept else fold.first(record, *more)


@given(RECORDS, CHOSEN, st.integers(0, 20))
def test_functions_of_a_fold_give_the_same(
    drawn: list[Any], chosen: list[Aggregate], cut: int
) -> None:
    """Property: record by record, and merged of two parts."""
    aggregates = {f"a{at}": each for at, each in enumerate(chosen)}
    fold = fold_of(aggregates)
    records = [made(kind, fields) for fields, _, kind in drawn]
    times = [time for _, time, _ in drawn]
    key = key_getter("user")
    parts: list[dict[Any, Any]] = [{}, {}]
    _fold_in(fold, parts[0], key, records[:cut], times[:cut])
    _fold_in(fold, parts[1], key, records[cut:], times[cut:])

    assert fold.merge is not None
    assert fold.result is not None
    joined = dict(parts[0])
    for each, value in parts[1].items():
        joined[each] = fold.merge(joined[each], value) if each in joined else value
    found = {each: fold.result(value) for each, value in joined.items()}

    wanted = expected(aggregates, key, records, times)
    assert found.keys() == wanted.keys()
    for each in wanted:
        for name, of in aggregates.items():
            nearly = isinstance(wanted[each][name], float) and of.kind != "max"
            assert found[each][name] == (
                pytest.approx(wanted[each][name], rel=1e-6, abs=1e-3)
                if nearly
                else wanted[each][name]
            )


def test_no_aggregate_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing to do"):
        fold_of({})


def test_aggregate_without_a_merge_cannot_be_merged() -> None:
    assert fold_of({"n": agg.count(), "x": agg.custom(int, max)}).merge is None


# -- records on which something raises -------------------------------------------------------

BAD: list[tuple[Any, str]] = [
    ({"user": "ann", "price": "text"}, "'text' cannot be added up"),
    ({"user": "ann"}, "there is no field 'price': the record, a dict, has user"),
    ({"price": 3}, "there is no field 'user': the record, a dict, has price"),
    ({"user": ["ann"], "price": 3}, "unhashable"),
    (5, "there is no field 'price': the record is a int and has no fields"),
]


@pytest.mark.parametrize(("record", "cause"), BAD)
def test_bad_record_is_blamed(record: Any, cause: str) -> None:
    fold = fold_of({"all": agg.collect("price"), "total": agg.sum("price")})
    window = WindowFold(
        a_context(), "prices", TumblingWindows(10), key_getter("user"), fold, limit=5
    )

    with pytest.raises(OperatorError, match=cause) as raised:
        list(results_of(window, [{"user": "ann", "price": 1}, record], [1, 2]))

    assert raised.value.operator == "prices"
    assert raised.value.event_time_ms == 2


@pytest.mark.parametrize(("record", "cause"), BAD)
def test_bad_record_changes_nothing(record: Any, cause: str) -> None:
    context = a_context()
    counters = TaskCounters()
    context.rejects = Rejects("skip", counters)
    aggregates = {
        "all": agg.collect("price"),
        "kinds": agg.distinct("price"),
        "total": agg.sum("price"),
        "n": agg.count(),
    }
    window = WindowFold(
        context, "prices", TumblingWindows(10), key_getter("user"), fold_of(aggregates), limit=5
    )
    good = {"user": "ann", "price": 2}

    list(results_of(window, [good, record, good], [1, 2, 3]))

    ((values, _),) = columns_of(window.on_watermark(MAX_MS))
    assert [result.value for result in values] == [{"all": [2, 2], "kinds": 1, "total": 4, "n": 2}]
    assert counters.skipped_records == 1


def test_key_error_of_a_users_function_stays_what_it_is() -> None:
    fold = fold_of({"total": agg.sum(lambda record: record["nothing"])})
    window = WindowFold(a_context(), "prices", TumblingWindows(10), None, fold, limit=5)

    with pytest.raises(OperatorError, match="KeyError: 'nothing'"):
        list(results_of(window, [{"price": 1}], [1]))


def test_keys_of_a_batch_leave_out_bad_records() -> None:
    fold = fold_of({"total": agg.sum("price")})
    assert fold.loop is not None
    told: list[int] = []
    records: list[Any] = [{"user": "ann", "price": 1}, {"user": "bob", "price": "x"}, 3]

    keys = fold.loop(key_getter("user"))({}, records, [1, 2, 3], lambda _, at: told.append(at))

    assert told == [1, 2]
    assert list(keys) == ["ann"]


# -- running ---------------------------------------------------------------------------------


@given(RECORDS, CHOSEN, st.lists(st.integers(0, 20), max_size=3))
def test_running_aggregate_tells_after_every_record(
    drawn: list[Any], chosen: list[Aggregate], restarts: list[int]
) -> None:
    """Property: what the key has come to so far, over restarts, too."""
    aggregates = {f"a{at}": each for at, each in enumerate(chosen)}
    records = [made(kind, fields) for fields, _, kind in drawn]
    times = [time for _, time, _ in drawn]
    key, sections, got = key_getter("user"), list[Any](), list[Any]()

    for begin, end in zip([0, *sorted(restarts)], [*sorted(restarts), len(records)], strict=True):
        context = a_context()
        assert context.keyed is not None
        context.keyed.load(sections)
        stage = RunningAggregate(context, "running", key, fold_of(aggregates))
        stage.restore(None)
        for values, _ in results_of(stage, records[begin:end], times[begin:end]):
            got += values
        stage.snapshot()
        delta = context.keyed.snapshot()
        if delta is not None:
            sections += delta.sections()
            delta.release()

    wanted = []
    for at, record in enumerate(records):
        before = expected(aggregates, key, records[: at + 1], times[: at + 1])
        wanted.append((key(record), before[key(record)]))
    assert [*map(repr, got)] == [*map(repr, wanted)]


def test_running_aggregate_goes_on_behind_a_bad_record() -> None:
    """Its key stays as it was; the others keep their times."""
    context = a_context()
    context.rejects = Rejects("skip", TaskCounters())
    stage = RunningAggregate(context, "running", key_getter("user"), fold_of(agg.sum("price")))
    rows: list[Any] = [
        {"user": "ann", "price": 1}, {"user": "ann", "price": "x"}, {"user": "ann", "price": 2}
    ]  # fmt: skip

    ((values, times),) = results_of(stage, rows, [5, 6, 7])

    assert values == [("ann", 1), ("ann", 3)]
    assert times == [5, 7]
    assert list(columns_of(stage.on_watermark(9))) == []
    assert stage.hold_ms == MAX_MS
    stage.close(completed=True)


def test_running_count_counts() -> None:
    stage = RunningAggregate(a_context(), "n", key_getter("user"), fold_of(agg.count()))

    ((values, _),) = results_of(
        stage, [{"user": "ann"}, {"user": "bob"}, {"user": "ann"}], [1, 2, 3]
    )

    assert values == [("ann", 1), ("bob", 1), ("ann", 2)]


@pytest.mark.parametrize("key", [key_getter("user"), lambda record: record["user"]])
def test_running_aggregate_of_a_wrong_field_tells_which_there_are(key: Any) -> None:
    stage = RunningAggregate(a_context(), "sum", key, fold_of(agg.sum("prise")))

    with pytest.raises(OperatorError, match=r"there is no field 'prise': .* has price, user"):
        list(results_of(stage, [{"user": "ann", "price": 1}], [1]))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9)), max_size=40))
def test_only_what_has_changed_is_given(drawn: list[tuple[str, int | None]]) -> None:
    """Property: those of all results that differ from the one of their key before."""
    best = top_records(2, lambda record: record[1])
    stages = [
        RunningAggregate(a_context(), "top", lambda record: record[0], fold)
        for fold in (fold_of(best), fold_of(best, only_changed=True))
    ]
    times = [*range(len(drawn))]

    every, changed = ([*results_of(stage, drawn, times)] if drawn else [] for stage in stages)

    expected: list[Any] = []
    last: dict[str, Any] = {}
    for (key, result), time in zip(*(every[0] if every else ((), ())), strict=True):
        if last.get(key, []) != result:
            expected.append(((key, result), time))
        last[key] = result
    given_ = [*zip(*changed[0], strict=True)] if changed else []
    assert given_ == expected


@pytest.mark.parametrize("name", ["price", "class", "µ", "price in €"])
def test_fields_of_objects_are_read_as_those_of_dicts(name: str) -> None:
    """Python would take µ in its code for another letter."""
    odd: Any = type("Odd", (), {})()
    setattr(odd, name, 3)
    odd.user = "ann"
    stage = RunningAggregate(a_context(), "sum", key_getter("user"), fold_of(agg.sum(name)))
    sums = []
    for some in ([odd], [{"user": "ann", name: 2}, odd]):
        sums += [values for values, _ in results_of(stage, some, [*range(len(some))])]
    assert sums == [[("ann", 3)], [("ann", 5), ("ann", 8)]]


def test_a_field_that_is_not_there_is_told_with_those_that_are() -> None:
    stage = RunningAggregate(a_context(), "sum", key_getter("user"), fold_of(agg.sum("prise")))
    rows: list[Any] = [Pair("ann", 1.0, 1)] * 2
    with pytest.raises(OperatorError, match=r"there is no field 'prise': .* has n, price, user"):
        list(results_of(stage, rows, [1, 2]))
