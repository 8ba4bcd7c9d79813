"""Files of rows: CSV, lines of JSON, Parquet and Arrow, as tables wherever that can be."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from gearpy.columns.row_schema import SchemaLike
from gearpy.connectors.files.column_formats import ArrowFormat, ParquetFileFormat
from gearpy.connectors.files.column_times import TimeUnit
from gearpy.connectors.files.dialects.dialect import Dialect
from gearpy.connectors.files.line_formats import CsvFormat, JsonLinesFormat
from gearpy.connectors.files.partitions import ReadOptions, RowFiles
from gearpy.connectors.files.tables import FileFormat, OnBad
from gearpy.connectors.locations import StoreOptions
from gearpy.connectors.shared_options import check_options, takes
from gearpy.core.base.times import Duration, EventTime
from gearpy.core.base.zones import ZoneName
from gearpy.messages.type_variables import Row
from gearpy.task.api.interfaces import Source

#: The event time of a row: the name of a column, or a function of the row as a dict.
Time = str | Callable[[dict[str, Any]], EventTime]


class FileOptions(TypedDict, total=False):
    """Options of all sources of files of rows.

    Attributes:
        columns: names of those to read, where no class as schema says them; all by default.
        time: column of the event time, such as "at", or "meta.ts" where it is in a record; or a
            function of the row as a dict, or an expression.
        time_unit: what numbers in that column count: "s", "ms", "us" or "ns".
        zone: name of the time zone of times that tell none, such as "Europe/Berlin"; UTC by
            default.
        out_of_order: how far back in time a later row of the same partition may be.
        on_bad: what becomes of a row that does not fit, and of a file that is none: "fail" ends
            the application and names file and row; "skip" leaves it out, logs and counts it;
            "quarantine" keeps its text for ``gear quarantine``; "side" gives it to `Stream.errors`,
            and counts it.
        partitions: number of partitions that share the files; by default each file is one.
        follow: wait for more files, without end.
        poll: wait between two looks.
        settle: a file that was changed less than this ago is left for later.
        storage_options: of the store at a URL, as fsspec takes them; by default as its library
            finds them.
    """

    columns: Sequence[str] | None
    time: Time | None
    time_unit: TimeUnit
    zone: ZoneName | None
    out_of_order: Duration
    on_bad: OnBad
    partitions: int | None
    follow: bool
    poll: Duration
    settle: Duration
    storage_options: StoreOptions | None


@takes(FileOptions, ReadOptions)
def csv(
    *patterns: str | Path,
    schema: SchemaLike[Row] | None = None,
    rows: bool = False,
    delimiter: str = ",",
    quote: str | None = '"',
    escape: str | None = None,
    header: bool | int = True,
    names: Sequence[str] | None = None,
    skip: int = 0,
    comment: str | None = None,
    trim: bool = False,
    trailing: bool = False,
    decimal: str = ".",
    nulls: Sequence[str] = ("",),
    multiline: bool = False,
    encoding: str = "utf-8",
    **options: Unpack[FileOptions],
) -> Source[Row]:
    r"""Read CSV files as tables.

    What `parquet` says of places, event times, partitions and following holds here, too. Names that
    end with ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` are unpacked. Columns are found by the names in
    each file's header, in any order; one that a file lacks is null, if the schema allows it.

    Without a schema the types are those of all rows of all files, up to 16 MiB of 64 files; of
    more, parts are looked at, and a row with a value that these types would change, such as 007
    among numbers, or the first value of a column, is a bad row. A column has numbers only if all of
    them are kept: with a code such as 007 or +49, or with whole numbers that no fraction keeps, it
    is text, and so is one without values. A program that is to be relied on gives a schema.

    A cell without anything is a missing value, where the column may have one; ``""`` is an empty
    text. A line without anything is such a row in a table of one column.

    Args:
        patterns: paths, patterns, folders or URLs.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types.
        rows: give dicts of texts, of whatever each line has in it, and no tables.
        delimiter: between cells, such as "\t" or "||".
        quote: around cells that have delimiters in them; None where a quote is a character like
            any other.
        escape: makes the next character an ordinary one, such as "\\".
        header: whether the first line has the names; without it they are ``names``, or the
            schema's. Names that stand in several lines are joined: give their number.
        names: of all columns, in place of those in the header.
        skip: lines before the header that are none.
        comment: lines that begin with this text are left out.
        trim: whether spaces and tabs around cells do not count, outside of quotes. With a space as
            the delimiter any number of them is one.
        trailing: whether a delimiter may stand behind the last cell, too.
        decimal: the decimal point of numbers, such as ",".
        nulls: texts that stand for a missing value, where the column is no text. Where others than
            the empty one are given, texts are never missing.
        multiline: whether a cell between quotes may have line endings in it.
        encoding: of the files; one that writes ASCII as ASCII.
        options: those that all files of rows share, see `FileOptions`.

    Raises:
        ConfigError: nothing is found, an option is not understood, or a column is not there; also
            when the application is built.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> _ = Path("fruit.csv").write_text("name,price\nfig,3\nplum,5\nfig,4\n")
        >>> app, results = gp.StreamApp("fruit"), []
        >>> fruit = app.read(gp.csv("fruit.csv")).key_by("name").window(gp.global_window())
        >>> fruit.aggregate(total=gp.agg.sum("price")).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> [(result.key, result.value["total"]) for result in results]
        [('fig', 7), ('plum', 5)]
    """
    form = CsvFormat(
        dialect=Dialect(
            delimiter=delimiter,
            quote=quote,
            escape=escape,
            comment=comment,
            trim=trim,
            trailing=trailing,
            decimal=decimal,
            multiline=multiline,
        ),
        skip=skip,
        header=header,
        names=names,
        nulls=nulls,
        encoding=encoding,
    )
    return _files("csv", form, patterns, options, schema=schema, rows=rows)


@takes(FileOptions, ReadOptions)
def jsonl(
    *patterns: str | Path,
    schema: SchemaLike[Row] | None = None,
    rows: bool = False,
    **options: Unpack[FileOptions],
) -> Source[Row]:
    r"""Read files with an object of JSON in each line, as tables.

    What `csv` says of bad rows and of the rows that tell types, and `parquet` of everything else,
    holds here, too. A field that is not in the schema is passed over; one that an object lacks is
    null, if the schema allows it. Dates and times are ISO 8601 texts, as sinks write them; dicts
    are objects.

    Without a schema a field that no line before had is a bad row, and so are whole numbers that no
    column keeps.

    Args:
        patterns: paths, patterns, folders or URLs.
        schema: as of `csv`.
        rows: give what is in each line as Python has it, and no tables.
        options: those that all files of rows share, see `FileOptions`.

    Raises:
        ConfigError: as of `csv`.

    Example:
        >>> import gearpy as gp
        >>> from pathlib import Path
        >>> _ = Path("clicks.jsonl").write_text('{"page": "/a", "at": 5}\n{"page": "/b", "at": 9}')
        >>> app, results = gp.StreamApp("clicks"), []
        >>> clicks = app.read(gp.jsonl("clicks.jsonl", time="at", columns=["page"]))
        >>> clicks.write(gp.to_list(results, messages=True))
        >>> _ = gp.run(app)
        >>> results
        [Message(value={'page': '/a'}, timestamp=5), Message(value={'page': '/b'}, timestamp=9)]
    """
    return _files("jsonl", JsonLinesFormat(), patterns, options, schema=schema, rows=rows)


@takes(FileOptions, ReadOptions)
def parquet(
    *patterns: str | Path, schema: SchemaLike[Row] | None = None, **options: Unpack[FileOptions]
) -> Source[Row]:
    """Read Parquet files as tables; only the columns that are asked for are decoded.

    Patterns may have ``*``, ``?``, ``[...]``, and ``**`` for folders of any depth; a folder stands
    for the files in it, but those whose names begin with ``_`` or a dot. A URL such as
    ``s3://bucket/logs/*.parquet`` needs its fsspec package, ``s3fs`` here, on all machines. Each
    file is a partition, and after a failure is read on from where it was. With ``partitions`` so
    many share the files, by a hash of their names, and each reads its files one after the other, by
    name; ask for it where there are more files than can be open at once.

    Event times are those of a column: timestamps, dates and ISO 8601 texts, in UTC or ``zone``
    where they tell none; numbers in ``time_unit``. Without ``time`` a row has the time at which its
    file was changed.

    Columns are those of the schema, or of all files, up to 64 of them, by name. What a file lacks
    is null if that is allowed, and other types are converted if every value fits. What else is in
    it is passed over where there is a schema, or ``columns``; else the file is refused.

    With ``follow`` new files are read as they come, each once; files are found by look-ups, so
    there may be none at first if there is a schema. A file has to be complete when it appears:
    write it under a name that begins with ``_`` or a dot, or ends with ``.tmp``, ``.part``,
    ``.partial`` or ``.pending``, or into another folder, then rename it. One that was changed
    within ``settle`` is left for later, which helps with writers that do not. A file is
    read once: what is added to it later is not read, and a warning says so; for lines that are
    added there is `files` with ``follow``. In each of the 4 partitions, or as many as
    ``partitions`` says, files that are there at a look are read by name; a new one by a smaller
    name comes after those.

    Args:
        patterns: paths, patterns, folders or URLs.
        schema: as of `csv`.
        options: those that all files of rows share, see `FileOptions`.

    Raises:
        ConfigError: as of `csv`.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("make"), []
        >>> app.read(gp.collection([{"n": 1}, {"n": 2}])).write(gp.parquet_folder("numbers"))
        >>> _ = gp.run(app)
        >>> app = gp.StreamApp("read")
        >>> app.read(gp.parquet("numbers/*.parquet")).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [{'n': 1}, {'n': 2}]
    """
    return _files("parquet", ParquetFileFormat(), patterns, options, schema=schema)


@takes(FileOptions, ReadOptions)
def arrow(
    *patterns: str | Path, schema: SchemaLike[Row] | None = None, **options: Unpack[FileOptions]
) -> Source[Row]:
    """Read files of Arrow's IPC, which Feather is too, or streams of it in files, as tables.

    What `parquet` says holds here, too.

    Args:
        patterns: paths, patterns, folders or URLs.
        schema: as of `csv`.
        options: those that all files of rows share, see `FileOptions`.

    Raises:
        ConfigError: as of `csv`.

    Example:
        >>> import gearpy as gp
        >>> app, results = gp.StreamApp("make"), []
        >>> app.read(gp.collection([{"n": 1}, {"n": 2}])).write(gp.arrow_folder("batches"))
        >>> _ = gp.run(app)
        >>> app = gp.StreamApp("read")
        >>> app.read(gp.arrow("batches")).write(gp.to_list(results))
        >>> _ = gp.run(app)
        >>> results
        [{'n': 1}, {'n': 2}]
    """
    return _files("arrow", ArrowFormat(), patterns, options, schema=schema)


def _files(
    name: str,
    form: FileFormat,
    patterns: Sequence[str | Path],
    options: FileOptions,
    *,
    schema: Any,
    rows: bool = False,
) -> RowFiles:
    check_options(name, options, FileOptions)
    return RowFiles(form, patterns, ReadOptions(schema=schema, rows=rows, **options))
