"""Joins of a stream with a table: all rows of a source that ends, read before the first record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

from gearpy.core.base.times import Duration
from gearpy.core.join.table import Many
from gearpy.dsl.operators.joins import TableJoinOperator
from gearpy.dsl.operators.keys import Key, key_of
from gearpy.dsl.operators.names import check_function, duration_of
from gearpy.dsl.operators.operator import Operator
from gearpy.errors import ConfigError
from gearpy.expressions.expr import Expr
from gearpy.messages.type_variables import K, T, U
from gearpy.task.api.interfaces import Source
from gearpy.task.joins.side_table import SideTable
from gearpy.task.joins.table import TableJoinSpec

if TYPE_CHECKING:
    from gearpy.dsl.streams.stream import Stream
    from gearpy.task.api.window_result import JoinResult

R = TypeVar("R")


class _TableOptions(TypedDict, total=False):
    many: Many
    versioned: bool
    refresh: Duration | None
    name: str


_KIND: Final = "join_table"
_HOWS: Final = ("inner", "left")
#: A field, an expression, several of them, or a function.
_OneSide: TypeAlias = str | Expr | list[str] | list[str | Expr] | Callable[[T], Any]
#: The equal values of a record and a row: one for both sides, or a pair of one for each. One for
#: both is here one of rows, as all that a stream by key takes is one of rows.
OnKey: TypeAlias = _OneSide[R] | tuple[_OneSide[T], _OneSide[R]]


class TableJoins(ABC, Generic[K, T]):
    """Joins of streams with a table."""

    @overload
    def join_table(
        self,
        table: Source[R],
        on: OnKey[T, R] | None = None,
        *,
        how: Literal["inner"] = "inner",
        combine: None = None,
        **options: Unpack[_TableOptions],
    ) -> Stream[JoinResult[K, T, R]]: ...

    @overload
    def join_table(
        self,
        table: Source[R],
        on: OnKey[T, R] | None = None,
        *,
        how: Literal["left"],
        combine: None = None,
        **options: Unpack[_TableOptions],
    ) -> Stream[JoinResult[K, T, R | None]]: ...

    @overload
    def join_table(
        self,
        table: Source[R],
        on: OnKey[T, R] | None = None,
        *,
        how: Literal["inner"] = "inner",
        combine: Callable[[T, R], U],
        **options: Unpack[_TableOptions],
    ) -> Stream[U]: ...

    @overload
    def join_table(
        self,
        table: Source[R],
        on: OnKey[T, R] | None = None,
        *,
        how: Literal["left"],
        combine: Callable[[T, R | None], U],
        **options: Unpack[_TableOptions],
    ) -> Stream[U]: ...

    @overload
    def join_table(
        self,
        table: Source[R],
        on: OnKey[T, R] | None = None,
        *,
        how: Literal["inner", "left"] = "inner",
        combine: Literal["merge"],
        **options: Unpack[_TableOptions],
    ) -> Stream[dict[str, Any]]: ...

    def join_table(
        self,
        table: Source[Any],
        on: OnKey[Any, Any] | None = None,
        *,
        how: Literal["inner", "left"] = "inner",
        combine: Callable[[Any, Any], Any] | Literal["merge"] | None = None,
        many: Many = "error",
        versioned: bool = False,
        refresh: Duration | None = None,
        name: str = "",
    ) -> Stream[Any]:
        """Give each record the row that a table has for its key.

        The whole table is read before the first record is joined, once in each process, and is
        kept in memory. Results come at once, in the order of the records. With
        ``combine="merge"``, and names or expressions in ``on``, columns stay columns.

        Args:
            table: any source that ends, such as ``gp.csv("customers.csv")`` or ``gp.rows(rows)``.
            on: the values equal in a record and its row: the name of a field, an expression, a list
                of these, or a function, for both; or a pair of one for the records and one for the
                rows. A stream that is grouped by key may leave it out: then it is its key.
            how: "inner" leaves out records without a row; "left" gives them with None.
            combine: makes the result of a record and a row. "merge" gives a dict of the fields of
                both, the key once. Without it, the result is a `JoinResult`.
            many: of several rows with one key, "first" or "last" counts, or "all" give a result
                each; "error" refuses the table.
            versioned: a row counts from its event time on, until the next row of its key does; a
                record gets the one that counts at its own event time. The table's source says by
                ``time=`` where the times of rows are.
            refresh: how often the table is looked at again, by wall time; it is read anew if its
                files have changed, or if that is not known. Without it, it is read once in a run.
            name: for people.

        Raises:
            ConfigError: the source has no end, or an argument is not understood.

        Example:
            >>> import gearpy as gp
            >>> app, results = gp.StreamApp("named"), []
            >>> orders = app.read(gp.collection([{"customer": 2, "item": "tea"}]))
            >>> customers = gp.rows([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}])
            >>> orders.join_table(customers, on=("customer", "id"), combine="merge").write(
            ...     gp.to_list(results)
            ... )
            >>> _ = gp.run(app)
            >>> results
            [{'customer': 2, 'item': 'tea', 'name': 'Bob'}]
        """
        mistakes = list(_mistakes(table, how, combine, many))
        if mistakes:
            raise ConfigError(*mistakes)
        known, before, add = self._beside_table()
        left, right = keys_of(on, known)
        refresh_ms = duration_of(f"{_KIND}: refresh", refresh)
        shown = f"{_KIND}({table.description}"
        shown += ")" if refresh_ms is None else f", looked at by wall time each {refresh})"
        spec = TableJoinSpec(
            table=SideTable(name or shown, table, right.function, many=many, versioned=versioned),
            left=left.function,
            right=right.columns,
            how=how,
            combine=None if isinstance(combine, str) else combine,
            merges=combine == "merge",
            refresh_ms=refresh_ms,
        )
        step = TableJoinOperator(
            name=name or shown,
            given=name,
            inputs=(before,),
            left_key=left,
            right_key=right,
            spec=spec,
        )
        return add(step)

    @abstractmethod
    def _beside_table(self) -> tuple[Key | None, Operator, Callable[[Operator], Stream[Any]]]:
        """Return the key of the records, if they have one, their step, and what adds another."""


def keys_of(on: OnKey[Any, Any] | None, known: Key | None = None) -> tuple[Key, Key]:
    """Return the keys of records and of rows.

    Args:
        on: as it was given.
        known: key of the records, if they are grouped by one; ``on`` is then that of the rows, and
            of the records only in a pair.

    Raises:
        ConfigError: they are not understood.
    """
    if on is None:
        if known is None:
            raise ConfigError(f'{_KIND}: say what is equal in records and rows, as on="customer"')
        return known, known
    if known is not None and not (isinstance(on, tuple) and len(on) == 2):  # noqa: PLR2004
        return known, _key(on)
    left, right = on if isinstance(on, tuple) and len(on) == 2 else (on, on)  # noqa: PLR2004
    return _key(left), _key(right)


def _key(side: Any) -> Key:
    if isinstance(side, str | Expr) or callable(side):
        return key_of(_KIND, (side,))
    if isinstance(side, Sequence) and side and all(isinstance(of, str | Expr) for of in side):
        return key_of(_KIND, tuple(side))
    raise ConfigError(
        f'{_KIND}: on={side!r:.100} is not understood: give the name of a field (on="id"), a list '
        "of names, a function, or a pair of one for the records and one for the table, such as "
        'on=("customer", "id")'
    )


def _mistakes(table: object, how: str, combine: object, many: str) -> Iterator[str]:
    if not isinstance(table, Source):
        fix = ": join streams with join_latest or join_asof" if hasattr(table, "map") else ""
        yield (
            f"{_KIND} takes a source such as gp.csv(...) or gp.rows(rows), not "
            f"{type(table).__name__}{fix}"
        )
    elif not table.bounded:
        yield (
            f"{_KIND}: {table.description} has no end, and a table must be complete before the "
            "first record is joined: use join_latest or join_asof with a stream of it"
        )
    if how not in _HOWS:
        yield f"{_KIND}: how={how!r} is unknown: use one of {', '.join(map(repr, _HOWS))}"
    if many not in get_args(Many):
        known = ", ".join(map(repr, get_args(Many)))
        yield f"{_KIND}: many={many!r} is unknown: use one of {known}"
    if isinstance(combine, str) and combine != "merge":
        yield f'{_KIND}: combine={combine!r} is unknown: give "merge", or a function'
    if combine is not None and not isinstance(combine, str):
        try:
            check_function(f"{_KIND}: combine", combine, of="a record and a row", takes=2)
        except ConfigError as error:
            yield str(error)
