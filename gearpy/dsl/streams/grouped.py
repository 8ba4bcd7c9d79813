"""Records that a step takes together: by key, by window, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any

from gearpy.core.window.accumulators import Aggregate, check_aggregates
from gearpy.core.window.windows import SessionWindows, Windows
from gearpy.dsl.operators.groups import AggregateOperator, FoldOperator
from gearpy.dsl.operators.keys import Key
from gearpy.dsl.operators.names import check_function, step_name
from gearpy.dsl.operators.operator import Operator
from gearpy.dsl.operators.top_n import TopOperator
from gearpy.dsl.streams.program import Program
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr
from gearpy.expressions.nodes import ColumnNode
from gearpy.task.aggregates.fold import Fold
from gearpy.task.aggregates.top_n import top_records
from gearpy.task.time.late import WindowLate

if TYPE_CHECKING:
    from gearpy.dsl.streams.stream import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Adds the steps that both keyed and windowed streams have.

    Attributes:
        program: gets them.
        step: the step whose records they are.
        key: None for all records together.
        parallelism: of the step; None: as the application's.
        windows: None for a result after every record.
        late: the rule for records whose window has closed.
        is_per_batch: without windows, a result is for each batch and key.
        begun: number by which the program knows that this is no step yet.
    """

    program: Program
    step: Operator
    key: Key | None
    parallelism: int | None
    windows: Windows | None = None
    late: WindowLate = "drop"
    is_per_batch: bool = False
    begun: int

    def kind(self, word: str) -> str:
        return word if self.windows is None else f"window_{word}"

    def add(self, step: Operator) -> Stream[Any]:
        self.program.end(self.begun)
        return self.program.add(step)

    def reduce(self, function: Callable[[Any, Any], Any], name: str) -> Stream[Any]:
        check_function("reduce", function, of="what there is and a record", takes=2)
        fold = Fold(kind="fold", first=_itself, add=function, merge=function)
        return self._fold("reduce", fold, function, name)

    def fold(
        self,
        initial: Any,
        function: Callable[[Any, Any], Any],
        merge: Callable[[Any, Any], Any] | None,
        name: str,
    ) -> Stream[Any]:
        check_function("fold", function, of="what there is and a record", takes=2)
        if merge is not None:
            check_function("fold: merge", merge, of="two values", takes=2)
        self._check_merge(("fold", merge, "it"))
        fold = Fold(
            kind="fold",
            first=lambda record: function(deepcopy(initial), record),
            add=function,
            merge=merge,
        )
        return self._fold("fold", fold, function, name)

    def aggregate(self, aggregates: Mapping[str, Aggregate], name: str) -> Stream[Any]:
        """Compute some aggregates."""
        check_aggregates(aggregates)
        self._check_merge(
            *(
                (f"aggregate: {of}", each.merge, "agg.custom(...)")
                for of, each in aggregates.items()
            )
        )
        return self._aggregate("aggregate", aggregates, name, is_single=False)

    def single(self, word: str, aggregate: Aggregate, name: str) -> Stream[Any]:
        """Compute one aggregate."""
        return self._aggregate(word, {word: aggregate}, name, is_single=True)

    def top(self, n: int, by: Any, name: str, when: str = "always") -> Stream[Any]:
        """Keep the ``n`` largest records.

        Raises:
            ConfigError: ``when`` is neither "always" nor "changed", or ``n`` is no number from 1.
        """
        if when not in ("always", "changed"):
            raise ConfigError(f"top_n: when is {short_repr(when)}, must be 'always' or 'changed'")
        if isinstance(by, Expr) and isinstance(by.node, ColumnNode) and "." not in by.node.name:
            by = by.node.name
        aggregates, only_changed = {"top_n": top_records(n, by)}, when == "changed"
        made: Callable[..., Operator] = AggregateOperator
        if isinstance(by, str):
            made = partial(TopOperator, n=n, by=by)
        elif hasattr(by, "number_of"):
            made = partial(TopOperator, n=n, by=by.column, ranking=by)
        return self._aggregate(
            "top_n", aggregates, name, is_single=True, only_changed=only_changed, made=made
        )

    def _check_merge(self, *parts: tuple[str, object, str]) -> None:
        """Refuse functions without a merge in session windows, which merge.

        Raises:
            ConfigError: a function has none.
        """
        if isinstance(self.windows, SessionWindows):
            mistakes = [
                f"{what} has no merge, and sessions that grow together are merged: "
                f"give {where} a function merge=... of two values"
                for what, merge, where in parts
                if merge is None
            ]
            if mistakes:
                raise ConfigError(*mistakes)

    def _fold(self, word: str, fold: Fold, function: object, name: str) -> Stream[Any]:
        kind = self.kind(word)
        return self.add(
            FoldOperator(
                name=name or step_name(kind, function),
                given=name,
                kind=kind,
                inputs=(self.step,),
                parallelism=self.parallelism,
                key=self.key,
                windows=self.windows,
                fold=fold,
                late=self.late,
            )
        )

    def _aggregate(
        self,
        word: str,
        aggregates: Mapping[str, Aggregate],
        name: str,
        *,
        is_single: bool,
        only_changed: bool = False,
        made: Callable[..., Operator] = AggregateOperator,
    ) -> Stream[Any]:
        kind = self.kind(word)
        return self.add(
            made(
                name=name or kind,
                given=name,
                kind=kind,
                inputs=(self.step,),
                parallelism=self.parallelism,
                key=self.key,
                windows=self.windows,
                aggregates=dict(aggregates),
                is_single=is_single,
                late=self.late,
                only_changed=only_changed,
                is_per_batch=self.is_per_batch,
            )
        )


def _itself(record: Any) -> Any:
    return record
