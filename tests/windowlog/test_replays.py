"""Rows that come again: each is left out as often as it was shown, and the right one."""

from collections import Counter
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.windowlog.replays import Replays

SCHEMA = pa.schema({"key": pa.int64(), "value": pa.string()})
Row = tuple[int, str]
ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc")), max_size=12)


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = [[row[place] for row in rows] for place in range(2)]
    return pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def rows_of(batch: pa.RecordBatch | None) -> list[Row]:
    return [] if batch is None else [tuple(row.values()) for row in batch.to_pylist()]


def expecting(rows: list[Row], identity: tuple[str, ...] = ("key",)) -> Replays:
    replays = Replays(identity)
    replays.expect(pa.Table.from_batches([batch_of(rows)]))
    return replays


def written(replays: Replays, parts: list[list[Row]]) -> list[Row]:
    rows = [row for part in parts for row in rows_of(replays.without(batch_of(part)))]
    return rows + rows_of(replays.settle())


@given(st.data(), ROWS, ROWS, st.sampled_from([(), ("key",), ("key", "value")]))
def test_what_comes_again_in_any_order_is_there_as_often_as_it_came(
    data: st.DataObject, shown: list[Row], others: list[Row], identity: tuple[str, ...]
) -> None:
    epoch = data.draw(st.permutations(shown + others))
    cut = data.draw(st.integers(0, len(epoch)))
    replays = expecting(shown, identity)

    rows = written(replays, [epoch[:cut], epoch[cut:]])

    assert Counter(rows) == Counter(others)
    assert len(replays) == 0


@given(ROWS, ROWS)
def test_rows_with_other_values_are_left_out_as_often_as_they_were_shown(
    shown: list[Row], epoch: list[Row]
) -> None:
    replays = expecting(shown)
    before, came = (Counter(key for key, _ in rows) for rows in (shown, epoch))

    rows = written(replays, [epoch])

    assert Counter(key for key, _ in rows) == came - before
    assert len(replays) == (before - came).total()


@given(ROWS, ROWS, ROWS)
def test_a_restart_between_epochs_changes_nothing(
    shown: list[Row], first: list[Row], second: list[Row]
) -> None:
    replays, restarted = expecting(shown), Replays(("key",))
    assert rows_of(replays.settle()) == []
    written(replays, [first])

    restarted.restore(replays.snapshot())

    assert len(restarted) == len(replays)
    assert written(restarted, [second]) == written(replays, [second])


FAR = 1 << 62


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        (pa.timestamp("us", "UTC"), FAR),
        (pa.date32(), 1 << 30),
        (pa.list_(pa.timestamp("us")), [FAR]),
        (pa.struct({"at": pa.timestamp("us", "UTC")}), {"at": FAR}),
        (pa.map_(pa.string(), pa.timestamp("us")), [("a", FAR)]),
    ],
)
def test_times_that_python_has_not_come_again_like_others(kind: Any, cell: Any) -> None:
    """They were written before anybody looked; a restart must get over them."""
    table = pa.table({"at": pa.array([cell, None], kind), "n": [1, 2]})
    replays = Replays(("at",))
    replays.expect(table)

    assert replays.without(table.to_batches()[0]).num_rows == 0
    assert len(replays) == 0


def test_rows_of_times_that_python_has_not_are_found_twice() -> None:
    table = pa.table({"at": pa.array([FAR, FAR, 5], pa.timestamp("us"))})
    replays = Replays(("at",))

    assert replays.seen(table) == [{"at": FAR}]
    assert len(replays.seen(table.slice(2))) == 1
