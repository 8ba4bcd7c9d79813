"""Aggregates of SQL, by name, as those of `gearpy.agg`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gearpy.core.window import aggregates as agg
from gearpy.core.window.accumulators import Aggregate
from gearpy.errors import ConfigError
from gearpy.sql.parse.expressions import plain_value
from gearpy.sql.parse.syntax import Expression, FunctionCall, Star
from gearpy.sql.parse.tokens import SqlText


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate by its name in SQL.

    Attributes:
        make: gets names of fields, then options, and the name of a field as ``where``.
        columns: how many arguments are values of records.
        options: how many behind them are plain values.
        distinct: makes it of different values alone; None: there is no such form.
        makes_fraction: its result is a float, whatever kind of number it takes.
    """

    make: Callable[..., Aggregate]
    columns: int = 1
    options: int = 0
    distinct: Callable[..., Aggregate] | None = None
    makes_fraction: bool = False

    def taken(
        self, call: FunctionCall, text: SqlText
    ) -> tuple[Sequence[Expression], list[Any], Expression | None]:
        """Return the values that it takes, its options, and the condition for records that count.

        Raises:
            ConfigError: it takes other arguments.
        """
        arguments, where = call.arguments, call.where
        if self.make is _count and len(arguments) == 1 and not call.is_distinct:
            if not isinstance(arguments[0], Star):
                counted = arguments[0]
                if call.name == "count":  # It counts what is not null.
                    counted = FunctionCall(
                        call.at, "not", (FunctionCall(call.at, "is null", arguments),)
                    )
                where = counted if where is None else FunctionCall(call.at, "and", (counted, where))
            return (), [], where
        least = 1 if call.is_distinct and not self.columns else self.columns + self.options
        if len(arguments) != least or any(isinstance(each, Star) for each in arguments):
            takes = f"{least} {'argument' if least == 1 else 'arguments'}"
            raise text.error(call.at, f"{call.name} takes {takes}, not {len(arguments)}")
        if call.is_distinct and self.distinct is None:
            raise text.error(
                call.at,
                f"{call.name} takes no DISTINCT: take the different values first, by "
                "SELECT DISTINCT in a query in FROM",
            )
        columns = least - self.options
        return arguments[:columns], [plain_value(each, text) for each in arguments[columns:]], where

    def build(
        self,
        fields: Sequence[str],
        options: Sequence[Any],
        *,
        is_distinct: bool = False,
        where: str | None = None,
    ) -> Aggregate:
        """Return the aggregate of fields.

        Raises:
            ConfigError: an option is not understood.
        """
        make = self.distinct if is_distinct and self.distinct is not None else self.make
        return make(*fields, *options, where=where)


def _quantile(of: str, q: Any, *, where: str | None) -> Aggregate:
    if not isinstance(q, int | float) or isinstance(q, bool):
        raise ConfigError(f"a quantile takes a number from 0 to 1, not {q!r}")
    return agg.quantile(float(q), of, where=where)


def _count(*, where: str | None) -> Aggregate:
    return agg.count() if where is None else agg.count_if(where)


def _spread(function: Callable[..., Aggregate], ddof: int) -> AggregateFunction:
    return AggregateFunction(partial(function, ddof=ddof), makes_fraction=True)


def _by(function: Callable[..., Aggregate]) -> AggregateFunction:
    return AggregateFunction(lambda of, by, *, where: function(of, by=by, where=where), columns=2)


_TABLE: Final[Mapping[str, AggregateFunction]] = {
    "count": AggregateFunction(_count, columns=0, distinct=agg.distinct),
    "count_if, countif": AggregateFunction(_count, columns=0),
    "sum": AggregateFunction(agg.sum),
    "avg, mean": AggregateFunction(agg.mean, makes_fraction=True),
    "min": AggregateFunction(agg.min, distinct=agg.min),
    "max": AggregateFunction(agg.max, distinct=agg.max),
    "stddev, stddev_samp": _spread(agg.stddev, 1),
    "stddev_pop": _spread(agg.stddev, 0),
    "variance, var_samp": _spread(agg.variance, 1),
    "var_pop": _spread(agg.variance, 0),
    "median": AggregateFunction(agg.median, makes_fraction=True),
    "quantile, quantile_cont, percentile_cont, approx_quantile": AggregateFunction(
        _quantile, options=1, makes_fraction=True
    ),
    "approx_count_distinct": AggregateFunction(agg.approx_distinct),
    "arg_min, min_by": _by(agg.arg_min),
    "arg_max, max_by": _by(agg.arg_max),
    "first, first_value, any_value, arbitrary": AggregateFunction(agg.first),
    "last, last_value": AggregateFunction(agg.last),
    # Over rows the others take a row, whatever it has.
    "first ignore nulls, first_value ignore nulls": AggregateFunction(agg.first),
    "last ignore nulls, last_value ignore nulls": AggregateFunction(agg.last),
    "list, array_agg": AggregateFunction(agg.collect),
    "mode": AggregateFunction(agg.mode),
    "top": AggregateFunction(lambda of, n, *, where: agg.top(n, of, where=where), options=1),
    # Of truths the least is whether all are; and of none there is none, as SQL has it.
    "bool_and, every": AggregateFunction(agg.min),
    "bool_or": AggregateFunction(agg.max),
}
AGGREGATES: Final[Mapping[str, AggregateFunction]] = {
    name: function for names, function in _TABLE.items() for name in names.split(", ")
}
