"""Folders of Parquet, Arrow and CSV files in which readers see each record once."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, Unpack

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from gearpy.connectors.folders.columns import (
    ColumnFormat,
    ColumnsOf,
    WaitingRows,
    checked_schema,
    has_result_columns,
)
from gearpy.connectors.folders.writer import FolderOptions, FolderSink, RowWriter
from gearpy.connectors.shared_options import check_options, takes
from gearpy.errors import ConfigError
from gearpy.task.api.interfaces import Sink

_ARROW: Final = "arrow_folder"
_CSV: Final = "csv_folder"
_PARQUET: Final = "parquet_folder"
_CODECS: Final = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")


@takes(FolderOptions, FolderSink)
def arrow_folder(path: str | Path, *, schema: Any = None, **options: Unpack[FolderOptions]) -> Sink:
    """Write records into files of Arrow's IPC in a folder: exactly once, whatever fails.

    What `parquet_folder` says of records, schemas, files and epochs holds here, too. Readers map
    such files into memory and decode nothing, and they are larger than those of Parquet.

    Args:
        path: the folder, which is made if the one above exists, or a URL such as
            ``s3://bucket/out``; on a cluster all machines must see the same.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types.
        options: those that all folders share, see `FolderOptions`.

    Raises:
        ConfigError: the schema is none, or the prefix cannot begin names.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> import pyarrow.feather
        >>> app = gp.StreamApp("table")
        >>> app.read(gp.collection([{"n": 1}, {"n": 2}])).write(gp.arrow_folder("columns"))
        >>> _ = gp.run(app)
        >>> (file,) = Path("columns").glob("*.arrow")
        >>> pyarrow.feather.read_table(str(file)).to_pylist()
        [{'n': 1}, {'n': 2}]
    """

    def rows_of(columns: ColumnsOf, file: BinaryIO) -> WaitingRows:
        return WaitingRows(columns, lambda schema: pa_ipc.new_file(file, schema))

    return _sink(_ARROW, path, checked_schema(_ARROW, schema), rows_of, options, ending=".arrow")


@takes(FolderOptions, FolderSink)
def csv_folder(
    path: str | Path,
    *,
    schema: Any = None,
    delimiter: str = ",",
    quote: str | None = '"',
    header: bool = True,
    **options: Unpack[FolderOptions],
) -> Sink:
    r"""Write records into CSV files of a folder: exactly once, whatever fails.

    What `parquet_folder` says of records, schemas, files and epochs holds here, too. Texts stand
    between quotes, a missing value is an empty cell; without a schema, decimals have the digits
    that they need.

    Args:
        path: the folder, which is made if the one above exists, or a URL such as
            ``s3://bucket/out``; on a cluster all machines must see the same.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types. No cell can hold lists, structs or bytes.
        delimiter: between cells.
        quote: around texts; None: there are none, and what would need them is refused.
        header: whether the first line of each file has the names.
        options: those that all folders share, see `FolderOptions`.

    Raises:
        ConfigError: the schema is none or has columns that no cell can hold, the delimiter is not
            one character, or the prefix cannot begin names.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> app = gp.StreamApp("cells")
        >>> fruit = [{"name": "fig", "n": 1}, {"name": "plum", "n": None}]
        >>> app.read(gp.collection(fruit)).write(gp.csv_folder("cells"))
        >>> _ = gp.run(app)
        >>> [each.read_text() for each in Path("cells").glob("*.csv")]
        ['"name","n"\n"fig",1\n"plum",\n']
    """
    if len(delimiter) != 1 or not delimiter.isascii():
        raise ConfigError(f"{_CSV}: delimiter is {delimiter!r}, must be one ASCII character")
    if quote not in {'"', None}:
        raise ConfigError(f"{_CSV}: quote is {quote!r}, must be '\"' or None")
    known = checked_schema(_CSV, schema)
    if known is not None:
        _check_cells(known)

    def rows_of(columns: ColumnsOf, file: BinaryIO) -> _CsvRows:
        return _CsvRows(columns, file, delimiter, has_quotes=quote is not None, header=header)

    return _sink(_CSV, path, known, rows_of, options, ending=".csv")


class _CsvRows(RowWriter):
    def __init__(
        self, columns: ColumnsOf, file: BinaryIO, delimiter: str, *, has_quotes: bool, header: bool
    ) -> None:
        self._columns = columns
        self._file = file
        self._delimiter = delimiter
        self._quoting = "needed" if has_quotes else "none"
        self._header = header
        self._names: tuple[str, ...] | None = None  # The file has these columns.

    def write(self, values: Sequence[Any]) -> bool:
        batch = self._columns.batch_of(values)
        _check_cells(batch.schema)
        if self._names not in {None, tuple(batch.schema.names)}:
            return False
        self._names = tuple(batch.schema.names)
        batch = batch if self._columns.is_given else _shortened(batch)
        options = pa_csv.WriteOptions(
            include_header=self._header,
            delimiter=self._delimiter,
            quoting_style=self._quoting,
            quoting_header=self._quoting,
        )
        self._file.write(_text(batch, options, has_quotes=self._quoting != "none"))
        self._header = False
        return True


def _shortened(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return decimals with as many digits behind the point as one of them needs."""
    for at, field in enumerate(batch.schema):
        for behind in range(field.type.scale if pa.types.is_decimal(field.type) else 0):
            with suppress(pa.ArrowInvalid):
                column = batch.column(at).cast(pa.decimal128(38, behind))
                batch = batch.set_column(at, field.with_type(column.type), column)
                break
    return batch


