"""Types that nobody gave are found out of all values, whatever their order, and change none.

Right values are those of plain Python, of `csv` and of `json`.
"""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.connectors.files.datasets import arrow, csv, jsonl, parquet
from gearpy.connectors.files.found import sampling
from tests.connectors.reading import rest_of, rows_of

IDS = [10254939386542155531, 10254939386542155532]
LARGE = [9007199254740993, 9007199254740992]
FILL = 2_500  #: Rows with a pad in each are more than a block of megabytes.
PAD = "x" * 1000


def rows_or_refusal(make: Any) -> list[Any] | str:
    try:
        return rows_of(make())
    except gp.GearpyError as error:
        return str(error)


def texts(values: list[str], place: str) -> list[str]:
    """Return cells, of which some stand first, in the middle, or behind the first megabytes."""
    if place == "first":
        return [*values, "1", "2"]
    if place == "last":
        return ["1", *values]
    return ["1"] * FILL + values


@pytest.mark.parametrize("place", ["first", "last", "behind"])
@pytest.mark.parametrize(
    ("values", "right"),
    [
        (["007", "0"], str),
        (["+491701234567"], str),
        (["0x10"], str),
        (["-007"], str),
        ([str(each) for each in IDS], int),
        ([str(each) for each in [*LARGE, 0.5]], str),
        (["123456789012345678901234567890"], str),
        (["1e400"], str),
        (["0.5"], float),
        (["-0.0"], float),
        (["inf", "1e308"], float),
        (["abc"], str),
    ],
    ids=str,
)
def test_numbers_in_csv_are_kept_or_are_text(
    tmp_path: Path, values: list[str], right: type, place: str
) -> None:
    cells = texts(values, place)
    file = tmp_path / "n.csv"
    file.write_text("n,s\n" + "".join(f"{cell},{PAD}\n" for cell in cells))

    found = [row["n"] for row in rows_of(csv(file))]

    assert list(map(repr, found)) == [repr(right(cell)) for cell in cells]


@pytest.mark.parametrize("place", ["first", "last", "behind"])
@pytest.mark.parametrize(
    "values", [IDS, [*LARGE, 0.5], [-1, IDS[0]], [0.5, 2], [1e308, float("inf")], [10**30]], ids=str
)
def test_numbers_in_json_are_kept_or_refused(tmp_path: Path, values: list[Any], place: str) -> None:
    wraps = ("%s", "[%s]", '{"x": [%s]}')
    for wrap in wraps if place != "behind" else wraps[len(values) - 1 :: 3]:
        cells = [wrap % cell for cell in texts([json.dumps(value) for value in values], place)]
        file = tmp_path / "n.jsonl"
        file.write_text("".join(f'{{"n": {cell}, "pad": "{PAD}"}}\n' for cell in cells))
        right = [json.loads(cell) for cell in cells]

        found = rows_or_refusal(lambda file=file: jsonl(file))

        if isinstance(found, str):
            assert "schema=" in found or "correct the row" in found
            assert "n.jsonl" in found
            assert values not in (IDS, [0.5, 2])
        else:
            assert [row["n"] for row in found] == right


@pytest.mark.parametrize("empty", ["null", "{}", "[]"])
def test_a_field_gets_its_type_from_whichever_line_has_one(tmp_path: Path, empty: str) -> None:
    filled = {"null": "5", "{}": '{"x": 1, "y": "a"}', "[]": "[1.5]"}[empty]
    for lines in ([filled, empty], [empty, filled], [empty] * FILL + [filled]):
        file = tmp_path / "f.jsonl"
        file.write_text("".join(f'{{"a": {line}, "pad": "{PAD}"}}\n' for line in lines))

        found = [row["a"] for row in rows_of(jsonl(file))]

        nothing: Any = {"null": None, "{}": {"x": None, "y": None}, "[]": []}[empty]
        wanted = [json.loads(line) if line == filled else nothing for line in lines]
        assert found == wanted


