"""The schema of a window log, as it stands in its file."""

import base64
import json
from typing import Any, Final, NamedTuple

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.errors import WindowLogDamaged

SCHEMA_FILE: Final = "_schema.json"

_FORMAT: Final = 1


class LogSchema(NamedTuple):
    """The columns of a log.

    Attributes:
        arrow: as every table of the log has them, exactly.
        spark: the same as Spark's ``StructType.jsonValue()``.
        log: id of the log, which is another when the folder was made anew.
        identity: columns that tell rows apart; empty if only all of them do.
    """

    arrow: pa.Schema
    spark: dict[str, Any]
    log: str = ""
    created_ms: int = 0
    identity: tuple[str, ...] = ()


def schema_text(schema: LogSchema) -> bytes:
    text = {
        "format": _FORMAT,
        "log": schema.log,
        "arrow": base64.b64encode(schema.arrow.serialize().to_pybytes()).decode("ascii"),
        "spark": schema.spark,
        "created_ms": schema.created_ms,
        "identity": schema.identity,
    }
    return json.dumps(text, indent=1).encode()


def parsed_schema(text: bytes, *, file: str) -> LogSchema:
    try:
        found = json.loads(text)
        number = found["format"]
        if number == _FORMAT:
            arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["arrow"])))
            return LogSchema(
                arrow, found["spark"], found["log"], found["created_ms"], tuple(found["identity"])
            )
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise WindowLogDamaged(file=file, reason=f"it is no schema: {error!r:.200}") from error
    raise WindowLogDamaged(
        file=file, reason=f"its format is {number!r}, this gearpy knows {_FORMAT}: use a later one"
    )


def schema_difference(kept: pa.Schema, other: pa.Schema, *, partly: bool = False) -> str:
    """Return how another schema differs from that of a log; empty if it does not."""
    for field in other:
        place = kept.get_field_index(field.name)
        if place < 0:
            return f"there is no column {field.name!r}, only {', '.join(kept.names)}"
        if kept.field(place).type != field.type:
            return f"column {field.name!r} is {kept.field(place).type}, not {field.type}"
    if partly:
        return ""
    missing = [name for name in kept.names if name not in other.names]
    if missing:
        return f"there is a column {missing[0]!r}, too"
    if kept.names != other.names:
        return f"the order of columns is {', '.join(kept.names)}"
    return ""
