"""The columns of results of windows: where sinks write them, and where they travel as tables."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"
TIME: Final = pa.timestamp("us", "UTC")
#: Columns around those of the key and of the value.
BEFORE: Final = (pa.field(WINDOW_START, TIME), pa.field(WINDOW_END, TIME))
BEHIND: Final = (
    pa.field("firing", pa.int32()),
    pa.field("timing", pa.string()),
    pa.field("retracts", pa.bool_()),
)
#: Results of windows with a zone have these, too.
LOCAL: Final = (pa.field("local_start", pa.string()), pa.field("local_end", pa.string()))
#: Schemas of tables of results have it in their metadata.
_MARK: Final = b"gearpy.results"


class ResultColumns(NamedTuple):
    """The columns of a table of results of windows.

    Attributes:
        key: those of the key; several for a tuple.
        value: those of the value.
        behind: what comes behind them.
        is_single: the value is that of its one column; else it is a dict.
    """

    key: Sequence[str]
    value: Sequence[str]
    behind: Sequence[pa.Field]
    is_single: bool


def results_schema(
    key: Sequence[Any], value: Mapping[str, Any], *, is_local: bool, is_single: bool
) -> pa.Schema | None:
    """Return the schema of a table of results; None if two columns would have one name.

    Args:
        key: the types of the parts of the key.
        value: names and types of the columns of the value.
    """
    names = ["key"] if len(key) == 1 else [f"key_{at + 1}" for at in range(len(key))]
    fields = [
        *BEFORE,
        *(pa.field(name, kind) for name, kind in zip(names, key, strict=True)),
        *(pa.field(name, kind) for name, kind in value.items()),
        *BEHIND,
        *(LOCAL if is_local else ()),
    ]
    if len({field.name for field in fields}) < len(fields):
        return None
    return marked(pa.schema(fields), len(key), is_single=is_single)


def marked(schema: pa.Schema, keys: int, *, is_single: bool) -> pa.Schema:
    """Return the schema of a table of results, whose key has so many columns."""
    behind = len(BEHIND) + (len(LOCAL) if LOCAL[0].name in schema.names else 0)
    values = len(schema) - len(BEFORE) - keys - behind
    return schema.with_metadata({_MARK: f"{keys} {values} {int(is_single)}".encode()})


def result_columns(schema: pa.Schema) -> ResultColumns | None:
    """Return the columns of a table of results; None if it is none."""
    shape = (schema.metadata or {}).get(_MARK)
    if shape is None:
        return None
    keys, values, is_single = map(int, shape.split())
    end = len(BEFORE) + keys + values
    names = schema.names[len(BEFORE) : end]
    behind = (*BEHIND, *LOCAL)[: len(schema.names) - end]
    return ResultColumns(names[:keys], names[keys:], behind, bool(is_single))


def unmarked(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table that may be changed, as any other."""
    if _MARK not in (schema.metadata or {}):
        return schema
    rest = {name: value for name, value in schema.metadata.items() if name != _MARK}
    return schema.with_metadata(rest or None)