def test_files_of_a_folder_have_columns_of_all(tmp_path: Path) -> None:
    """Whole numbers in one and fractions in another; fields that only one of them has."""
    rows: list[dict[str, Any]] = [{"a": 1}, {"a": None, "b": "x"}, {"a": 2.5}, {"c": True}]
    folders = {name: tmp_path / name for name in ("csv", "jsonl", "parquet", "arrow")}
    for folder in folders.values():
        folder.mkdir()
    for number, row in enumerate(rows):
        (folders["jsonl"] / f"{number}.jsonl").write_text(json.dumps(row) + "\n")
        names, cells = ",".join(row), ",".join("" if v is None else str(v) for v in row.values())
        (folders["csv"] / f"{number}.csv").write_text(f"{names},z\n{cells},\n")
        table = pa.Table.from_pylist([row])
        pq.write_table(table, folders["parquet"] / f"{number}.parquet")
        with pa.ipc.new_file(str(folders["arrow"] / f"{number}.arrow"), table.schema) as file:
            file.write_table(table)
    wanted = [{"a": None, "b": None, "c": None} | row for row in rows]

    assert rows_of(jsonl(folders["jsonl"])) == wanted
    assert rows_of(parquet(folders["parquet"])) == wanted
    assert rows_of(arrow(folders["arrow"])) == wanted
    assert rows_of(csv(folders["csv"])) == [{**row, "z": None} for row in wanted]


