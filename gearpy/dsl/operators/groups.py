"""Operators that fold the records of a key, or all, into values: running, or in windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from gearpy.columns.row_schema import RowSchema
from gearpy.core.base.fields import FieldGetter, FieldsGetter, key_getter
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.trigger import Pending, counts_records, phases_of, records_wanted
from gearpy.core.window.windows import (
    CountWindows,
    DisjointWindows,
    GlobalWindows,
    LocalSlidingWindows,
    LocalWindows,
    OverlappingWindows,
    SessionWindows,
    Windows,
    too_many_windows,
)
from gearpy.dsl.operators.by_names import ByNames, by_names, computing
from gearpy.dsl.operators.keyed import in_order
from gearpy.dsl.operators.keys import Key, key_of, sent_key
from gearpy.dsl.operators.operator import (
    ActsInside,
    GivesNewRecords,
    IgnoresOrder,
    KeepsNothing,
    Kind,
    NeverWritten,
    Operator,
    Order,
    Placing,
    Refusal,
    SeesOrder,
    Sides,
    TakesRows,
    TakesTables,
    TwinPlace,
    operator,
    reads_attributes,
)
from gearpy.dsl.operators.routes import ProcessOperator, SideOperator
from gearpy.dsl.operators.signature import aggregates_text, by_text, key_text, windows_text
from gearpy.expressions.expr import Expr, col
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.spark.query.plan import GroupStep
from gearpy.task.aggregates.fold import Fold, PerBatchStage, RunningFold
from gearpy.task.aggregates.rolling import RollingSpan, RollingStage
from gearpy.task.aggregates.row_count import PartialCount, key_of_part, merging_counts
from gearpy.task.aggregates.rows import OF_ORDER, RunningAggregate, fold_of, one_or_all
from gearpy.task.aggregates.windows import window_stage
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.chain.event_gate import ordered_stage
from gearpy.task.chain.stage import Stage
from gearpy.task.time.late import LATE, WindowLate

if TYPE_CHECKING:
    from gearpy.task.aggregates.columns import ColumnGroups

#: Aggregates that depend on the order of records with the same time.
_TIED: Final = frozenset({"first", "last", "collect", "arg_min", "arg_max"})


class Grouping(TakesRows, GivesNewRecords, SeesOrder, ActsInside):
    """The common answers of folds and aggregates."""

    windows: Windows | None
    late: WindowLate
    is_per_batch: bool

    @property
    def gives_results(self) -> bool:
        return self.windows is not None

    @property
    def order(self) -> Order:
        if self.windows is not None and self.windows.clock == "processing":
            return "wall time"
        if self._sees_order:
            return self._order_by(self.key)
        is_early = self.windows is not None and phases_of(self.windows.trigger)[0] is not None
        return "arrival" if is_early else ""

    @property
    def _sees_order(self) -> bool:
        return True

    @property
    def _in_windows(self) -> str:
        windows = f" in {windows_text(self.windows)}" if self.windows is not None else ""
        return f"{by_text(self.key)}{windows}"

    def mistakes(self) -> Iterator[str]:
        found = [] if self.windows is None else too_many_windows(self.windows)
        yield from (f"{self.name}: {mistake}" for mistake in found)

    def _stages(
        self,
        context: TaskContext,
        sides: Sides,
        fold: Fold,
        running: Callable[..., Stage] = RunningFold,
    ) -> list[Stage]:
        if self.windows is None:
            assert self.key is not None, "without windows there is a key"
            key = self.key.function
            stage = running(context, self.name, key, fold)
            if self.is_per_batch:
                stage = PerBatchStage(stage)
            return [ordered_stage(context, stage, key, waits=self.waits)]
        tag = sides.get((self, LATE))
        stage = window_stage(
            context,
            self.name,
            self.windows,
            None if self.key is None else self.key.function,
            fold,
            limit=context.limits.batch_records,
            late="drop" if self.late == "side" and tag is None else self.late,
            late_tag=tag or LATE,
            waits="all" if self.waits else "late",
        )
        return [stage]

    def _twin(
        self,
        *,
        aggregates: Mapping[str, Aggregate],
        is_single: bool = False,
        fold: Fold | None = None,
    ) -> GroupStep | Refusal:
        if self.windows is None:
            return Refusal(
                "it gives a result after every record: add .window(...), such as gp.global_window()"
            )
        reason = _reason_of(self.windows)
        if reason:
            return Refusal(reason)
        return GroupStep(
            name=self.name,
            windows=self.windows,
            key=None if self.key is None else sent_key(self.key),
            columns=() if self.key is None else self.key.columns,
            aggregates=aggregates,
            is_single=is_single,
            fold=fold,
            takes=self.inputs[0].schema_given(declared=False),
        )


@operator
class FoldOperator(Grouping):
    """A user's function over the records of a key (None: over all), running or per window."""

    windows: Windows | None
    fold: Fold
    late: WindowLate = "drop"
    is_per_batch = False

    @property
    def keeps(self) -> str:
        return f"one value{self._in_windows}"

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        return self._stages(context, sides, self.fold)

    def twin(self, place: TwinPlace) -> GroupStep | Refusal:
        return self._twin(aggregates={}, fold=self.fold)


