"""Late records, and cuts by event time, of a table: all rows at once."""

from typing import TYPE_CHECKING, Any

from gearpy.ids import MAX_MS
from gearpy.messages.table import Times

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


def promised_times(times: Times, *, before_ms: int, bound_ms: int) -> Times:
    """Return the promise before each row: the newest time before it, less the bound."""
    import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

    first = pa.array([min(before_ms + bound_ms, MAX_MS)], pa.int64())
    known = pa.concat_arrays([first, times.array.slice(0, max(0, len(times) - 1))])
    return Times(pc.subtract(pc.cumulative_max(known.slice(0, len(times))), bound_ms))


def are_sorted(times: Times) -> bool:
    """Tell whether no row is older than the one before it, at the cost of one look at each."""
    import pyarrow.compute as pc  # noqa: PLC0415 - the times are there, so Arrow is

    array = times.array
    return not pc.any(pc.less(array.slice(1), array.slice(0, max(0, len(array) - 1)))).as_py()


def late_rows(times: Times, promised: "Times | int") -> "pa.BooleanArray | None":
    """Return the places of rows that are older than the promise before them; None for none."""
    import pyarrow.compute as pc  # noqa: PLC0415 - the times are there, so Arrow is

    late = pc.less(times.array, promised.array if isinstance(promised, Times) else promised)
    return late if pc.any(late).as_py() else None


def marked(times: Times, promised: "Times | int") -> Times:
    """Return the times with the promise before each."""
    import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is

    if isinstance(promised, Times):
        return Times(times.array, promised.array)
    return Times(times.array, pa.repeat(pa.scalar(promised, pa.int64()), len(times)))


def restamped(times: Times, promised: "Times | int") -> Times:
    """Return the times, none of them older than the promise before it."""
    import pyarrow.compute as pc  # noqa: PLC0415 - the times are there, so Arrow is

    least = promised.array if isinstance(promised, Times) else promised
    return Times(pc.max_element_wise(times.array, least))


def rows_before(times: Times, cut_ms: int, *, until: int) -> "pa.BooleanArray":
    """Return flags of the first ``until`` rows that are older than a time; later rows are not."""
    import pyarrow as pa  # noqa: PLC0415 - the times are there, so Arrow is
    import pyarrow.compute as pc  # noqa: PLC0415 - the same

    older = pc.less(times.array.slice(0, until), cut_ms)
    return pa.concat_arrays([older, pa.array([False] * (len(times) - until), pa.bool_())])


def others(flags: "pa.BooleanArray") -> "pa.BooleanArray":
    """Return the flags of the rows that have none."""
    import pyarrow.compute as pc  # noqa: PLC0415 - the flags are there, so Arrow is

    return pc.invert(flags)


def places_of(flags: "pa.BooleanArray") -> list[int]:
    """Return the places of the rows that have a flag."""
    import pyarrow.compute as pc  # noqa: PLC0415 - the flags are there, so Arrow is

    places: list[int] = pc.indices_nonzero(flags).to_pylist()
    return places


def flags_at(places: list[int], count: int) -> Any:
    """Return the flags of ``count`` rows: true at the given places."""
    import pyarrow as pa  # noqa: PLC0415 - there is a table, so Arrow is there

    there = set(places)
    return pa.array([at in there for at in range(count)], pa.bool_())
