"""Folders of a partitioned table, such as ``country=de/date=2026-11-21``, named as Hive does.

Spark, Hive, Trino, DuckDB and Arrow read the values of such columns out of the names of folders.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

__all__ = ["NULL_PARTITION", "partition_folder", "partition_values"]

#: Stands for a missing value, and for an empty text, which no folder can tell apart.
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"

#: What Spark and Hive escape; also NUL, which no file system takes.
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))
_ESCAPES: Final = str.maketrans({char: f"%{ord(char):02X}" for char in _ESCAPED})
_SEGMENT_BYTES_MAX: Final = 255  # Of a name, in most file systems.


def partition_folder(values: Iterable[tuple[str, str | None]]) -> str:
    """Return the path of the folder for some values, by column, the outermost first.

    Raises:
        ValueError: a value is too long for the name of a folder.
    """
    return "/".join(_segment(name, value) for name, value in values)


def partition_values(path: str) -> dict[str, str | None]:
    """Return the values that the folders of a path stand for; other parts are passed over."""
    pairs = (segment.split("=", 1) for segment in path.split("/") if "=" in segment)
    return {
        unquote(name): None if value == NULL_PARTITION else unquote(value) for name, value in pairs
    }


def _segment(name: str, value: str | None) -> str:
    segment = f"{name.translate(_ESCAPES)}={(value or '').translate(_ESCAPES) or NULL_PARTITION}"
    if len(segment.encode(errors="surrogatepass")) > _SEGMENT_BYTES_MAX:
        raise ValueError(
            f"value {value!r:.60} of partition column {name!r} makes a folder's name of more than "
            f"{_SEGMENT_BYTES_MAX} bytes: partition by something shorter"
        )
    return segment
