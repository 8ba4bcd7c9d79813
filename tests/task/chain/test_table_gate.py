"""Rows of tables wait for event time as records do, see `gearpy.task.chain.table_gate`."""

from collections.abc import Callable, Sequence
from datetime import date
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.columns.row_schema import RowSchema, as_table, row_schema_of
from gearpy.core.base.fields import key_getter
from gearpy.core.join.sides import LEFT, RIGHT
from gearpy.expressions.computed_schema import ComputedSchema
from gearpy.ids import MAX_MS
from gearpy.messages.data import NOWHERE, Batch, Origin
from gearpy.messages.late_time import late_time
from gearpy.messages.table import Table, Times
from gearpy.state.stores.store import Section
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.event_gate import EventGate
from gearpy.task.chain.table_gate import SidesGate, TableGate
from gearpy.task.joins.join_schema import JoinSchema
from gearpy.task.joins.side_tables import SideSchema
from gearpy.task.joins.streams import join_key
from tests.task.build import a_context
from tests.task.chain.test_event_gate import snapshot_of


@gp.register_record
class Sold(NamedTuple):
    shop: str
    price: int


SALES = row_schema_of(Sold)
DICTS = RowSchema(SALES.arrow)
_SHOUT: Final = gp.col("shop").str.upper()
#: Of records like these with the key computed beside them.
_COMPUTED: Final = ComputedSchema(
    SALES.arrow.append(pa.field("= key", pa.string())),
    records=DICTS,
    computed=(("= key", _SHOUT.node),),
)
_key_of = itemgetter(0)


def gate_of(
    *, in_columns: bool, kept: Sequence[Section] = (), schema: RowSchema = SALES
) -> tuple[EventGate, TaskContext]:
    context = a_context()
    context.sources = 1
    assert context.keyed is not None
    context.keyed.load(kept)
    key: Callable[[Any], Any] = _key_of if schema is SALES else itemgetter("shop")
    if schema is _COMPUTED:
        key = key_getter("= key") if in_columns else _SHOUT
    gate = TableGate(context, key, schema) if in_columns else EventGate(context, key, waits="all")
    gate.restore(0, "step")
    return gate, context


def shown(
    gate: EventGate, watermark_ms: int, schema: RowSchema
) -> list[tuple[int, Any, list[int]]]:
    return [
        (
            at_ms,
            schema.rows(each.values.batch) if type(each.values) is Table else each.values,
            list(each.timestamps),
        )
        for at_ms, each in gate.due(watermark_ms)
    ]


TIMES = st.integers(0, 40)
ROWS = st.tuples(st.sampled_from("ab"), st.integers(0, 3), TIMES, st.just(0) | st.integers(0, 60))
ORIGINS = st.just(NOWHERE) | st.builds(
    lambda partition, offset, is_alone: Origin(0, partition, offset, is_alone=is_alone),
    *(st.integers(0, 2), st.integers(0, 99), st.booleans()),
)
STEPS = st.lists(
    TIMES | st.just("epoch") | st.tuples(ORIGINS, st.lists(ROWS, min_size=1, max_size=6)),
    max_size=12,
)


@given(
    steps=STEPS,
    changes_form=st.booleans(),
    schema=st.sampled_from([SALES, DICTS, _COMPUTED]),
)
def test_rows_of_tables_come_as_records_do(
    steps: list[Any], *, changes_form: bool, schema: RowSchema
) -> None:
    """Also behind a restart, after which rows may have become columns, or the other way round."""
    forms, kept, watermark_ms = [False, True], (list[Section](), list[Section]()), -1
    gates = [gate_of(in_columns=form, schema=schema) for form in forms]
    for step in [*steps, MAX_MS]:
        if step == "epoch":
            if changes_form:
                forms.reverse()
            for at, (gate, context) in enumerate(gates):
                gate.tell()
                kept[at].extend(snapshot_of(context))
                gates[at] = gate_of(in_columns=forms[at], kept=kept[at], schema=schema)
        elif isinstance(step, int):
            watermark_ms = max(watermark_ms, step)
            found = [shown(gate, watermark_ms, schema) for gate, _ in gates]
            assert found[0] == found[1]
            assert len({len(gate) for gate, _ in gates}) == 1
        else:
            origin, listed = step
            rows = [Sold(shop, price) for shop, price, _, _ in listed]
            values = rows if schema is SALES else [each._asdict() for each in rows]
            times = [late_time(time_ms, promised) for _, _, time_ms, promised in listed]
            for gate, _ in gates:
                is_table = isinstance(gate, TableGate)
                passed = gate.take(
                    Batch(
                        as_table(values, schema) if is_table else values,
                        Times.of(times) if is_table else times,
                        has_late=True,
                        origin=origin,
                    )
                )
                assert not len(passed)
            assert gates[0][0].first_ms == gates[1][0].first_ms


_DAY: Final = RowSchema(
    pa.schema([("k", pa.string()), ("day", pa.date32()), ("m", pa.int16()), ("n", pa.int64())])
)
#: Keys in columns: of one column or of several, some of which say nothing of the order.
_KEYS: Final = st.sampled_from([("m",), ("k", "m"), ("day", "m"), ("k",)])
_JOINED: Final = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["", "a", "ab", "b", "\U0001f600", "\uffff"]) | st.none(),
        "day": st.dates(date(2024, 1, 1), date(2024, 1, 3)),
        "m": st.integers(-200, 200) | st.integers(0, 2) | st.none(),
        "n": st.integers(0, 3),
    }
)


@given(
    key=_KEYS,
    steps=st.lists(
        st.tuples(st.sampled_from([LEFT, RIGHT]), ORIGINS, st.lists(_JOINED, min_size=1)),
        max_size=6,
    ),
)
def test_rows_of_a_side_come_as_records_do(
    key: tuple[str, ...], steps: list[tuple[int, Origin, list[dict[str, Any]]]]
) -> None:
    """All at one time, so that nothing else says which comes first."""
    joined = JoinSchema.of(_DAY, _DAY, [*map(_DAY.arrow.field, key)], "inner")
    schemas = [SideSchema.of(joined, side) for side in (LEFT, RIGHT)]
    in_rows = EventGate(
        a_context(),
        join_key,
        waits="all",
        sides_of=lambda values: [RIGHT - side for side, _, _ in values],
    )
    in_columns = SidesGate(a_context(), join_key, schemas)
    for side, origin, records in steps:
        keys = [tuple(map(each.get, key)) for each in records]
        values = [
            (side, of[0] if len(of) == 1 else of, {name: each[name] for name in _DAY.arrow.names})
            for of, each in zip(keys, records, strict=True)
        ]
        times = [5] * len(values)
        in_rows.take(Batch(values, times, origin=origin))
        table = schemas[side].table(values)
        in_columns.hold(Table(table), Times.of(times), side, origin.rank)

    found = [value for _, batch in in_rows.due(MAX_MS) for value in batch.values]

    for side, schema in enumerate(schemas):
        held = in_columns.due_of(side, MAX_MS)
        of_side = [] if held is None else schema.rows(held.rows)
        assert of_side == [value for value in found if value[0] == side]
