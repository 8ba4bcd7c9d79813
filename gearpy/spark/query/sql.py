"""Windows and aggregates over columns as Spark's own expressions.

They say what gearpy's windows and aggregates say, also where Spark's of the same name do not:
`session_window` joins sessions that only touch, ``max`` takes NaN for the greatest number, and a
sum of longs overflows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.windows import (
    GlobalWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
)
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.spark.query.plan import TIME, GroupStep

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_START: Final = "__start"
_END: Final = "__end"
_NUMBERS: Final = frozenset({"sum", "mean", "variance", "stddev"})
_KINDS: Final = _NUMBERS | {"count", "min", "max", "distinct", "any", "all"}
#: Exact as long as a sum has no more digits.
_EXACT: Final = "decimal(38,0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlGroup:
    """An aggregate of windows that SQL can compute, of columns of these types.

    Attributes:
        schema: the columns that it needs, of the types in which Spark gets them.
    """

    step: GroupStep
    schema: pa.Schema

    def cells(self, batch: pa.RecordBatch) -> tuple[list[Any], list[Any], list[int], list[int]]:
        columns = self.step.columns
        parts = [batch.column(f"k{at}").to_pylist() for at in range(len(columns))]
        keys: list[Any] = list(zip(*parts, strict=True)) if len(parts) > 1 else [*parts, []][0]
        values = [_values(each, at, batch) for at, each in enumerate(self.step.aggregates.values())]
        names = list(self.step.aggregates)
        made: list[Any] = values[0]
        if not self.step.is_single:
            made = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
        starts, ends = (batch.column(name).to_pylist() for name in (_START, _END))
        return keys if columns else [None] * len(starts), made, starts, ends


def sql_group(step: GroupStep, schema: pa.Schema | None) -> SqlGroup | None:
    """Return how SQL aggregates columns of a schema; None if it cannot, or not exactly."""
    if schema is None or step.fold is not None or (step.key is not None and not step.columns):
        return None
    if not isinstance(
        step.windows, TumblingWindows | SlidingWindows | GlobalWindows | SessionWindows
    ):
        return None
    if not all(_is_known(each, schema) for each in step.aggregates.values()):
        return None
    of = [each.of for each in step.aggregates.values() if isinstance(each.of, str)]
    fields = []
    for name in dict.fromkeys([*step.columns, *of]):
        kind = _exact_type(schema.field(name).type) if name in schema.names else None
        if kind is None:
            return None
        fields.append(pa.field(name, kind))
    names = [field.name for field in fields]
    return SqlGroup(step=step, schema=pa.schema(fields)) if tells_apart(names) else None


def tells_apart(names: Sequence[str]) -> bool:
    return len({name.casefold() for name in [*names, TIME]}) == len(names) + 1


def grouped(frame: "DataFrame", group: SqlGroup) -> "DataFrame":
    step = group.step
    keys = [f"k{at}" for at in range(len(step.columns))]
    inputs = {name: f"x{at}" for at, name in enumerate(group.schema.names)}
    frame = frame.select(  # Whatever the columns are called.
        TIME,
        *(_column(name).alias(key) for key, name in zip(keys, step.columns, strict=True)),
        *(_column(name).alias(of) for name, of in inputs.items()),
    )
    made = dict(_aggregates(step.aggregates, group.schema, inputs))
    aggregates = [column.alias(name) for name, column in made.items()]
    if isinstance(step.windows, SessionWindows):
        from pyspark.sql import Window  # noqa: PLC0415 - only here
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name

        gap = _long(step.windows.gap_ms)
        in_order = Window.partitionBy(*(F.col(key) for key in keys)).orderBy(TIME)
        before = F.lag(TIME).over(in_order)
        begins = F.when(before.isNull() | (F.col(TIME) - before >= gap), 1).otherwise(0)
        so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        numbered = frame.withColumn("__begins", begins)
        numbered = numbered.withColumn("__session", F.sum("__begins").over(so_far))
        found = numbered.groupBy(*keys, "__session").agg(
            F.min(TIME).alias(_START), (F.max(TIME) + gap).alias(_END), *aggregates
        )
    else:
        found = _in_windows(frame, step).groupBy(*keys, _START, _END).agg(*aggregates)
    return found.select(*keys, *made, _START, _END)


# -- which columns it can take ---------------------------------------------------------------------


def _exact_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which Spark gets values exactly, and treats them as Python does."""
    types = pa.types
    if types.is_boolean(kind):
        return pa.bool_()
    if types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if types.is_float32(kind) or types.is_float64(kind):
        return pa.float64()
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    return None


