"""A program as one line from a source to a sink, which says nothing of gearpy's tasks.

A program in the stream language becomes a plan, and the plan a Spark query; neither knows
the other. Without Spark: nothing here imports it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gearpy.columns.row_schema import RowSchema
from gearpy.core.window.accumulators import Aggregate
from gearpy.core.window.windows import Windows
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.rows import fold_of, one_or_all
from gearpy.task.api.interfaces import Source
from gearpy.task.chain.fused import RowOperator
from gearpy.task.stages.tables import Form

#: Column of event times, ms.
TIME: Final = "__time"

#: Aggregates by which it matters in which order records came, if only where their times are equal.
_ORDERED: Final = frozenset({"first", "last", "collect", "top", "custom", "arg_min", "arg_max"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsStep:
    """Functions over single records, one after the other.

    Attributes:
        takes: the schema by which columns become rows, where columns come.
    """

    operators: tuple[RowOperator, ...]
    takes: RowSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """A function over batches of records in columns; attributes as of `MapBatchesStage`.

    ``takes`` is the schema of the records that it gets, where they come as rows.
    """

    name: str
    function: Callable[[Any], Any]
    form: Form = "arrow"
    times: str | None = None
    takes: RowSchema | None = None
    gives: RowSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStep:
    """The step that aggregates the records of each key and window; one result for each.

    Attributes:
        key: of a record; None: all are one.
        columns: the names, if the key was given by names.
        aggregates: by the name in the result; empty where there is a ``fold``.
        is_single: there is one aggregate, and its value is the result.
        takes: the schema by which columns become rows, where columns come.
    """

    name: str
    windows: Windows
    key: Callable[[Any], Any] | None = None
    columns: tuple[str, ...] = ()
    aggregates: Mapping[str, Aggregate]
    is_single: bool = False
    fold: Fold | None = None
    takes: RowSchema | None = None

    def made_fold(self) -> Fold:
        """Return the fold that takes in record by record."""
        if self.fold is not None:
            return self.fold
        return fold_of(one_or_all(self.aggregates, is_single=self.is_single))

    @property
    def is_ordered(self) -> bool:
        return self.fold is not None or any(
            each.kind in _ORDERED for each in self.aggregates.values()
        )


Step: TypeAlias = RowsStep | BatchStep | GroupStep


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPlan:
    """The way of the records of one source to one sink.

    Attributes:
        source: where records come from; it ends.
        gives: the schema of the records written, if it is declared.
    """

    app: str
    sink: str
    source: Source
    steps: tuple[Step, ...]
    gives: RowSchema | None = None

    @property
    def groups(self) -> tuple[GroupStep, ...]:
        return tuple(step for step in self.steps if isinstance(step, GroupStep))
