"""What parsers of JSON do not check themselves, or die of: see `read_json_lines`.

Arrow's parser ends the process where the first row is ``null``, takes a ``null`` further on for a
row, and ends it while it makes types out of very deep values.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from gearpy.columns.texts import shortened

NOT_AN_OBJECT: Final = "is not one object of JSON in one line"
#: Types are not made of deeper values: Arrow sends none that nest deeper.
TYPE_LEVELS_MAX: Final = 60
#: Deeper values of Python could neither be sent to another process nor written.
VALUE_LEVELS_MAX: Final = 400
_BOUNDARY: Final = re.compile(rb"\}\s*\n\s*\{")
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_DIGITS_MAX: Final = 308
_DIGITS: Final = re.compile(rb"[0-9]{%d}" % (_DIGITS_MAX + 1))
_SHOWN_CHARS: Final = 100


def has_null_row(table: pa.Table) -> bool:
    if any(not column.null_count for column in table.columns):
        return False
    nulls = [column.is_null() for column in table.columns]
    for more in nulls[1:]:
        nulls[0] = pc.and_(nulls[0], more)
    return not nulls or bool(pc.any(nulls[0]).as_py())


def is_one_each(lines: bytes, rows: int) -> bool:
    """Tell whether each of so many rows is an object in a line of its own.

    A brace at the end of a line and one at the beginning of the next are never of one object.
    """
    lines = lines.strip()
    if not (lines.startswith(b"{") and lines.endswith(b"}")):
        return False
    return lines.count(b"}\n{") == rows - 1 or len(_BOUNDARY.findall(lines)) == rows - 1


def check_levels(lines: Sequence[bytes], levels_max: int) -> None:
    """Refuse JSON with values in values in values; cheap where lines are short."""
    for line in lines:
        if len(line) <= levels_max or line.count(b"{") + line.count(b"[") <= levels_max:
            continue
        level = 0
        for bracket in _BRACKET.findall(_TEXT.sub(b"", line)):
            level += 1 if bracket in b"{[" else -1
            if level > levels_max:
                raise ValueError(f"values are nested deeper than {levels_max} levels")


def check_digits(lines: bytes) -> None:
    """Refuse numbers that no type of Arrow holds: it would take them for infinity."""
    if _DIGITS.search(lines) and _DIGITS.search(_TEXT.sub(b"", lines)):
        raise ValueError(f"a number has more than {_DIGITS_MAX} digits")


def values_of(lines: bytes) -> list[Any]:
    """Return the values in lines of JSON, of any kind; blank lines are passed over."""
    filled = [line for line in lines.split(b"\n") if line.strip()]
    check_levels(filled, VALUE_LEVELS_MAX)
    # By its bytes, `json` would take some of them for UTF-16.
    values = [json.loads(line) for line in lines.decode().split("\n") if line.strip(" \t\r\f\v")]
    if b"\\u" in lines:
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise ValueError(
                f"\\u{ord(half):x} is half a character: no text can hold it"
            ) from error
    return values


def cause_of(line: bytes, schema: pa.Schema | None, parse: Any) -> str:
    """Return the words for why Arrow, which ``parse`` asks, has refused a line of JSON."""
    try:
        values = values_of(line)
    except json.JSONDecodeError as error:
        return f"is no JSON from character {error.pos + 1} on: {error.msg}"
    except (ValueError, RecursionError) as error:
        return str(error)
    if len(values) != 1:
        return NOT_AN_OBJECT
    (row,) = values
    if not isinstance(row, dict):
        return f"is {shortened(json.dumps(row), _SHOWN_CHARS)}, no object of JSON"
    for field in schema or ():
        try:
            parse(line, pa.schema([field]))
        except pa.ArrowException:
            value = shortened(json.dumps(row.get(field.name)), _SHOWN_CHARS)
            return f"column {field.name!r} is {field.type}, and {value} is none"
    return NOT_AN_OBJECT
