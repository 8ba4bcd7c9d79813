"""Previews of a stream: records of the program up to it, as lists and as tables."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import gearpy as gp
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError, OperatorError
from gearpy.testing import Simulation


def numbers(count: int = 10, *, parallelism: int = 1) -> Stream[int]:
    app = gp.StreamApp("look", parallelism=parallelism)
    return app.read(gp.collection(range(count), partitions=parallelism))


def test_a_look_returns_the_records_behind_the_steps() -> None:
    stream = numbers().map(lambda n: n * n)

    assert stream.head(3) == [0, 1, 4]
    assert stream.tail(3) == [49, 64, 81]
    assert stream.to_list() == [n * n for n in range(10)]
    assert stream.to_list(2) == [0, 1]


def test_a_look_has_the_records_of_all_tasks() -> None:
    assert sorted(numbers(1000, parallelism=3).to_list()) == [*range(1000)]


def test_a_look_touches_neither_sinks_nor_other_branches() -> None:
    written, seen = list[int](), list[int]()
    stream = numbers()
    small, large = stream.split(lambda n: n < 3)
    stream.inspect(seen.append).write(gp.to_list(written))

    assert small.to_list() == [0, 1, 2]
    assert large.head(2) == [3, 4]
    assert not written
    assert not seen


def test_a_program_runs_after_a_look_as_before() -> None:
    results = list[int]()
    app = gp.StreamApp("twice")
    stream = app.read(gp.collection([1, 2]))

    assert stream.head() == [1, 2]
    stream.write(gp.to_list(results))
    Simulation(app).run()
    assert results == [1, 2]


@pytest.mark.parametrize("look", [Stream.head, Stream.tail, Stream.to_list])
def test_a_stream_without_end_is_cut_at_so_many_records(
    look: Callable[[Stream[int], int], list[int]],
) -> None:
    stream = gp.StreamApp("endless").read(gp.generate(itertools.count, rate=5000))

    assert look(stream, 7) == [*range(7)]


def test_a_stream_without_end_is_cut_when_the_time_is_over() -> None:
    stream = gp.StreamApp("slow").read(gp.generate(itertools.count, rate=50))

    looks = (stream.tail(1_000_000, timeout_s=timeout_s) for timeout_s in (0.5, 2, 8, 32))
    found = next(filter(None, looks))

    assert found == [*range(len(found))]


def test_all_of_a_stream_without_end_is_refused() -> None:
    stream = gp.StreamApp("endless").read(gp.generate(itertools.count))

    with pytest.raises(ConfigError, match=r"generate\(count\) has no end.*to_list\(1000\)"):
        stream.to_list()


def test_windows_become_columns_with_types() -> None:
    events = [gp.Message("a", 0), gp.Message("b", 5), gp.Message("a", 12)]
    stream = gp.StreamApp("windows").read(gp.collection(events)).key_by(str)
    table = stream.window(gp.tumbling("10ms")).count().to_arrow()

    assert table.schema.names[:4] == ["window_start", "window_end", "key", "value"]
    assert sorted(zip(*table.select(["key", "value"]).to_pydict().values(), strict=True)) == [
        ("a", 1),
        ("a", 1),
        ("b", 1),
    ]


def test_columns_stay_columns() -> None:
    rows = gp.StreamApp("rows").read(gp.rows([{"n": 1}, {"n": 2}]))

    assert rows.to_arrow().schema.field("n").type == "int64"
    assert rows.filter(lambda row: row["n"] > 5).to_arrow().schema.names == ["n", "event_time"]


class _Sale(NamedTuple):
    shop: str
    price: int


def test_records_in_columns_are_those_of_rows() -> None:
    sales = [_Sale("north", 3), _Sale("south", 4)]
    columns = gp.StreamApp("look").read(gp.collection(sales, schema=_Sale))
    pairs = columns.key_by("shop").join(columns.key_by("shop"), gp.global_window())

    assert columns.head() == columns.tail() == columns.map(lambda sale: sale).head() == sales
    dear, _ = columns.split(gp.col("price") > 3)
    assert {type(each) for each in [*columns.head(), *dear.head()]} == {_Sale}
    assert sorted((each.left, each.right) for each in pairs.head()) == [(one, one) for one in sales]


def test_pandas_gets_the_same_columns() -> None:
    frame = numbers(3).to_pandas()

    assert frame["value"].tolist() == [0, 1, 2]
    assert str(frame["event_time"].dtype) == "datetime64[us, UTC]"


@pytest.mark.parametrize("bad", [0, -1, "all"])
def test_a_number_of_records_is_one(bad: Any) -> None:
    with pytest.raises(ConfigError, match="head"):
        numbers().head(bad)


def test_an_error_of_user_code_ends_at_the_look() -> None:
    with pytest.raises(OperatorError, match="ZeroDivisionError") as caught:
        numbers().map(lambda n: 1 // n).to_list()

    assert len(caught.traceback) == 2
    assert caught.value.record == "0"