@operator
class AggregateOperator(Grouping):
    """Named aggregates over the records of a key (None: over all), running or per window."""

    kind: str = "aggregate"
    windows: Windows | None
    aggregates: Mapping[str, Aggregate]
    is_single: bool = False
    late: WindowLate = "drop"
    only_changed: bool = False
    is_per_batch: bool = False
    #: Of columns of which each row has a result, in the plan that will run; and what is behind it.
    run_schema: RowSchema | None = None
    run_into_rows: bool = False

    @property
    def keeps(self) -> str:
        batch = " for each batch" if self.is_per_batch else ""
        return f"{aggregates_text(self.aggregates)}{batch}{self._in_windows}"

    @property
    def order(self) -> Order:
        commutes = not self._sees_order or not self._is_of_order
        return "arrival" if self.is_per_batch and commutes else super().order

    @property
    def _is_of_order(self) -> bool:
        return any(each.kind in OF_ORDER for each in self.aggregates.values())

    @property
    def fold(self) -> Fold:
        of = one_or_all(self.aggregates, is_single=self.is_single)
        return fold_of(of, only_changed=self.only_changed)

    @property
    def _sees_order(self) -> bool:
        if self.windows is None or isinstance(self.windows, CountWindows):
            return True
        return self._is_of_order

    def named_fields(self) -> Iterator[tuple[Operator, Sequence[str]]]:
        yield from super().named_fields()
        of = dict.fromkeys(name for each in self.aggregates.values() for name in each.fields)
        yield self.inputs[0], [name for name in of if isinstance(name, str)]

    def named_expressions(self) -> Iterator[tuple[Operator, Sequence[Expr]]]:
        yield from super().named_expressions()
        fields = (of for each in self.aggregates.values() for of in each.fields)
        if found := [of for of in fields if isinstance(of, Expr)]:
            yield self.inputs[0], found

    @cached_property
    def by_names(self) -> ByNames:
        return by_names(self.key, self.aggregates)

    def fields_told(self) -> Mapping[str, Any]:
        return {} if self.windows is None else self.types_told()

    def types_told(self) -> Mapping[str, Any]:
        """Return Arrow types of the aggregates, as far as they are known."""
        schema = self.inputs[0].schema_given(declared=False)
        types = {} if schema is None else self.by_names.types(schema)
        named = self.by_names.aggregates.items()
        if self.is_single:
            named = {"value": next(iter(self.by_names.aggregates.values()))}.items()
        found = {name: _result_type(each, types) for name, each in named}
        return {name: kind for name, kind in found.items() if kind is not None}

    def kind_taken(self, given: Sequence[Kind]) -> Kind:
        is_table = self.aggregates_columns(given) or self.runs_columns(given)
        return "table" if is_table else "rows"

    def kind_given(self, taken: Kind) -> Kind:
        return "rows" if self.run_schema is None else "table"

    def runs_columns(self, given: Sequence[Kind]) -> bool:
        """Tell whether columns give a result after each row, if the inputs give these forms."""
        return [*given] == ["table"] and self.windows is None and self._why_no_runs is None

    @cached_property
    def _why_no_runs(self) -> str | None:
        """Say why there are no results after each row of columns; empty if that is told elsewhere.

        None if there are.
        """
        if self.is_per_batch or self.only_changed or self.key is None:
            return ""
        if not (self.key.columns or self.key.expressions):
            return "its key is a function: a name or an expression keeps them"
        schema, arrow, names = self.inputs[0].schema_given(declared=False), None, self.by_names
        if schema is not None and not reads_attributes(names.computed, schema):
            arrow = names.schema(schema)
        if arrow is None:
            return "it gives a result after every record, which needs a schema"
        from gearpy.task.aggregates.columns import columnar_mistakes  # noqa: PLC0415 - Arrow
        from gearpy.task.aggregates.running_tables import runs_in_columns  # noqa: PLC0415 - same

        if found := columnar_mistakes(GlobalWindows(), names.key, names.aggregates, arrow):
            return "; ".join(found)
        for each in names.aggregates.values():
            if not runs_in_columns(each, arrow):
                return f"{each} after every record is not found in columns, as per_batch() is"
        return None if self.results is not None else "two of its results would have one name"

    def aggregates_columns(self, given: Sequence[Kind]) -> bool:
        """Tell whether columns are aggregated, if the inputs give these forms."""
        return [*given] == ["table"] and self._why_rows is None

    @property
    def why_rows(self) -> str:
        return self._why_rows or ""

    @property
    def _why_rows(self) -> str | None:
        """Say why columns are not aggregated; empty if that is told elsewhere; None if they are.

        They are in windows that drop what is too late, or for each batch, by names of columns or
        over all records, if every aggregate has a way of its own for columns of that type.
        """
        windows = GlobalWindows() if self.is_per_batch else self.windows
        if windows is None:
            return self._why_no_runs or ""
        if self.late != "drop":
            return "it does not drop what is late, and that is a matter of single records"
        if self.is_per_batch and self._is_of_order:
            return "it sees the order of records"
        if self.key is not None and not (self.key.columns or self.key.expressions):
            return "its key is a function: a name or an expression keeps them"
        # A program without columns needs no Arrow.
        from gearpy.task.aggregates.columns import columnar_mistakes  # noqa: PLC0415
        from gearpy.task.aggregates.merge_tables import mergeable  # noqa: PLC0415

        schema, names = self.inputs[0].schema_given(declared=False), self.by_names
        arrow = None if schema is None else names.schema(schema)
        if schema is not None and (arrow is None or reads_attributes(names.computed, schema)):
            return ""
        mistakes = columnar_mistakes(windows, names.key, names.aggregates, arrow)
        if isinstance(windows, SessionWindows) and windows.is_plain and not mistakes:
            if arrow is None:
                mistakes.append("sessions need a schema")
            elif not mergeable(names.aggregates, arrow):
                mistakes.append("an aggregate of sessions has no way to be merged in columns")
        if not mistakes and counts_records(phases_of(windows.trigger)[0]):
            can_merge = arrow is not None and mergeable(names.aggregates, arrow)
            if not can_merge or _fires_alone(windows):
                mistakes.append("its trigger counts records one by one, which rows do sooner")
        return "; ".join(mistakes) or None

    @property
    def columns_taken(self) -> Any:
        """The schema of the tables that are aggregated; None if nothing tells it."""
        schema = self.inputs[0].schema_given(declared=False)
        return None if schema is None else self.by_names.schema(schema)

    @property
    def results(self) -> Any:
        """The schema of results as a table; None if something does not tell it.

        It is asked only where columns are aggregated.
        """
        schema, names = self.columns_taken, self.by_names
        if schema is None:
            return None
        import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

        from gearpy.task.aggregates.merge_tables import mergeable  # noqa: PLC0415 - as above

        values = self.types_told()
        if len(values) < len(self.aggregates) or any(map(pa.types.is_null, values.values())):
            return None
        keys = [schema.field(name).type for name in names.key]
        if self.windows is not None and not mergeable(names.aggregates, schema):
            return None
        return self._results_of(keys, values)

    def _results_of(self, keys: Sequence[Any], values: Mapping[str, Any]) -> Any:
        from gearpy.columns.results import results_schema, running_schema  # noqa: PLC0415 - Arrow

        if self.windows is None:
            running = running_schema(keys, values, is_single=self.is_single)
            return None if running is None else running.arrow
        is_local = isinstance(self.windows, LocalWindows | LocalSlidingWindows)
        return results_schema(keys, values, is_local=is_local, is_single=self.is_single)

    @property
    def result_names(self) -> frozenset[str]:
        results = self.results if self.aggregates_columns(["table"]) else None
        return frozenset() if results is None else frozenset(results.names)

    def schema_given(self, *, declared: bool) -> RowSchema | None:
        """Return the columns of results without windows, where they can be a table."""
        is_columnar = self.aggregates_columns(["table"]) or self.runs_columns(["table"])
        if declared or self.windows is not None or not is_columnar:
            return None
        results = self.results
        if results is None:
            return None
        from gearpy.columns.results import RunningSchema  # noqa: PLC0415 - it loads Arrow

        return RunningSchema(results, tuple)

    def parts(self, placing: Placing) -> list[Operator]:
        names = self.by_names
        if self.runs_columns(placing.given):
            before = [computing(self, placing.inputs[0], names.computed)] if names.computed else []
            schema = self.inputs[0].schema_given(declared=False)
            assert schema is not None, "else it takes rows"
            run = self.changed(
                inputs=(*before,) or placing.inputs,
                origin=self.origin or self,
                key=self._merged_key,
                run_schema=RowSchema(names.schema(schema)) if before else schema,
                run_into_rows={*placing.wanted} == {"rows"},
            )
            return [*before, run]
        if self.aggregates_columns(placing.given):
            if not names.computed:
                return self._columnar_parts(placing)
            expressions = (*map(col, names.read), *names.computed)
            columns = computing(self, placing.inputs[0], expressions, keeps=False)
            placing = replace(placing, inputs=(columns,))
            return [columns, *self._columnar_parts(placing)]
        if (
            [*placing.given] == ["rows"]
            and self.key is not None
            and (self.parallelism or placing.parallelism) > 1
            and [each.kind for each in self.aggregates.values()] == ["count"]
            and isinstance(self.windows, DisjointWindows)
            and self.windows.is_plain
            and self.late == "drop"
            and not isinstance(self.inputs[0], ProcessOperator | SideOperator)
            and placing.is_only_reader
        ):
            return self._two_parts(placing, PartialCountOperator, MergeCountOperator)
        return super().parts(placing)

    def _columnar_parts(self, placing: Placing) -> list[Operator]:
        partial, merging = self._two_parts(
            placing, PartialAggregateOperator, MergeAggregateOperator
        )
        if {*placing.wanted} == {"table"} and self.results is not None:
            merging = merging.changed(gives="table")
        return [partial, merging]

    def _two_parts(
        self, placing: Placing, first: Callable[..., Operator], last: Callable[..., Operator]
    ) -> list[Operator]:
        partial = first(
            name=f"partial {self.name}",
            kind="partial",
            inputs=placing.inputs,
            of=self,
            origin=self,
            part="partial",
        )
        merging = last(
            name=self.name,
            given=self.given,
            kind="merge_partial",
            inputs=(partial,),
            parallelism=self.parallelism,
            key=Key(key_of_part) if last is MergeCountOperator else self._merged_key,
            of=self,
            origin=self,
        )
        return [partial, merging]

    @property
    def _merged_key(self) -> Key | None:
        """The key in the tables of partial aggregates."""
        if self.key is None or not self.key.expressions:
            return self.key
        return key_of("key_by", self.by_names.key)

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        schema, key = self.run_schema, self.key
        if schema is None or key is None:
            return self._stages(context, sides, self.fold, RunningAggregate)
        written = self.origin
        assert isinstance(written, AggregateOperator), "it is in its place"
        getter = key_getter(*key.columns)
        stage = self._run(context, getter, written.by_names.aggregates, schema, written.results)
        return [in_order(context, stage, getter, schema, waits=self.waits)]

    def _run(
        self,
        context: TaskContext,
        key: FieldGetter | FieldsGetter,
        aggregates: Mapping[str, Aggregate],
        schema: RowSchema,
        results: Any,
    ) -> Stage:
        """Make the stage that gives a result after each row of columns."""
        from gearpy.task.aggregates.running_tables import RunningTables  # noqa: PLC0415 - Arrow

        fold = fold_of(one_or_all(aggregates, is_single=self.is_single))
        given = context, self.name, key, fold, aggregates
        rows = self.run_into_rows
        return RunningTables(*given, schema=schema, results=results, may_be_rows=rows)

    def twin(self, place: TwinPlace) -> GroupStep | Refusal:
        tied = [str(each) for each in self.aggregates.values() if each.kind in _TIED]
        forgetful = [str(each) for each in self.aggregates.values() if each.kind == "heavy_hitters"]
        if self.windows is not None and forgetful:
            return Refusal(
                f"{forgetful[0]} forgets rare values, which depends on the order of records: count "
                "by key_by(value).window(...).count(), or use agg.mode(...)"
            )
        if self.windows is not None and place.is_grouped and tied:
            return Refusal(
                f"{tied[0]} depends on the order in which the results of the windows before come, "
                "which have the same time"
            )
        return self._twin(aggregates=self.aggregates, is_single=self.is_single)


