"""CSV and lines of JSON as formats of files."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any, BinaryIO, Final

import msgspec

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]
import pyarrow.json as pa_json  # type: ignore[import-untyped]

from gearpy.columns.texts import shortened
from gearpy.columns.widening import wider_type
from gearpy.columns.workable import workable_batch
from gearpy.connectors import json_checks
from gearpy.connectors.files.column_times import times_of_texts
from gearpy.connectors.files.dialects.dialect import Dialect, with_lines
from gearpy.connectors.files.found.exact import (
    are_numbers,
    changed_text,
    check_values,
    code_pattern,
    has_code,
    has_large,
    is_number,
    large_columns,
    number_type,
    refined,
    refusal,
)
from gearpy.connectors.files.found.json_types import check_json, finer, json_columns
from gearpy.connectors.files.found.sampling import PIECE_BYTES, pieces
from gearpy.connectors.files.line_tables import (
    BLOCK_BYTES,
    LineParser,
    LinePlace,
    LineTables,
    block_at,
    lines_of,
    whole_lines,
)
from gearpy.connectors.files.lines import Decoder
from gearpy.connectors.files.tables import (
    ARROW_ERRORS,
    FILE_CURE,
    BadRows,
    FileFormat,
    Fit,
    OnBad,
    Places,
    check_names,
    plain_schema,
)
from gearpy.connectors.locations import DamagedFile, FoundFile, open_found
from gearpy.errors import ConfigError
from gearpy.messages.table import with_leaves

_PLAIN: Final = Dialect()
_MARK: Final = b"\xef\xbb\xbf"
#: Arrow names a cell by numbers of its column and of a row in the block.
_IN_COLUMN: Final = re.compile(r"^In CSV column #(\d+): (?:Row #\d+: )?")

#: Arrow takes 1 and 0 for flags, too.
_TRUE: Final = ["true", "True", "TRUE"]
_FALSE: Final = ["false", "False", "FALSE"]

_IS_OPEN: Final = (
    "quotes are not closed in this line; where cells go over more than one line, give "
    "multiline=True"
)


class CsvFormat(FileFormat):
    """Cells in lines.

    Args:
        header: how many lines have the names; none: they come from ``names`` or the schema.
        names: of the columns, in place of those in the header.
        nulls: texts that stand for a missing value, in columns that are no text.
    """

    name = "csv"

    def __init__(
        self,
        *,
        dialect: Dialect = _PLAIN,
        skip: int = 0,
        header: bool | int = True,
        names: Sequence[str] | None = None,
        nulls: Sequence[str] = ("",),
        encoding: str = "utf-8",
    ) -> None:
        numbers: dict[str, Any] = {"skip": skip, "header": header}
        for option, value in numbers.items():
            if not isinstance(value, int) or value < 0:
                raise ConfigError(f"csv: {option} is {value!r}, must be a number of lines")
        if names is not None:
            if (
                isinstance(names, str)
                or not names
                or not all(isinstance(each, str) for each in names)
            ):
                raise ConfigError(
                    f"csv: names is {names!r}, must be a list of the names of all columns"
                )
            twice = [name for name in names if list(names).count(name) > 1]
            if twice:
                raise ConfigError(f"csv: names has {twice[0]!r} twice")
        Decoder(encoding, "strict")  # Refuses what has no lines.
        self.note = dialect.note
        self.code = code_pattern(dialect.delimiter)
        self._dialect = dialect
        self._skip = skip
        self._header = int(header)
        self._names = None if names is None else list(names)
        self.nulls = list(nulls)
        self.multiline = dialect if dialect.multiline else None
        self.grows = self.multiline is None
        self._encoding = encoding

    def schemas(self, file: FoundFile, places: Places, on_bad: OnBad) -> Iterator[pa.Schema]:
        if not self._header and self._names is None:
            raise ConfigError(
                "csv: header=False needs the names of the columns: give schema=, or names="
            )
        with with_lines(open_found(self.name, file)) as opened:
            names, place = self._whole_head(file, opened)
            types = _CsvTypes(self, names)
            yield from _found(
                self.name, file, opened, types, place=place, places=places, on_bad=on_bad
            )

    def whole(self, file: FoundFile) -> int:
        return whole_lines(file, lambda _: False)

    def merged(self, one: pa.Schema, other: pa.Schema) -> pa.Schema:
        """A column of unlike values is text, as all of it is in a file."""
        there = {field.name: field.type for field in other}
        fields = []
        for field in one:
            try:
                kind = wider_type(field.type, there.pop(field.name, pa.null()))
            except ValueError:
                kind = pa.string()
            fields.append(field.with_type(kind))
        return pa.schema(fields + list(there.items()))

    def check(self, schema: pa.Schema) -> None:
        for field in schema:
            if pa.types.is_nested(field.type):
                raise ConfigError(
                    f"csv: column {field.name!r} is {field.type}, which no cell can hold: give a "
                    "plain type, or use jsonl, parquet or arrow"
                )

    def begin(self, file: FoundFile, fit: Fit, bad: BadRows, place: Any) -> LineTables:
        opened = open_found(self.name, file)
        try:
            opened = with_lines(opened)
            names, first = self._whole_head(file, opened)
            if not self._header and self._names is None and fit.schema is not None:
                names = fit.schema.names
            check_names(self.name, file, names, fit)
            parser = _CsvParser(self, names, fit)
            return LineTables(file, opened, parser, fit, bad, place=place or first)
        except BaseException:
            opened.close()
            raise

    def _whole_head(self, file: FoundFile, opened: BinaryIO) -> tuple[list[str], LinePlace]:
        try:
            return self._head(file, opened)
        except DamagedFile as error:
            raise ConfigError(f"csv: {file.name} {error}: {FILE_CURE}") from error

    def _head(self, file: FoundFile, opened: BinaryIO) -> tuple[list[str], LinePlace]:
        """Return the names of the columns, and where rows begin."""
        opened.seek(0)
        mark = _MARK if opened.read(len(_MARK)) == _MARK else b""
        opened.seek(len(mark))
        before = [opened.readline(PIECE_BYTES) for _ in range(self._skip)]
        rows: list[list[str]] = []
        while len(rows) < self._header and (line := opened.readline(PIECE_BYTES)):
            before.append(line)
            if self._dialect.is_comment(line):
                continue
            try:
                text = line.decode(self._encoding).rstrip("\r\n")
                rows.append(self._dialect.cells(text))
            except (UnicodeError, csv.Error, ValueError) as error:
                raise ConfigError(
                    f"csv: {file.name} has no header in line {len(before)}: "
                    f"{shortened(str(error))}: {FILE_CURE}"
                ) from error
        if len(rows) < self._header and file.size:
            lines = len([*filter(None, before)])
            raise ConfigError(f"csv: {file.name} has no header: it ends behind line {lines}")
        found = [" ".join(filter(None, cells)) for cells in zip_longest(*rows, fillvalue="")]
        names = found if self._names is None else self._names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ConfigError(f"csv: {file.name} has two columns {twice[0]!r} in its header")
        offset = len(mark) + sum(map(len, before))
        return names, {"offset": offset, "row": 0, "line": 1 + len(before)}

    def parse(
        self,
        lines: bytes,
        names: Sequence[str],
        kinds: dict[str, Any] | None,
        *,
        keeps_blank: bool = False,
        is_found: bool = False,
    ) -> pa.RecordBatch:
        """Return the columns of lines; those of ``kinds``, or all, whose types are then found.

        Args:
            keeps_blank: a line without anything is a row without a value.
            is_found: nobody gave the types.
        """
        lines, separator = self._dialect.plain(
            lines if self._encoding == "utf-8" else lines.decode(self._encoding).encode()
        )
        if not (lines if keeps_blank else lines.strip(b"\r\n")):
            kinds = dict.fromkeys(names, pa.string()) if kinds is None else kinds
            return _empty(pa.schema(list(kinds.items())))
        quote = self._dialect.quotes
        if may_be_open := bool(quote) and not self.multiline and quote in lines:
            last = lines.rstrip(b"\r\n").rpartition(b"\n")[2] + b"\n"
            try:
                reading = pa_csv.ReadOptions(autogenerate_column_names=True)
                twice = self._read(last + last, separator, reading)
            except pa.ArrowInvalid as error:  # It finds no row at all.
                raise ValueError(_IS_OPEN) from error
            if twice.num_rows < 2:  # noqa: PLR2004 - the second one was part of a cell
                raise ValueError(_IS_OPEN)
        read = partial(
            self._columns, lines, separator, names, keeps_blank=keeps_blank, is_found=is_found
        )
        try:
            table = read(kinds)
        except pa.ArrowInvalid as error:
            # An empty text is no missing value, but an empty number is, also between quotes.
            texts = {name: kind for name, kind in (kinds or {}).items() if _is_text(kind)}
            others = {name: kind for name, kind in (kinds or {}).items() if name not in texts}
            if not others or not quote or quote * 2 not in lines:
                raise self._dialect.in_its_words(error, separator) from error
            table = read(others, is_quoted=True)
            if texts:
                columns = [*table.columns, *read(texts).columns]
                table = pa.Table.from_arrays(columns, [*others, *texts])
        if may_be_open and table.num_rows < _rows(lines, table.num_rows, b"\r"):
            raise ValueError(_IS_OPEN)
        return _one_batch(table)

    def _columns(
        self,
        lines: bytes,
        separator: str,
        names: Sequence[str],
        kinds: dict[str, Any] | None,
        *,
        keeps_blank: bool,
        is_found: bool,
        is_quoted: bool = False,
    ) -> pa.Table:
        converting = pa_csv.ConvertOptions(
            column_types=kinds,
            include_columns=None if kinds is None else list(kinds),
            null_values=self.nulls,
            strings_can_be_null=self.nulls == [""],
            quoted_strings_can_be_null=is_quoted or kinds is None,
            decimal_point=self._dialect.decimal,
            true_values=_TRUE if is_found else None,
            false_values=_FALSE if is_found else None,
        )
        reading = pa_csv.ReadOptions(column_names=list(names))
        return self._read(lines, separator, reading, converting, keeps_blank=keeps_blank)

    def _read(
        self,
        lines: bytes,
        separator: str,
        reading: pa_csv.ReadOptions,
        converting: pa_csv.ConvertOptions | None = None,
        *,
        keeps_blank: bool = False,
    ) -> pa.Table:
        reading.use_threads = False
        reading.block_size = max(BLOCK_BYTES, len(lines))
        return pa_csv.read_csv(
            pa.BufferReader(lines),
            read_options=reading,
            parse_options=self._dialect.parse_options(separator, keeps_blank=keeps_blank),
            convert_options=converting,
        )


def _rows(lines: bytes, found: int, blank: bytes | None) -> int:
    if lines.count(b"\n") + (not lines.endswith(b"\n")) == found:
        return found
    return sum(1 for line in lines.split(b"\n") if line.strip(blank))


class _CsvParser(LineParser):
    def __init__(self, form: CsvFormat, names: Sequence[str], fit: Fit) -> None:
        schema = fit.schema
        self._form = form
        self._names = names
        self._schema = schema
        self._is_found = fit.is_found
        self._is_sure = fit.is_sure
        self._empty = fit.empty
        self._kinds = dict.fromkeys(names, pa.string())
        self._in_utc: list[str] = []  # Texts without a zone are in UTC; Arrow refuses them.
        self._whole_texts = names  # A cell without anything is an empty text.
        if schema is not None:
            self._kinds = {field.name: field.type for field in schema if field.name in names}
            self._in_utc = [
                name
                for name, kind in self._kinds.items()
                if (pa.types.is_timestamp(kind) and kind.tz is not None)
            ]
            self._kinds |= dict.fromkeys(self._in_utc, pa.string())
            self._whole_texts = [each.name for each in schema if not each.nullable]
        self._finer = {name: with_leaves(kind, finer) for name, kind in self._kinds.items()}
        is_needed = schema is not None and not all(field.nullable for field in schema)
        self._keeps_blank = len(names) == 1 and not is_needed
        self.multiline = form.multiline

    def parse(self, lines: bytes) -> Any:
        if not (lines if self._keeps_blank else lines.strip(b"\r\n")):
            return [] if self._schema is None else _empty(self._schema)
        try:
            batch = self._read(lines, self._kinds)
        except pa.ArrowInvalid as error:
            batch = self._read_finer(lines, error)
        if self._is_found or self._schema is not None:
            self._check_numbers(batch, lines)
        for name in self._whole_texts:
            if name in self._kinds and _is_text(self._kinds[name]):
                at = batch.schema.get_field_index(name)
                if batch.column(at).null_count:
                    batch = batch.set_column(at, name, batch.column(at).fill_null(""))
        if self._schema is None:
            return batch.to_pylist()
        for name in self._in_utc:
            batch = self._with_times(batch, name)
        schema = self._schema
        names = batch.schema.names
        columns = [
            batch.column(field.name)
            if field.name in names
            else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _read(self, lines: bytes, kinds: dict[str, Any]) -> pa.RecordBatch:
        return self._form.parse(
            lines, self._names, kinds, keeps_blank=self._keeps_blank, is_found=self._is_found
        )

    def _read_finer(self, lines: bytes, error: pa.ArrowInvalid) -> pa.RecordBatch:
        """Read texts of times with more digits than microseconds have, or refuse them."""
        if self._finer != self._kinds:
            with suppress(pa.ArrowInvalid):
                return workable_batch(self._read(lines, self._finer))
        text = _IN_COLUMN.sub(self._named, str(error))
        if "invalid UTF8" in text:
            text += ': give encoding=, such as encoding="latin-1"'
        elif not self._is_sure:
            text += ", as all had where types were looked for: give schema="
        raise ValueError(text) from error

    def _check_numbers(self, batch: pa.RecordBatch, lines: bytes) -> None:
        """Refuse numbers that their columns would change."""
        may_be_code = not self._is_sure and has_code(lines, self._form.code)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in self._empty and pc.any(pc.not_equal(column, "")).as_py():
                raise ValueError(
                    f"column {name!r} has a value, and had none where types were looked for: give "
                    f"schema=, with {{{name!r}: str}} or what it is"
                )
            is_code = may_be_code and is_number(column.type)
            if not (is_code or has_large(column)):
                continue
            texts = self._read(lines, {name: pa.string()}).column(0)
            changed = changed_text(texts, column)
            if changed is not None and (self._is_found or not changed.strip("-").isdecimal()):
                raise ValueError(refusal(name, changed))
            if is_code and not are_numbers(texts):
                raise ValueError(
                    f"column {name!r} has a code such as 007 or +49, which is no number: give "
                    f"schema=, with {{{name!r}: str}}"
                )

    def _with_times(self, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
        assert self._schema is not None
        at, kind = batch.schema.get_field_index(name), self._schema.field(name).type
        texts = batch.column(at)
        is_null = pc.is_in(texts, pa.array(self._form.nulls, pa.string()))
        try:
            times = times_of_texts(pc.if_else(is_null, None, texts)).cast(kind)
        except pa.ArrowInvalid as error:
            raise ValueError(f"column {name!r}: {error}") from error
        return batch.set_column(at, pa.field(name, kind), times)

    def _named(self, found: re.Match[str]) -> str:
        number = int(found[1])
        name = self._names[number] if number < len(self._names) else number
        return f"column {name!r}: "


class _CsvTypes(LineParser):
    def __init__(self, form: CsvFormat, names: Sequence[str]) -> None:
        self._form = form
        self._names = names
        self.multiline = form.multiline

    def parse(self, lines: bytes) -> Any:
        if not lines.strip(b"\r\n"):
            return _empty(pa.schema([(name, pa.null()) for name in self._names]))
        read = partial(
            self._form.parse, lines, self._names, keeps_blank=len(self._names) == 1, is_found=True
        )
        found = read(None)
        fields = []
        for field, column in zip(found.schema, found.columns, strict=True):
            kind = with_leaves(field.type, _in_micros)
            if pa.types.is_binary(kind):
                raise ValueError(
                    f"column {field.name!r} is no text in this encoding: give encoding=, such as "
                    'encoding="latin-1"'
                )
            if is_number(kind):
                texts = read({field.name: pa.string()}).column(0)
                kind = number_type(texts, column)
            fields.append(field.with_type(kind))
        return _empty(pa.schema(fields))


def _in_micros(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if pa.types.is_time(kind) else kind


def _times_as_text(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


class JsonLinesFormat(FileFormat):
    name = "jsonl"
    grows = True
    multiline: Dialect | None = None

    def whole(self, file: FoundFile) -> int:
        return whole_lines(file, _is_object)  # Nothing that an object begins with is one.

    def schemas(self, file: FoundFile, places: Places, on_bad: OnBad) -> Iterator[pa.Schema]:
        with open_found(self.name, file) as opened:
            place: LinePlace = {"offset": 0, "row": 0, "line": 1}
            yield from _found(
                self.name, file, opened, _JsonTypes(), place=place, places=places, on_bad=on_bad
            )

    def check(self, schema: pa.Schema) -> None:
        check_json(self.name, schema)

    def begin(self, file: FoundFile, fit: Fit, bad: BadRows, place: Any) -> LineTables:
        opened = open_found(self.name, file)
        first: LinePlace = {"offset": 0, "row": 0, "line": 1}
        parser = _JsonParser(fit.schema, is_found=fit.is_found, is_whole=fit.is_whole)
        return LineTables(file, opened, parser, fit, bad, place=place or first)


def _is_object(line: bytes) -> bool:
    with suppress(ValueError):
        return isinstance(msgspec.json.decode(line), dict)
    return False


class _JsonParser(LineParser):
    def __init__(
        self, schema: pa.Schema | None, *, is_found: bool = False, is_whole: bool = False
    ) -> None:
        self._schema = schema
        self._is_found = is_found
        self._is_whole = is_whole

    def parse(self, lines: bytes) -> Any:
        lines = lines.removeprefix(_MARK)
        if self._schema is None:
            return json_checks.values_of(lines)
        if not lines.strip():
            return _empty(self._schema)
        batch = read_json_lines(lines, self._schema, is_whole=self._is_whole)
        if self._is_found and (names := large_columns(batch, self._schema.names)):
            check_values(_objects(lines), names)
        if batch.num_rows != _rows(lines, batch.num_rows, None):
            raise ValueError(json_checks.NOT_AN_OBJECT)
        return batch

    def cause(self, line: bytes, error: Exception) -> str:
        if not isinstance(error, pa.ArrowException) and str(error) != json_checks.NOT_AN_OBJECT:
            return str(error)
        return json_checks.cause_of(line.removeprefix(_MARK), self._schema, read_json_lines)


class _JsonTypes(LineParser):
    def parse(self, lines: bytes) -> Any:
        lines = lines.removeprefix(_MARK)
        lines.decode()  # Names of columns have to be text, too.
        json_checks.check_levels(lines.split(b"\n"), json_checks.TYPE_LEVELS_MAX)
        json_checks.check_digits(lines)
        batch = read_json_lines(lines, None)
        # Arrow takes texts for times, and so loses their zone.
        schema = pa.schema(
            [each.with_type(with_leaves(each.type, _times_as_text)) for each in batch.schema]
        )
        if large := large_columns(batch, schema.names):
            values = _objects(lines)
            for name in large:
                cells = [value.get(name) for value in values]
                field = schema.field(name).with_type(refined(schema.field(name).type, cells, name))
                schema = schema.set(schema.get_field_index(name), field)
        return _empty(schema)

    def cause(self, line: bytes, error: Exception) -> str:
        return _JsonParser(None).cause(line, error)


def read_json_lines(
    lines: bytes, schema: pa.Schema | None, *, is_whole: bool = False
) -> pa.RecordBatch:
    """Return the objects of lines of JSON as rows of a schema; None: of whatever is in them.

    With ``is_whole`` fields that the schema has not are refused.
    """
    if schema is None:
        return _one_batch(_read_json(lines, None, "infer"))
    columns, unexpected = json_columns(schema), "error" if is_whole else "ignore"
    try:
        table = _read_json(lines, columns.by_arrow, unexpected)
    except pa.ArrowInvalid as error:
        if is_whole and "unexpected field" in str(error):
            names = {name for value in _objects(lines) for name in value} - {*schema.names}
            what = repr(min(names)) if names else "inside of a record"
            raise ValueError(
                f"there is a field {what} that the lines looked at before did not have: give "
                "schema= with all fields"
            ) from error
        if columns.finer == columns.by_arrow:
            raise
        try:
            table = _read_json(lines, columns.finer, unexpected)
        except pa.ArrowInvalid:
            raise error from None
    batch = _one_batch(table)
    values = _objects(lines) if columns.by_python else []
    if not columns.by_arrow.names:
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([])))
    made = [
        columns.column_of(field, values)
        if field.name in columns.by_python
        else columns.column(field, batch.column(field.name))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _read_json(lines: bytes, schema: pa.Schema | None, unexpected: str) -> pa.Table:
    if not lines.lstrip().startswith(b"{"):
        raise ValueError(json_checks.NOT_AN_OBJECT)  # Arrow would end the process at a null.
    table = pa_json.read_json(
        pa.BufferReader(lines),
        read_options=pa_json.ReadOptions(
            use_threads=False, block_size=max(BLOCK_BYTES, len(lines) + 1)
        ),
        parse_options=pa_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior=unexpected
        ),
    )
    if json_checks.has_null_row(table) and not json_checks.is_one_each(lines, table.num_rows):
        raise ValueError(json_checks.NOT_AN_OBJECT)
    if not lines.isascii():
        table.validate(full=True)
    return table


def _objects(lines: bytes) -> list[Any]:
    values = json_checks.values_of(lines)
    if not all(isinstance(value, dict) for value in values):
        raise ValueError(json_checks.NOT_AN_OBJECT)
    return values


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else _empty(table.schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _found(
    operator: str,
    file: FoundFile,
    opened: BinaryIO,
    types: Any,
    *,
    place: LinePlace,
    places: Places,
    on_bad: OnBad,
) -> Iterator[pa.Schema]:
    """Yield the columns of parts of a file.

    Bad lines behind the first part are for those who read them.
    """
    begin = place["offset"]
    for offset in pieces(file, opened, begin, places, multiline=types.multiline):
        there: LinePlace = {"offset": offset, "row": 0, "line": place["line"]}
        try:
            yield _found_schema(operator, file, opened, place=there, parser=types, on_bad=on_bad)
        except ConfigError:
            if offset == begin:
                raise


def _found_schema(
    operator: str,
    file: FoundFile,
    opened: BinaryIO,
    *,
    place: LinePlace,
    parser: Any,
    on_bad: OnBad,
) -> pa.Schema:
    """Return the columns of the head of a file, without the bad rows that are left out."""
    multiline = parser.multiline
    try:
        lines = block_at(opened, place["offset"], multiline=multiline, size=PIECE_BYTES)
        return plain_schema(parser.parse(lines).schema)
    except DamagedFile as error:
        raise ConfigError(f"{operator}: {file.name} {error}: {FILE_CURE}") from error
    except ARROW_ERRORS as error:
        refused = error

    def good_of(some: list[bytes], number: int) -> list[bytes]:
        """Return the lines that are rows; where most are, few calls of the parser tell."""
        if not some:
            return []
        try:
            parser.parse(b"".join(some))
            return some
        except ARROW_ERRORS as error:
            if len(some) > 1:
                half = len(some) // 2
                before = sum(line.count(b"\n") for line in some[:half])
                return good_of(some[:half], number) + good_of(some[half:], number + before)
            if on_bad == "fail":
                raise ConfigError(
                    f"{operator}: {file.name}, line {number}: "
                    f"{shortened(parser.cause(some[0], error))}: correct the row, leave such rows "
                    'out with on_bad="skip", "quarantine" or "side", or give schema='
                ) from error
            return []

    good = good_of(list(lines_of(lines, multiline=multiline)), place["line"])
    try:
        return plain_schema(parser.parse(b"".join(good)).schema)
    except ARROW_ERRORS:
        raise ConfigError(
            f"{operator}: {file.name} does not tell what its columns are: {refused}: give schema=, "
            "or rows=True for rows of any kind"
        ) from refused
