"""The results of windows and joins."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Self, TypeAlias

from gearpy.core.window.windows import LocalSlidingWindows, LocalWindows
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import Table, cells_of
from gearpy.messages.type_variables import K_co, L_co, R_co, V_co
from gearpy.wire.values.records import register_record

if TYPE_CHECKING:
    from gearpy.columns.row_schema import RowSchema

Timing: TypeAlias = Literal["early", "on-time", "late"]


class WindowResult(NamedTuple, Generic[K_co, V_co]):
    """The result of one key in one window ``[start, end)``; times in ms since the epoch.

    ``key`` is None for a stream without keys. The window over everything has
    ``start = MIN_MS`` and ``end = MAX_MS``. The last three fields tell the results of a window
    apart that fires more than once. Results of windows with a zone have two fields more, which
    sinks write, too: `local_start` and `local_end`.
    """

    key: K_co
    value: V_co
    start: int
    end: int
    firing: int = 0  #: Number of the firing of this key and window, from 0.
    timing: Timing = "on-time"  #: Whether the window had still to close, closed, or had closed.
    retracts: bool = False  #: This was put out before, and is replaced by the next result.

    def __repr__(self) -> str:
        """Show the fields; those of firings only if they are not the usual ones."""
        shown = list(zip(self._fields, self, strict=True))
        plain = (self.firing, self.timing, self.retracts) == (0, "on-time", False)
        shown[_OF_FIRINGS] = [] if plain else shown[_OF_FIRINGS]
        return f"WindowResult({', '.join(f'{name}={value!r}' for name, value in shown)})"

    @property
    def local_start(self) -> str:
        """The start of the window as the clocks of its zone show it: "2026-03-29T00:00:00+01:00".

        Raises:
            AttributeError: the windows have no zone.
        """
        raise AttributeError(_NO_ZONE)

    @property
    def local_end(self) -> str:
        """The end of the window as the clocks of its zone show it.

        Raises:
            AttributeError: the windows have no zone.
        """
        raise AttributeError(_NO_ZONE)


_START: Final = 2
_END: Final = 3
_US_PER_MS: Final = 1000
_TEXTS_KEPT: Final = 1024
_OF_FIRINGS: Final = slice(4, 7)
_NO_ZONE: Final = (
    'these windows have no zone: give them one, as in gp.tumbling("1d", zone="Europe/Berlin")'
)


class LocalBounds:
    """Two fields behind those of a result, which have windows with a zone.

    Its subclasses are those of results, as NamedTuples make none, so that all that takes these
    takes them.
    """

    __slots__ = ()
    _fields: tuple[str, ...]
    local_start = property(itemgetter(-2))
    local_end = property(itemgetter(-1))

    def __new__(cls, *fields: Any) -> Self:
        """Make it of all its fields, as copies and pickles do."""
        return cls._make(fields)

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:
        return tuple.__new__(cls, iterable)  # type: ignore[type-var] # all of them are tuples

    def _replace(self, **changes: Any) -> Self:
        fields = {**self._asdict(), **changes}  # type: ignore[attr-defined] # as above
        if len(fields) > len(self._fields):
            raise ValueError(
                f"a result of windows has no {', '.join(fields.keys() - self._fields)}"
            )
        return self._make(fields.values())


_LOCAL: Final = ("local_start", "local_end")


class LocalWindowResult(LocalBounds, WindowResult[K_co, V_co]):  # type: ignore[misc]
    """The result of a window with a zone."""

    __slots__ = ()
    _fields = (*WindowResult._fields, *_LOCAL)  # type: ignore[assignment]


register_record(WindowResult, "gearpy.WindowResult")
register_record(LocalWindowResult, "gearpy.LocalWindowResult")

_Maker: TypeAlias = Callable[[Iterable[Any]], Any]

#: Makes a result of a tuple of all its fields, at the speed of a tuple.
result_of: Final[_Maker] = partial(tuple.__new__, WindowResult)


def local_bounds(
    windows: object, plain: type = WindowResult, local: type = LocalWindowResult
) -> tuple[_Maker, Callable[[int, int], tuple[str, ...]] | None]:
    """Return a maker of results of windows, and one of the fields that windows with a zone add."""
    if not isinstance(windows, LocalWindows | LocalSlidingWindows):
        return partial(tuple.__new__, plain), None
    text = lru_cache(_TEXTS_KEPT)(windows.steps.zone.text)
    return partial(tuple.__new__, local), lambda start, end: (text(start), text(end))


def result_maker(windows: object) -> Callable[[Sequence[Any]], WindowResult[Any, Any]]:
    """Return a maker of results from tuples of the common fields, which adds local bounds."""
    new, bounds_of = local_bounds(windows)
    if bounds_of is None:
        return new
    return lambda row: new((*row, *bounds_of(row[_START], row[_END])))


def rows_in(values: Sequence[Any], schema: "RowSchema | None" = None) -> Sequence[Any]:
    """Return records as those who take rows get them.

    Args:
        schema: of the rows; None: dicts.
    """
    if type(values) is not Table:
        return values
    rows: Sequence[Any] | None = rows_of_results(values.batch)
    if rows is not None:
        return rows
    if schema is not None:
        return schema.rows(values.batch)
    pairs = _rows_of_pairs(values.batch)
    return list(values) if pairs is None else pairs


def rows_of_results(batch: Any) -> list[Any] | None:
    """Return the rows of a table of results; None if it has others."""
    from gearpy.columns.results import (  # noqa: PLC0415 - Arrow is there
        RunningSchema,
        result_columns,
        running_columns,
    )

    if running_columns(batch.schema) is not None:
        return RunningSchema(batch.schema, tuple).rows(batch)
    columns = result_columns(batch.schema)
    if columns is None:
        return None
    cells = dict(zip(batch.schema.names, map(cells_of, batch.columns), strict=True))
    starts, ends = (
        [
            end if each is None else each // _US_PER_MS
            for each in batch.column(at).cast("int64").to_pylist()
        ]
        for at, end in enumerate((MIN_MS, MAX_MS))
    )
    keys = [cells[name] for name in columns.key]
    values = [cells[name] for name in columns.value]
    key = keys[0] if len(keys) == 1 else zip(*keys, strict=True) if keys else repeat(None)
    value = (
        values[0]
        if columns.is_single
        else [dict(zip(columns.value, row, strict=True)) for row in zip(*values, strict=True)]
    )
    behind = [cells[field.name] for field in columns.behind]
    is_local = len(columns.behind) > len(WindowResult._fields) - _OF_FIRINGS.start
    make = partial(tuple.__new__, LocalWindowResult if is_local else WindowResult)
    return list(map(make, zip(key, value, starts, ends, *behind, strict=False)))


class JoinResult(NamedTuple, Generic[K_co, L_co, R_co]):
    """A record of each side, of one key; None where one is missing. Times in ms since the epoch.

    ``start`` and ``end`` are those of the window. Where there is none, they are the older one's
    event time, and the newer one's and one ms; for `join_latest` the left one's counts alone.
    Those of windows with a zone have two fields more, as results of `WindowResult` have.
    """

    key: K_co
    left: L_co
    right: R_co
    start: int
    end: int

    @property
    def local_start(self) -> str:
        """The start of the window as the clocks of its zone show it; see `WindowResult`."""
        raise AttributeError(_NO_ZONE)

    @property
    def local_end(self) -> str:
        """The end of the window as the clocks of its zone show it; see `WindowResult`."""
        raise AttributeError(_NO_ZONE)


class LocalJoinResult(LocalBounds, JoinResult[K_co, L_co, R_co]):  # type: ignore[misc]
    """A pair of a window with a zone."""

    __slots__ = ()
    _fields = (*JoinResult._fields, *_LOCAL)  # type: ignore[assignment]


def _rows_of_pairs(batch: Any) -> "list[JoinResult[Any, Any, Any]] | None":
    """Return the rows of a table of pairs, with dicts as records; None if it has others."""
    from gearpy.columns.results import pair_keys  # noqa: PLC0415 - Arrow is there

    names = pair_keys(batch.schema)
    if names is None:
        return None
    cells = list(map(cells_of, batch.columns))
    keys, sides = cells[: len(names)], cells[len(names) :]
    key = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
    return [JoinResult(*row) for row in zip(key, *sides, strict=True)]


class CoGroup(NamedTuple, Generic[K_co, L_co, R_co]):
    """All records of a key in a window ``[start, end)``, in the order in which they came.

    Those of a session that several ones have become come one part after the other.
    """

    key: K_co
    left: list[L_co]
    right: list[R_co]
    start: int
    end: int

    @property
    def local_start(self) -> str:
        """The start of the window as the clocks of its zone show it; see `WindowResult`."""
        raise AttributeError(_NO_ZONE)

    @property
    def local_end(self) -> str:
        """The end of the window as the clocks of its zone show it; see `WindowResult`."""
        raise AttributeError(_NO_ZONE)


class LocalCoGroup(LocalBounds, CoGroup[K_co, L_co, R_co]):  # type: ignore[misc]
    """All records of a key in a window with a zone."""

    __slots__ = ()
    _fields = (*CoGroup._fields, *_LOCAL)  # type: ignore[assignment]


register_record(JoinResult, "gearpy.JoinResult")
register_record(CoGroup, "gearpy.CoGroup")
register_record(LocalJoinResult, "gearpy.LocalJoinResult")
register_record(LocalCoGroup, "gearpy.LocalCoGroup")