@operator
class RollingOperator(AggregateOperator):
    """The last records of a key after each one, or some aggregates of them."""

    kind: str = "rolling"
    windows: Windows | None = None
    span: RollingSpan

    @property
    def keeps(self) -> str:
        return f"the last records{by_text(self.key)}"

    @cached_property
    def _why_no_runs(self) -> str | None:
        if not self.aggregates:
            return "a list of records is no column: give aggregates"
        for each in self.aggregates.values():
            if each.kind == "distinct":
                return f"{each} of the last records is not found in columns"
        return super()._why_no_runs

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        if self.run_schema is not None:
            return super().make_stages(context, sides)
        assert self.key is not None, "it is by key"
        fold, key = self.fold if self.aggregates else None, self.key.function
        stage = RollingStage(context, self.name, key, self.span, fold)
        return [ordered_stage(context, stage, key, waits=self.waits)]

    def _run(
        self,
        context: TaskContext,
        key: FieldGetter | FieldsGetter,
        aggregates: Mapping[str, Aggregate],
        schema: RowSchema,
        results: Any,
    ) -> Stage:
        from gearpy.task.aggregates.rolling_tables import RollingTables  # noqa: PLC0415 - Arrow

        given = context, self.name, key, self.span, fold_of(aggregates)
        more = {"results": results, "may_be_rows": self.run_into_rows}
        return RollingTables(*given, aggregates=aggregates, schema=schema, **more)

    def twin(self, place: TwinPlace) -> GroupStep | Refusal:
        return Refusal("which records are the last depends on the order in which they come")


