"""From records to the columns of a log: what they are called, and what is refused."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.log_columns import LogColumns
from gearpy.columns.spark_types import exact_schema
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import Table, Times
from gearpy.task.api.window_result import CoGroup, JoinResult, WindowResult

AROUND = ["window_start", "window_end", "firing", "timing", "retracts"]


class Total(NamedTuple):
    n: int
    mean: float | None


@dataclass
class Page:
    url: str
    tags: list[str]


def columns_of(*values: Any, times: Any = (), **options: Any) -> pa.RecordBatch:
    return LogColumns("sink", **options).batch_of(list(values), times)


def own(batch: pa.RecordBatch) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = batch.to_pydict()
    return {name: cells for name, cells in found.items() if name not in AROUND}


def test_a_result_of_a_window_has_its_window_key_and_value() -> None:
    batch = columns_of(WindowResult("a", 5, 0, 10_000, 1, "late", retracts=True))

    assert batch.schema == pa.schema(
        {
            "window_start": pa.timestamp("us", "UTC"),
            "window_end": pa.timestamp("us", "UTC"),
            "key": pa.string(),
            "value": pa.int64(),
            "firing": pa.int32(),
            "timing": pa.string(),
            "retracts": pa.bool_(),
        }
    )
    assert batch.to_pylist() == [
        {
            "window_start": datetime(1970, 1, 1, tzinfo=UTC),
            "window_end": datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC),
            "key": "a",
            "value": 5,
            "firing": 1,
            "timing": "late",
            "retracts": True,
        }
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Total(1, None), {"n": [1, 2], "mean": [None, 0.5]}),
        ({"n": 1}, {"n": [1, 2], "mean": [None, 0.5]}),
        (None, {"n": [None, 2], "mean": [None, 0.5]}),
    ],
)
def test_the_fields_of_a_value_are_columns(value: Any, expected: Any) -> None:
    other = {"n": 2, "mean": 0.5} if isinstance(value, dict) else Total(2, 0.5)

    batch = columns_of(WindowResult("a", value, 0, 1), WindowResult("b", other, 0, 1))

    assert own(batch) == {"key": ["a", "b"], **expected}


def test_values_inside_of_values_are_kept() -> None:
    page = Page("/", ["x"])

    one = columns_of(WindowResult("a", page, 0, 1))
    several = columns_of(WindowResult("a", [page, page], 0, 1))

    assert own(one) == {"key": ["a"], "url": ["/"], "tags": [["x"]]}
    assert own(several)["value"] == [[{"url": "/", "tags": ["x"]}] * 2]


@pytest.mark.parametrize(
    ("key", "names", "expected"),
    [
        ("u", (), {"key": ["u"]}),
        ("u", ("user",), {"user": ["u"]}),
        (("u", 1), (), {"key_1": ["u"], "key_2": [1]}),
        (("u", 1), ("user", "page"), {"user": ["u"], "page": [1]}),
        (Total(1, 0.5), (), {"n": [1], "mean": [0.5]}),
        (None, (), {}),
    ],
)
def test_a_key_has_a_column_for_each_part(key: Any, names: Any, expected: Any) -> None:
    columns = LogColumns("sink", key=names)

    batch = columns.batch_of([WindowResult(key, 1, 0, 1)])

    assert own(batch) == {**expected, "value": [1]}
    around = ("window_start", "window_end", *expected, "firing", "retracts")
    assert columns.identity == around


def test_groups_of_a_join_are_lists() -> None:
    batch = columns_of(CoGroup("k", [{"n": 1}], [1, 2], 0, 5))

    assert batch["left"].to_pylist() == [[{"n": 1}]]
    assert batch["right"].to_pylist() == [[1, 2]]


def test_other_records_have_their_fields_and_their_event_time() -> None:
    batch = columns_of({"a": 1}, {"b": 2}, times=[1000, MAX_MS])
    own_time = columns_of({"event_time": 1}, times=[1000])

    assert batch.to_pydict() == {
        "a": [1, None],
        "b": [None, 2],
        "event_time": [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None],
    }
    assert own_time.to_pydict() == {"event_time": [1]}


def test_columns_stay_columns() -> None:
    table = Table(
        pa.record_batch(
            {
                "a": pa.array([1], pa.uint8()),
                "b": pa.array(["x"]).dictionary_encode(),
                "c": pa.array([1_000_000], pa.timestamp("ns")),
            }
        )
    )

    batch = LogColumns("sink").batch_of(table, Times.of([5]))

    assert batch.schema.types[:3] == [pa.int16(), pa.string(), pa.timestamp("us")]
    assert batch["c"].cast(pa.int64()).to_pylist() == [1000]
    assert batch["event_time"].cast(pa.int64()).to_pylist() == [5000]


def test_many_records_are_what_they_are_in_parts() -> None:
    """They are made columns in parts; a bad one among them is blamed as any other."""
    times = list(range(10_000))
    columns = LogColumns("sink")
    columns.batch_of([{"n": 0, "tags": ["a"]}], [0])

    batch = columns.batch_of([{"n": n, "tags": [str(n)]} for n in times], times)

    assert batch["n"].to_pylist() == times
    assert batch["tags"].to_pylist() == [[str(n)] for n in times]
    assert batch["event_time"].cast(pa.int64()).to_pylist() == [1000 * n for n in times]
    records: list[Any] = [{"n": n} for n in times]
    records[9_000] = {"n": "many"}
    with pytest.raises(OperatorError, match="many") as raised:
        columns.batch_of(records, times)
    assert raised.value.event_time_ms == 9_000


def test_a_schema_may_leave_out_what_the_log_adds() -> None:
    schema = pa.schema({"value": pa.decimal128(9, 2), "key": pa.large_string()})

    batch = columns_of(WindowResult("a", Decimal("1.5"), 0, 1), schema=schema)

    assert batch.schema.names == [*AROUND[:2], "value", "key", *AROUND[2:]]
    assert own(batch) == {"value": [Decimal("1.50")], "key": ["a"]}


def test_later_records_keep_to_the_first_ones() -> None:
    """A field that is missing is null; the key may be, too."""
    columns = LogColumns("sink")
    columns.batch_of([WindowResult("a", {"n": 1}, 0, 1)])

    batch = columns.batch_of([WindowResult(None, {}, 0, 1), WindowResult("b", None, 0, 1)])

    assert own(batch) == {"key": [None, "b"], "n": [None, None]}


def test_a_field_may_be_called_value() -> None:
    columns = LogColumns("sink")
    columns.batch_of([WindowResult("a", {"value": 1}, 0, 1)])

    batch = columns.batch_of([WindowResult("b", {"value": 2}, 0, 1)])

    assert own(batch) == {"key": ["b"], "value": [2]}


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ({"n": "x"}, "column 'n' is int64"),
        ({"n": 1.5}, "1.5 is no whole number"),
        ({"n": Decimal("1.5")}, "is no whole number"),
        ({"n": 1, "m": 1}, "field 'm' is not in the schema"),
        ({"n": 2**63}, "column 'n' is int64: 9223372036854775808 has more than 64 bits: map it"),
        ({1: 1}, "1 names a field: only a text can"),
        (Total(1, 1), "field 'mean' is not in the schema"),
        (5, "field 'value' is not in the schema"),
    ],
)
def test_a_record_that_does_not_fit_is_named(value: Any, cause: str) -> None:
    """It is dealt with by ``application.on-error``; the others are not lost."""
    columns = LogColumns("sink")
    columns.batch_of([WindowResult("a", {"n": 1}, 0, 1)])
    columns.settle()
    bad = WindowResult("bad", value, 0, 1)

    with pytest.raises(OperatorError, match=cause) as caught:
        columns.batch_of([WindowResult("a", {"n": 1}, 0, 1), bad], [7, 8])
    assert "bad" in caught.value.record
    assert caught.value.event_time_ms == 8


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (WindowResult("a", {"key": 1}, 0, 1), "there are two columns 'key'"),
        (WindowResult("a", {}, 0, 1), "there are no fields in it"),
        (WindowResult(("a", 1), 1, 0, 1), "keys are tuples of 2 and other lengths, need the 3"),
        (WindowResult("a", 1, 0, 1), "for which there are the names x, y, z"),
        (5, "has no fields: map it"),
        ({"n": 2**63}, "column 'n': 9223372036854775808 has more than 64 bits"),
        ({"n": [{"m": -(2**64)}]}, "column 'n': -18446744073709551616 has more than 64 bits"),
        ({"n": "\ud800"}, "column 'n': .* has half a character"),
    ],
)
def test_what_has_no_columns_is_refused(value: Any, cause: str) -> None:
    names = ("x", "y", "z") if "x, y, z" in cause or "need the 3" in cause else ()

    with pytest.raises(OperatorError, match=cause):
        columns_of(value, key=names)


def test_records_of_several_types_are_refused() -> None:
    with pytest.raises(OperatorError, match="one type are needed, these are JoinResult, W"):
        columns_of(WindowResult("a", 1, 0, 1), JoinResult("a", 1, 1, 0, 1))
    with pytest.raises(OperatorError, match="records of one type are needed, these are Total, dic"):
        columns_of(Total(1, 0.5), {"n": 1, "mean": 0.5})


def test_what_spark_has_no_type_for_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"column 't' is time64\[us\]: Spark reads no times"):
        columns_of({"t": time(12)})
    columns = LogColumns("sink")
    columns.batch_of([{"s": {}}])
    with pytest.raises(ConfigError, match=r"column 's' is struct<>: it has no fields"):
        columns.settle()


def test_a_date_is_not_made_of_a_time() -> None:
    """Arrow would cut it, also inside of lists and maps."""
    schema = pa.schema({"key": pa.string(), "value": pa.list_(pa.map_(pa.date32(), pa.int64()))})
    value = [{datetime(2026, 1, 1, 12, tzinfo=UTC): 1}]

    with pytest.raises(OperatorError, match="more than the date"):
        columns_of(WindowResult("a", value, 0, 1), schema=schema)
    columns_of(WindowResult("a", [{date(2026, 1, 1): 1}], 0, 1), schema=schema)


cells = st.none() | st.integers(-(2**63), 2**63 - 1)
results = st.builds(
    WindowResult,
    st.text(),
    st.fixed_dictionaries({"n": cells}, optional={"m": cells}) | st.none(),
    st.integers(MIN_MS, MIN_MS) | st.integers(-(10**12), 10**12),
    st.integers(MAX_MS, MAX_MS) | st.integers(-(10**12), 10**12),
    st.integers(0, 2**31 - 1),
    st.sampled_from(["early", "on-time", "late"]),
    st.booleans(),
)


@given(st.lists(results, min_size=1))
def test_columns_have_what_was_in_the_results(values: list[WindowResult[str, Any]]) -> None:
    """Nothing is lost or swapped, however many there are, and whatever is missing."""
    schema = pa.schema({"key": pa.string(), "n": pa.int64(), "m": pa.int64()})

    rows = columns_of(*values, schema=schema).to_pylist()

    for row, each in zip(rows, values, strict=True):
        value = each.value or {}
        assert (row["key"], row["n"], row["m"]) == (each.key, value.get("n"), value.get("m"))
        assert (row["firing"], row["timing"], row["retracts"]) == each[4:]
        for moment, time_ms in ((row["window_start"], each.start), (row["window_end"], each.end)):
            is_end = time_ms in {MIN_MS, MAX_MS}
            assert moment is None if is_end else round(moment.timestamp() * 1000) == time_ms


@pytest.mark.parametrize("names", [("x", "y"), ()])
def test_keys_that_are_all_none_have_the_columns_of_others(names: tuple[str, ...]) -> None:
    columns = LogColumns("sink", key=names)
    columns.batch_of([WindowResult(("a", "b"), 1, 0, 1)])
    parts = names or ("key_1", "key_2")

    batch = columns.batch_of([WindowResult(None, 1, 0, 1), WindowResult(None, 2, 0, 1)])

    assert own(batch) == {**{part: [None, None] for part in parts}, "value": [1, 2]}


def test_a_key_that_is_none_has_no_part_where_keys_have_fields() -> None:
    """Their fields name the columns, whatever ``key`` says."""
    columns = LogColumns("sink", key=("user",))
    columns.batch_of([WindowResult(Total(1, 0.5), 1, 0, 1)])

    assert own(columns.batch_of([WindowResult(None, 1, 0, 1)]))["n"] == [None]


def test_a_text_is_no_tuple_of_its_letters() -> None:
    with pytest.raises(OperatorError, match="the key is 'pq', where other keys are tuples") as bad:
        columns_of(WindowResult(("x", "y"), 1, 0, 1), WindowResult("pq", 2, 0, 1))
    assert "pq" in bad.value.record


# -- times -----------------------------------------------------------------------------------

NAIVE = datetime(2026, 1, 2)  # noqa: DTZ001 - that is the point
AWARE = datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("first", "other", "cause"),
    [
        (NAIVE, AWARE, "has a time zone, and the column has none: take .astimezone"),
        (AWARE, NAIVE, "has no time zone, and the column has times of UTC: say which"),
        (AWARE, 1_700_000_000_000, "a number is no time as long as nobody knows its"),
        (NAIVE, 1.7e12, "a number is no time"),
        (NAIVE, Decimal(5), "a number is no time"),
    ],
)
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("together", [True, False])
def test_times_that_would_become_others_are_refused(
    first: Any, other: Any, cause: str, depth: int, *, together: bool
) -> None:
    """A zone is not guessed, nor a unit; in the first batch or later, inside of values or not."""
    columns = LogColumns("sink")
    good, bad = ({"at": (at, [at], {"in": [at]})[depth]} for at in (first, other))
    if not together:
        columns.batch_of([good])
        assert not columns.gather([bad])

    with pytest.raises(OperatorError, match="column 'at'" if together else cause) as caught:
        columns.batch_of([good, bad])

    assert caught.value.record == repr(bad)


@pytest.mark.parametrize(
    ("array", "kind", "cause"),
    [
        (pa.array([5], pa.timestamp("us")), pa.timestamp("us", "UTC"), "has no time zone"),
        (pa.array([5], pa.timestamp("us", "UTC")), pa.timestamp("us"), "has a time zone"),
        (pa.array([5]), pa.timestamp("us"), "a column of int64 has no times|a number is no time"),
        (
            pa.array([5.0]),
            pa.timestamp("us"),
            "a column of double has no times|a number is no time",
        ),
        (pa.array([1 << 62], pa.timestamp("us")), pa.timestamp("us"), "is in no year from 1"),
    ],
)
def test_columns_of_times_that_would_become_others_are_refused(
    array: Any, kind: Any, cause: str
) -> None:
    """Arrow would cast them, and say nothing."""
    columns = LogColumns("sink", schema=pa.schema({"at": kind}))

    with pytest.raises(OperatorError, match=cause):
        columns.batch_of(Table(pa.record_batch({"at": array})))


@pytest.mark.parametrize(
    ("start", "end"), [(0, 253_402_300_800_000), (-62_135_596_800_001, 0), (MIN_MS, 1 << 60)]
)
@pytest.mark.parametrize("rows", [1, 100])
def test_windows_of_no_year_are_refused(start: int, end: int, rows: int) -> None:
    """Microseconds were taken for ms; no reader could show them."""
    columns = gathering(WindowResult("a", 1, 0, 10))
    good, bad = WindowResult("a", 1, MIN_MS, MAX_MS), WindowResult("bad", 1, start, end)

    assert not columns.gather([good, bad])
    with pytest.raises(
        OperatorError, match="ms is in no year from 1 to 9999: times are in ms"
    ) as e:
        columns.batch_of([good] * rows + [bad])
    assert "bad" in e.value.record


def test_the_first_and_the_last_time_of_all_years_are_taken() -> None:
    columns = gathering(WindowResult("a", 1, 0, 10))
    edge = WindowResult("a", 1, -62_135_596_800_000, 253_402_300_799_999)

    assert columns.gather([edge])
    assert columns.gathered() == columns.batch_of([edge])
    assert columns.batch_of([edge])["window_end"].to_pylist()[0].year == 9999


# -- the first records -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "blamed", "kind"),
    [
        ([1, 2.5, "x"], "x", pa.float64()),
        ([1, "x", 2.5], "x", pa.float64()),
        ([None, "x", 2.5, 3, 2], 2.5, pa.string()),
        ([1, "x", "y", 2.5, "z"], "x", pa.float64()),
        (
            [{"b": [1]}, {"b": "x"}, {"b": [2.5]}],
            {"b": "x"},
            pa.struct({"b": pa.list_(pa.float64())}),
        ),
    ],
)
def test_those_of_the_first_records_that_fit_together_give_the_columns(
    values: list[Any], blamed: Any, kind: Any
) -> None:
    """None is blamed for what an earlier one alone would have been; one by one they fit, too."""
    columns = LogColumns("sink")
    records = [{"a": value} for value in values]

    with pytest.raises(OperatorError) as caught:
        columns.batch_of(records, [7] * len(records))

    assert caught.value.record == repr({"a": blamed})
    assert columns.schema is not None
    assert exact_schema(pa.schema({"a": kind})).field("a") == columns.schema.field("a")


# -- few records -----------------------------------------------------------------------------


def gathering(first: Any, *, times: Any = (), **options: Any) -> LogColumns:
    columns = LogColumns("sink", **options)
    columns.batch_of([first], times)
    return columns


RECORDS = st.one_of(
    st.builds(
        WindowResult,
        st.one_of(st.none(), st.text(max_size=2), st.integers()),
        st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.just({"n": 1})),
        st.sampled_from([MIN_MS, 0, 10, 1.5, True, None, "1", 1 << 62]),
        st.sampled_from([MAX_MS, 20, None]),
        st.integers(0, 1 << 32),
    ),
    st.fixed_dictionaries({"key": st.text(max_size=2)}, optional={"value": st.integers()}),
)


@given(st.lists(st.lists(RECORDS, min_size=1, max_size=3), max_size=5))
def test_gathered_records_have_the_columns_that_each_has_alone(calls: list[list[Any]]) -> None:
    """What is gathered would not have been refused, and gives the same rows."""
    columns = gathering(WindowResult("a", 1, 0, 10))
    alone = gathering(WindowResult("a", 1, 0, 10))

    kept = [call for call in calls if columns.gather(call, [7] * len(call))]

    rows = [row for call in kept for row in alone.batch_of(call, [7] * len(call)).to_pylist()]
    assert columns.gathered_rows == len(rows)
    assert columns.gathered().to_pylist() == rows
    assert columns.gathered_rows == 0


@pytest.mark.parametrize(
    ("record", "times"),
    [
        (WindowResult("a", 1, MIN_MS, MAX_MS), ()),
        (WindowResult(("a", 2), {"n": 1, "mean": 0.5}, 0, 10), ()),
        (WindowResult(None, Total(1, 0.5), 0, 10), ()),
        (JoinResult("a", 1, {"b": 2}, 0, 10), ()),
        ({"name": "a", "at": datetime(2026, 1, 2, tzinfo=UTC)}, [7]),
        ({"name": "a"}, Times.of([7])),
    ],
)
def test_usual_records_are_gathered(record: Any, times: Any) -> None:
    """Whatever they are of; else they would be slow, and nobody would notice."""
    columns = gathering(record, times=times)

    assert columns.gather([record], times)

    assert columns.gathered() == columns.batch_of([record], times)


@pytest.mark.parametrize(
    "records",
    [
        [WindowResult("a", 1.5, 0, 10)],
        [WindowResult("a", [1], 0, 10)],
        [WindowResult("a", 1, 0, 10), {"key": "a"}],
        [WindowResult("a", {"other": 1}, 0, 10)],
        [WindowResult("a", 1, True, 10)],
        [WindowResult("a", 1, 0, 10)] * 1000,
        Table(pa.RecordBatch.from_pydict({"key": ["a"]})),
        ["a"],
    ],
)
def test_others_and_many_are_not_gathered(records: Any) -> None:
    columns = gathering(WindowResult("a", 1, 0, 10))

    assert not columns.gather(records)

    assert columns.gathered_rows == 0


def test_nothing_is_gathered_before_there_are_columns() -> None:
    assert not LogColumns("sink").gather([WindowResult("a", 1, 0, 10)])
    assert LogColumns("sink").gathered_rows == 0
