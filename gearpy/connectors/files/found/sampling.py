"""The columns of files that nobody gave a schema for: of all of small ones, of parts of large ones.

So no first rows decide. Where later ones do not fit what was found, the reader refuses them, and
asks for a schema.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.columns.widening import settled_type
from gearpy.connectors.files.dialects.dialect import Dialect
from gearpy.connectors.files.line_tables import block_at
from gearpy.connectors.files.tables import FileFormat, OnBad, Places
from gearpy.connectors.locations import FoundFile
from gearpy.errors import ConfigError

#: Files of so many bytes together are looked at as a whole.
_WHOLE_MAX: Final = 1 << 24
_FILES_MAX: Final = 64
_PIECES: Final = 8
PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundColumns:
    """The columns of files; those in ``empty`` had no value, and are texts."""

    schema: pa.Schema
    empty: frozenset[str]
    is_sure: bool


def columns_of_files(form: FileFormat, files: Sequence[FoundFile], on_bad: OnBad) -> FoundColumns:
    merged: pa.Schema | None = None
    by_lines = form.name in {"csv", "jsonl"}
    for file, places in looks(files) if by_lines else ((file, None) for file in spread(files)):
        try:
            for found in form.schemas(file, places, on_bad):
                merged = found if merged is None else form.merged(merged, found)
        except ConfigError:
            if merged is None and (on_bad == "fail" or file is files[-1]):
                raise  # In other cases the reader tells it, or leaves the file out.
        except ValueError as error:
            if on_bad == "fail":
                raise ConfigError(
                    f"{form.name}: {file.name} has other values than what was looked at before: "
                    f"{error}: give schema="
                ) from error
    assert merged is not None, "a file that is none has raised"
    return FoundColumns(
        pa.schema([field.with_type(settled_type(field.type)) for field in merged]),
        frozenset(field.name for field in merged if pa.types.is_null(field.type)),
        _are_small(files),
    )


def looks(files: Sequence[FoundFile]) -> Iterator[tuple[FoundFile, Places]]:
    """Yield which files of lines to look at, and where in them."""
    if _are_small(files):
        for file in files:
            yield file, None
        return
    chosen = spread(files, _PIECES)
    each = _PIECES // len(chosen)
    for file in chosen:
        end = max(0.0, 1 - PIECE_BYTES / max(1, file.size))
        yield file, [end * at / max(1, each - 1) for at in range(each)]


def _are_small(files: Sequence[FoundFile]) -> bool:
    return sum(file.size for file in files) <= _WHOLE_MAX and len(files) <= _FILES_MAX


def spread(files: Sequence[FoundFile], count: int = _FILES_MAX) -> Sequence[FoundFile]:
    """Return so many of the files at most: the first, the last, and some between."""
    if len(files) <= count:
        return files
    return [files[(len(files) - 1) * at // (count - 1)] for at in range(count)]


def pieces(
    file: FoundFile, opened: BinaryIO, begin: int, places: Places, *, multiline: Dialect | None
) -> Iterator[int]:
    """Yield where to look at lines of a file: at the beginnings of lines."""
    if places is None:
        yield begin
        with suppress(ValueError):  # The reader tells what cannot be read.
            while block := block_at(opened, begin, multiline=multiline, size=PIECE_BYTES):
                begin += len(block)
                yield begin
        return
    for share in places:
        if not share:
            yield begin
        elif not (multiline or file.is_packed):  # In others nobody knows where a line begins.
            opened.seek(int(file.size * share))
            opened.readline()
            yield opened.tell()