def _is_known(aggregate: Aggregate, schema: pa.Schema) -> bool:
    if aggregate.kind == "count":
        return True
    if aggregate.kind not in _KINDS or not isinstance(aggregate.of, str):
        return False
    if aggregate.where is not None:
        return False
    if aggregate.of not in schema.names:
        return False
    kind = schema.field(aggregate.of).type
    return (
        aggregate.kind not in _NUMBERS
        or pa.types.is_integer(kind)
        or bool(pa.types.is_floating(kind))
    )


# -- windows ---------------------------------------------------------------------------------------


def _in_windows(frame: "DataFrame", step: GroupStep) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; only here

    windows, time = step.windows, F.col(TIME)
    if isinstance(windows, GlobalWindows):
        return frame.withColumns({_START: _long(MIN_MS), _END: _long(MAX_MS)})
    if isinstance(windows, TumblingWindows):
        start = time - F.pmod(time - _long(windows.offset_ms), _long(windows.size_ms))
        frame = frame.withColumn(_START, start)
    else:
        assert isinstance(windows, SlidingWindows)
        every = windows.every_ms
        frame = frame.withColumn(
            "__last", time - F.pmod(time - _long(windows.offset_ms), _long(every))
        )
        size = windows.size_ms
        first = F.expr(f"`__last` - (({size - 1} - (`{TIME}` - `__last`)) div {every}) * {every}")
        starts = F.sequence(first, F.col("__last"), _long(every))
        frame = frame.withColumn(_START, F.explode(starts))
    # A window that would end behind the end of time ends there.
    last = _long(MAX_MS - windows.size_ms)
    end = F.when(F.col(_START) > last, _long(MAX_MS)).otherwise(
        F.col(_START) + _long(windows.size_ms)
    )
    return frame.withColumn(_END, end)


# -- aggregates ------------------------------------------------------------------------------------


def _aggregates(
    aggregates: Mapping[str, Aggregate], schema: pa.Schema, inputs: Mapping[str, str]
) -> Iterator[tuple[str, "Column"]]:
    """Yield the columns of each aggregate; a mean has its sum and its number."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; only here

    for at, each in enumerate(aggregates.values()):
        name = f"v{at}"
        if each.kind == "count":
            yield name, F.count(F.lit(1))
            continue
        assert isinstance(each.of, str), "checked before"
        value = F.col(inputs[each.of])
        is_float = bool(pa.types.is_floating(schema.field(each.of).type))
        match each.kind:
            case "sum" | "mean":
                yield name, F.sum(value if is_float else value.cast(_EXACT))
                if each.kind == "mean":
                    yield f"{name}n", F.count(value)
            case "min":
                yield name, F.min(value)
            case "max":  # Spark takes NaN for the greatest number.
                numbers = F.max(F.when(~F.isnan(value), value)) if is_float else F.max(value)
                yield name, F.coalesce(numbers, F.max(value)) if is_float else numbers
            case "distinct":
                yield name, F.count_distinct(value)
            case "variance":
                spread = F.var_samp if each.option else F.var_pop
                yield name, spread(value.cast("double"))
            case "stddev":
                spread = F.stddev_samp if each.option else F.stddev_pop
                yield name, spread(value.cast("double"))
            case _:  # Whether some value, or each, is true in Python's eyes; None is no value.
                text = value.cast("string")
                is_false = F.when(F.typeof(value) == "string", text == "").otherwise(
                    text.isin("0", "0.0", "-0.0", "false")
                )
                found = F.bool_or(~is_false) if each.kind == "any" else F.bool_and(~is_false)
                yield name, F.coalesce(found, F.lit(each.kind == "all"))


def _values(aggregate: Aggregate, at: int, batch: pa.RecordBatch) -> list[Any]:
    found: list[Any] = batch.column(f"v{at}").to_pylist()
    if aggregate.kind in {"sum", "mean"}:
        found = [int(value) if isinstance(value, Decimal) else value for value in found]
    if aggregate.kind == "mean":
        numbers = batch.column(f"v{at}n").to_pylist()
        found = [s / n if n else None for s, n in zip(found, numbers, strict=True)]
    return found


def _column(name: str) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; only here

    return F.col("`" + name.replace("`", "``") + "`")


def _long(number: int) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; only here

    return F.lit(number).cast("long")