def test_parts_of_large_files_tell_what_columns_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_WHOLE_MAX", 1 << 20)
    monkeypatch.setattr(sampling, "_PIECES", 4)
    line = '{"a": 1, "pad": "%s"}\n' % ("x" * 100)
    count = 100_000
    lines = [line] * count
    (tmp_path / "end.jsonl").write_text("".join([*lines, line.replace("1", "1.5", 1)]))
    assert rows_of(jsonl(tmp_path / "end.jsonl"))[-1]["a"] == 1.5

    lines[count // 2] = '{"a": 1, "new": 2}\n'
    (tmp_path / "field.jsonl").write_text("".join(lines))
    found = rows_or_refusal(lambda: jsonl(tmp_path / "field.jsonl"))
    assert "there is a field 'new'" in found
    assert "give schema=" in found


@pytest.mark.parametrize("on_bad", ["fail", "skip", "side"])
@pytest.mark.parametrize(
    ("column", "cell", "refusal"),
    [
        ("n", "007", "column 'n' has a code"),
        ("n", "+49", "give schema="),
        ("n", '" -07"', "column 'n' has a code"),
        ("n", "0x1F", "column 'n' has a code"),
        ("n", "1.5", "give schema="),
        ("f", "007.5", "column 'f' has a code"),
        ("f", "9007199254740993", "column 'f'"),
        ("flag", "1", "invalid value '1'"),
        ("none", "7", "column 'none' has a value"),
        ("n", "0", None),
        ("n", "-12", None),
        ("f", "0.25", None),
        ("text", "007", None),
        ("flag", "FALSE", None),
        ("none", '""', None),
    ],
)
def test_no_value_between_the_parts_is_changed(  # noqa: PLR0917 - cases
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    column: str,
    cell: str,
    refusal: str | None,
    on_bad: Any,
) -> None:
    monkeypatch.setattr(sampling, "_WHOLE_MAX", 1 << 10)
    monkeypatch.setattr(sampling, "PIECE_BYTES", 1 << 8)
    monkeypatch.setattr("gearpy.connectors.files.line_formats.PIECE_BYTES", 1 << 8)
    names = ["n", "f", "flag", "none", "text", "day"]
    plain = dict(zip(names, ["1", "0.5", "true", "", "a", "2024-01-01 08:30:00"], strict=True))
    rows = [dict(plain) for _ in range(3000)]
    rows[1234][column] = cell
    file = tmp_path / "rows.csv"
    file.write_text("\n".join([",".join(names), *(",".join(row.values()) for row in rows)]))

    found = rows_or_refusal(lambda: csv(file, on_bad=on_bad))
    if refusal and on_bad == "fail":
        assert refusal in found
        assert "rows.csv, line 1236" in found
        return
    read_rows: Any = found
    assert len(read_rows) == 3000 - bool(refusal)
    usual = {"n": 1, "f": 0.5, "flag": True, "none": None, "text": "a"}
    odd = {"0": 0, "-12": -12, "0.25": 0.25, "007": "007", "FALSE": False, '""': ""}
    wanted = [] if refusal else [usual | {column: odd[cell]}]
    assert [row for row in ({k: r[k] for k in usual} for r in read_rows) if row != usual] == wanted


def test_no_file_between_those_looked_at_is_changed(tmp_path: Path) -> None:
    for number in range(70):
        value: Any = "007" if number == 11 else number
        pq.write_table(pa.table({"n": [value]}), tmp_path / f"{number:02}.parquet")

    assert "column 'n' of" in rows_or_refusal(lambda: parquet(tmp_path))
    assert [row["n"] for row in rows_of(parquet(tmp_path, on_bad="skip"))] == [
        *range(11),
        *range(12, 70),
    ]


def test_flags_are_no_numbers(tmp_path: Path) -> None:
    for cells in (["true", "1"], ["1", "true"], ["0", "False"]):
        (tmp_path / "f.csv").write_text("\n".join(["a", *cells]))
        assert [row["a"] for row in rows_of(csv(tmp_path / "f.csv"))] == cells
    (tmp_path / "f.csv").write_text("a\n1\n0\n")
    assert [row["a"] for row in rows_of(csv(tmp_path / "f.csv", schema={"a": bool}))] == [
        True,
        False,
    ]


def test_later_files_of_a_followed_folder_lose_nothing(tmp_path: Path) -> None:
    for name, text, refusal in (
        ("more", "a,b\n1,2\n", "has a column 'b'"),
        ("code", "a\n007\n", "has a code such as 007"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "0.csv").write_text("a\n1\n")
        source = csv(folder, follow=True, partitions=1, settle="0s", poll="1ms")
        reader = source.open(source.partitions()[0], None)
        (folder / "1.csv").write_text(text)
        with pytest.raises(gp.GearpyError, match=refusal):
            _ = rest_of(reader)
        reader.close()


# -- texts and missing values -------------------------------------------------------------------


@pytest.mark.parametrize("schema", [{"s": str | None, "n": int | None}, None])
def test_an_empty_text_is_not_none(tmp_path: Path, schema: Any) -> None:
    """Between quotes it is a text; a number there is missing."""
    file = tmp_path / "s.csv"
    file.write_text('s,n\n"",1\n,"2"\na,""\n')

    assert rows_of(csv(file, schema=schema)) == [
        {"s": "", "n": 1},
        {"s": None, "n": 2},
        {"s": "a", "n": None},
    ]
    assert [row["s"] for row in rows_of(csv(file, rows=True))] == ["", "", "a"]
    needed = {"s": str, "n": int | None}
    assert [row["s"] for row in rows_of(csv(file, schema=needed))] == ["", "", "a"]


@pytest.mark.parametrize(
    ("kind", "text", "right"),
    [
        (int | None, "1\n\n3\n", [1, None, 3]),
        (int | None, "\n\n", [None, None]),
        (str | None, 'x\n\n""\n\n', ["x", None, "", None]),
        (float | None, "\r\n1.5\r\n\r\n", [None, 1.5, None]),
        (int, "1\n\n3\n", [1, 3]),
        (None, "1\n\n3", [1, None, 3]),
    ],
)
def test_a_line_without_anything_is_a_row_of_one_column(
    tmp_path: Path, kind: Any, text: str, right: list[Any]
) -> None:
    file = tmp_path / "one.csv"
    file.write_bytes(b"a\n" + text.encode())

    schema = None if kind is None else {"a": kind}
    assert [row["a"] for row in rows_of(csv(file, schema=schema))] == right


def test_bytes_that_are_no_text_name_the_encoding(tmp_path: Path) -> None:
    for lines in (["Jürgen"], [PAD] * FILL + ["Jürgen"]):
        file = tmp_path / "names.csv"
        file.write_bytes(("id,name\n" + "".join(f"1,{each}\n" for each in lines)).encode("latin-1"))
        for schema in (None, {"id": int, "name": str}):
            found = rows_or_refusal(lambda file=file, schema=schema: csv(file, schema=schema))
            assert 'encoding="latin-1"' in found
        assert rows_of(csv(file, encoding="latin-1"))[-1]["name"] == "Jürgen"


# -- times ---------------------------------------------------------------------------------------

NINE = "2024-01-01T12:30:00.123456789"
AT = datetime(2024, 1, 1, 12, 30, 0, 123_456)  # noqa: DTZ001 - as the text


@pytest.mark.parametrize("place", ["first", "behind"])
@pytest.mark.parametrize(
    ("kind", "text", "right"),
    [
        (datetime, NINE + "Z", AT.replace(tzinfo=UTC)),
        (pa.timestamp("us"), NINE, AT),
        (time, "12:30:00.123456789", AT.time()),
        (date, "2024-02-29", date(2024, 2, 29)),
        (time, "12:30", time(12, 30)),
    ],
    ids=str,
)
def test_times_in_texts_are_cut_alike(
    tmp_path: Path, kind: Any, text: str, right: Any, place: str
) -> None:
    far = {date: "9999-12-31", time: "23:59:59"}.get(kind, "9999-12-31T00:00:00Z")
    if kind == pa.timestamp("us"):
        far = far.removesuffix("Z")
    cells = [far] * (1 if place == "first" else FILL) + [text]
    (tmp_path / "t.csv").write_text("a,p\n" + "".join(f"{cell},{PAD}\n" for cell in cells))
    json_lines = (f'{{"a": "{cell}", "p": "{PAD}"}}\n' for cell in cells)
    (tmp_path / "t.jsonl").write_text("".join(json_lines))
    schema = {"a": kind, "p": str}

    for source in (
        csv(tmp_path / "t.csv", schema=schema),
        jsonl(tmp_path / "t.jsonl", schema=schema),
    ):
        assert rows_of(source)[-1]["a"] == right


@pytest.mark.parametrize(
    ("kind", "text", "right"),
    [
        (date, '"2024-02-29"', date(2024, 2, 29)),
        (date, "20240229", None),
        (date, '"2024-02-30"', None),
        (time, '"12:30:00"', time(12, 30)),
        (time, "45000", None),
        (time, '"24:30"', None),
        (time, '"12:30:00+02:00"', None),
        (list[date], '["2024-02-29", null]', [date(2024, 2, 29), None]),
        (dict[str, int], '{"x": 1}', {"x": 1}),
        (dict[str, date], '{"x": "2024-02-29"}', {"x": date(2024, 2, 29)}),
        (dict[str, int], '{"x": "1"}', None),
        (dict[str, int], "[1]", None),
        (list[dict[str, float]], '[{"x": 1.5}, {}]', [{"x": 1.5}, {}]),
        (pa.decimal128(38, 2), '"1.50"', Decimal("1.50")),
        (pa.dictionary(pa.int32(), pa.string()), '"a"', "a"),
        (pa.large_list(pa.int64()), "[1]", [1]),
    ],
    ids=str,
)
def test_json_has_dates_times_and_dicts(tmp_path: Path, kind: Any, text: str, right: Any) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"b": 1, "a": {text}}}\n{{"b": 2}}\n')
    field = pa.field("a", kind) if isinstance(kind, pa.DataType) else None
    if kind == list[date]:
        kind = list[date | None]
    schema: Any = {"b": int, "a": kind | None if field is None else kind}
    if field is not None:
        schema = pa.schema([pa.field("b", pa.int64()), field])

    found = rows_of(jsonl(file, schema=schema, on_bad="skip"))

    assert found == ([] if right is None else [{"b": 1, "a": right}]) + [{"b": 2, "a": None}]


def test_a_span_of_time_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """JSON has no form for it; also inside of lists, and from Kafka."""
    (tmp_path / "a.jsonl").write_text('{"a": 5}\n')
    for kind in (pa.duration("us"), pa.list_(pa.duration("us"))):
        schema = pa.schema([("a", kind)])
        with pytest.raises(gp.ConfigError, match="JSON has no form for a span of time"):
            _ = jsonl(tmp_path / "a.jsonl", schema=schema).schema
        with pytest.raises(gp.ConfigError, match="JSON has no form for a span of time"):
            _ = gp.kafka("t", servers="localhost:1", value="json", schema=schema)