#: Stands for a quote, which Arrow refuses in a cell without quotes.
_STAND_IN: Final = "\x1f"


def _text(batch: pa.RecordBatch, options: pa_csv.WriteOptions, *, has_quotes: bool) -> bytes:
    text = BytesIO()
    if has_quotes:
        pa_csv.write_csv(batch, text, options)
        return text.getvalue()
    for at, field in enumerate(batch.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = batch.column(at)
            if pc.any(pc.match_substring(column, _STAND_IN)).as_py():
                raise _unquoted(f"text with the control character {_STAND_IN!r}")
            batch = batch.set_column(at, field, pc.replace_substring(column, '"', _STAND_IN))
    try:
        pa_csv.write_csv(batch, text, options)
    except pa.ArrowInvalid as error:
        cell = str(error).partition("Invalid value: ")[2].replace(_STAND_IN, '"')
        raise _unquoted(repr(cell)) from error
    return text.getvalue().replace(_STAND_IN.encode(), b'"')


def _unquoted(cell: str) -> ConfigError:
    return ConfigError(
        f"{_CSV}: {cell} cannot be a cell without quotes: leave quote=None out, or give another "
        "delimiter"
    )


def _check_cells(schema: pa.Schema) -> None:
    for field in schema:
        kind = field.type
        is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if pa.types.is_nested(kind) or is_bytes or isinstance(kind, pa.BaseExtensionType):
            raise ConfigError(
                f"{_CSV}: column {field.name!r} is {kind}, which no cell can hold: map it to text "
                "or numbers, or write a parquet_folder"
            )


@takes(FolderOptions, FolderSink)
def parquet_folder(
    path: str | Path,
    *,
    schema: Any = None,
    compression: str = "snappy",
    **options: Unpack[FolderOptions],
) -> Sink:
    """Write records into Parquet files of a folder: exactly once, whatever fails.

    Files are written, committed and removed as by `jsonl_folder`; what it says about epochs,
    small files and earlier runs holds here, too.

    Records are dicts, dataclasses or NamedTuples. A field that a record lacks is null. A record
    that does not fit the schema is refused: with a field that is not in it, without one that must
    be there, with a text for a number, a number for a time, a fraction for a whole number, a time
    that is finer than the schema's unit. No value is changed to fit.

    Results of windows and joins have the columns of a `window_log_folder`, unless the schema has
    the column ``start``: then each of their fields is one.

    Without a schema each task finds out its own, which grows with what comes: whole numbers become
    fractions, a column that was all None gets a type, a new field another column, and the next file
    has them. Decimals are ``decimal128(38, 18)``. What fits no such column, as a text among
    numbers, is refused. A program whose files are to be alike gives a schema.

    Args:
        path: the folder, which is made if the one above exists, or a URL such as
            ``s3://bucket/out``; on a cluster all machines must see the same.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types.
        compression: "snappy", "zstd", "gzip", "lz4", "brotli" or "none".
        options: those that all folders share, see `FolderOptions`.

    Raises:
        ConfigError: the schema is none, there is no such codec, or the prefix cannot begin names.

    Example:
        >>> import gearpy as gp
        >>> import pyarrow.parquet
        >>> app = gp.StreamApp("table")
        >>> app.read(gp.collection([{"n": 1}, {"n": 2}])).write(gp.parquet_folder("table"))
        >>> _ = gp.run(app)
        >>> pyarrow.parquet.read_table("table").to_pylist()
        [{'n': 1}, {'n': 2}]
    """
    if compression not in _CODECS:
        raise ConfigError(
            f"{_PARQUET}: compression is {compression!r}, must be one of {', '.join(_CODECS)}"
        )

    def rows_of(columns: ColumnsOf, file: BinaryIO) -> WaitingRows:
        return WaitingRows(
            columns,
            lambda schema: pq.ParquetWriter(
                file, schema, compression=compression, write_page_checksum=True
            ),
        )

    return _sink(
        _PARQUET, path, checked_schema(_PARQUET, schema), rows_of, options, ending=".parquet"
    )


def _sink(
    name: str,
    path: str | Path,
    schema: pa.Schema | None,
    rows_of: Callable[[ColumnsOf, BinaryIO], RowWriter],
    options: FolderOptions,
    *,
    ending: str,
) -> FolderSink:
    check_options(name, options, FolderOptions)
    return FolderSink(
        name,
        path,
        lambda: ColumnFormat(name, ending, schema, rows_of),
        columnar=True,
        takes_results=has_result_columns(schema),
        **options,
    )