class _Part(GivesNewRecords, KeepsNothing, IgnoresOrder, NeverWritten):
    """The common answers of the parts of an aggregate."""

    of: AggregateOperator

    def _columnar(self) -> ColumnGroups:
        from gearpy.task.aggregates.columns import ColumnGroups  # noqa: PLC0415 - Arrow

        windows = self.of.windows or GlobalWindows()
        assert isinstance(windows, DisjointWindows | OverlappingWindows | SessionWindows)
        names = self.of.by_names
        aggregates = one_or_all(names.aggregates, is_single=self.of.is_single)
        return ColumnGroups(windows, names.key, aggregates)


@operator
class PartialAggregateOperator(TakesTables, _Part):
    """Aggregates columns by window and key, before they are sent to the task of the key."""

    of: AggregateOperator

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.aggregates.columns import PartialAggregateStage  # noqa: PLC0415 - Arrow

        is_running = self.of.windows is None
        return [PartialAggregateStage(context, self.name, self._columnar(), is_running=is_running)]


@operator
class MergeAggregateOperator(TakesTables, _Part):
    """Merges partial aggregates of columns; gives its results in the form that is wanted."""

    of: AggregateOperator
    gives: Kind = "rows"

    def kind_given(self, taken: Kind) -> Kind:
        return self.gives

    @property
    def gives_results(self) -> bool:
        return self.of.gives_results

    @property
    def keeps(self) -> str:
        return f"{self.of.keeps}, from columns"

    @property
    def shown_key(self) -> str:
        return key_text(self.of.key)

    @property
    def order(self) -> Order:
        lists = any(each.kind == "collect" for each in self.of.aggregates.values())
        return "arrival" if lists or self.of.is_per_batch else self.of.order

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        from gearpy.task.aggregates.columns import (  # noqa: PLC0415 - Arrow
            MergeAggregateStage,
            MergeRunningStage,
        )
        from gearpy.task.aggregates.merge_panes import MergePanesStage  # noqa: PLC0415 - the same
        from gearpy.task.aggregates.merge_sessions import (  # noqa: PLC0415 - the same
            MergeSessionsStage,
        )
        from gearpy.task.aggregates.merge_tables import (  # noqa: PLC0415 - the same
            MergeRunningTables,
            MergeTablesStage,
            mergeable,
            merges_at_once,
        )

        given = context, self.name, self._columnar()
        results = self.of.results if self.gives == "table" else None
        windows, schema = self.of.windows, self.of.columns_taken
        if windows is None:
            # Results that become rows cost what they are kept as here.
            if results is not None and merges_at_once(self.of.by_names.aggregates, schema):
                return [MergeRunningTables(*given, schema=schema, results=results)]
            return [MergeRunningStage(*given, results)]
        if not windows.is_plain:
            return [MergePanesStage(*given, schema=schema, results=results)]
        if isinstance(windows, SessionWindows):
            return [MergeSessionsStage(*given, schema=schema, results=results)]
        if schema is None or not mergeable(self.of.by_names.aggregates, schema):
            return [MergeAggregateStage(*given)]
        return [MergeTablesStage(*given, schema=schema, results=results)]


@operator
class PartialCountOperator(TakesRows, _Part):
    """Counts rows by window and key, before the numbers are sent to the task of the key."""

    of: AggregateOperator

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        windows, key = self.of.windows, self.of.key
        assert isinstance(windows, DisjointWindows)
        assert key is not None
        limit = context.limits.batch_records
        return [PartialCount(context, self.name, windows, key.function, limit=limit)]


@operator
class MergeCountOperator(TakesRows, _Part):
    """Adds up partial counts."""

    of: AggregateOperator

    @property
    def keeps(self) -> str:
        return self.of.keeps

    @property
    def shown_key(self) -> str:
        return key_text(self.of.key)

    def make_stages(self, context: TaskContext, sides: Sides) -> Sequence[Stage]:
        assert self.of.windows is not None
        fold = merging_counts(self.of.fold)
        limit = context.limits.batch_records
        return [window_stage(context, self.name, self.of.windows, key_of_part, fold, limit=limit)]


def _result_type(aggregate: Aggregate, types: Mapping[str, Any]) -> Any:  # noqa: PLR0911
    """Return the Arrow type of the results of an aggregate; None if nothing tells it."""
    import pyarrow as pa  # noqa: PLC0415 - types are there, or few

    match aggregate.kind:
        case "count" | "count_if" | "distinct" | "approx_distinct":
            return pa.int64()
        case "any" | "all":
            return pa.bool_()
        case "quantile":
            return pa.list_(pa.float64()) if aggregate.option else pa.float64()
        case "ewma":
            return pa.float64()
    of = types.get(aggregate.of) if isinstance(aggregate.of, str) else None
    if of is None:
        return None
    is_fraction = pa.types.is_floating(of)
    match aggregate.kind:
        case "min" | "max" | "first" | "last" | "mode" | "arg_min" | "arg_max":
            return of
        case "collect" | "top":
            return pa.list_(of)
        case "heavy_hitters":
            return pa.list_(pa.struct({"value": of, "count": pa.int64()}))
        case "mean" | "variance" | "stddev" if is_fraction or pa.types.is_integer(of):
            return pa.float64()
        case "sum" if is_fraction or pa.types.is_signed_integer(of):
            return pa.float64() if is_fraction else pa.int64()
        case "sum" if pa.types.is_decimal(of):
            return pa.decimal128(38, of.scale)
    return None


def _fires_alone(windows: Windows) -> bool:
    """Tell whether windows that count records look at each one alone, also in columns."""
    if not isinstance(windows, DisjointWindows) or windows.clock != "event":
        return True
    nothing = Pending(0, MAX_MS, MAX_MS, MIN_MS, MIN_MS)
    return records_wanted(phases_of(windows.trigger)[0], nothing) == 1


def _reason_of(windows: Windows) -> str:
    """Return why no query over all records has such windows; empty if one can."""
    if isinstance(windows, CountWindows):
        return "what is in a count window depends on the order in which records come"
    if windows.clock != "event":
        return "its windows are of wall time, and a query over all records has none"
    early, _ = phases_of(windows.trigger)
    if early is not None:
        return "its trigger puts out results before windows close, and the query has the last only"
    return "; ".join(too_many_windows(windows))
