"""Dialects of CSV: each text that a writer of this file makes is read as it was meant."""

import gzip
from pathlib import Path
from random import Random
from typing import Any

import pytest

import gearpy as gp
from gearpy.connectors.files import line_tables
from gearpy.connectors.files.dialects.dialect import Dialect
from gearpy.errors import ConfigError, GearpyError
from gearpy.testing import Simulation
from tests.connectors.reading import rows_of

MARK = b"\xef\xbb\xbf"


def read(path: Path, **options: Any) -> list[Any]:
    return [dict(row) for row in rows_of(gp.csv(path, **options))]


def of(tmp_path: Path, data: bytes, name: str = "some.csv", **options: Any) -> list[Any]:
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return read(path, **options)


# -- by example --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["some.csv", "some.csv.gz"])
@pytest.mark.parametrize(
    ("data", "options", "rows"),
    [
        (b'a\tb\n1\t"x\n2\ty"\n', {"delimiter": "\t", "quote": None}, [(1, '"x'), (2, 'y"')]),
        (b"a,b\n1,'x,y'\n2,\"it''s\"\n", {"quote": "'"}, [(1, "x,y"), (2, "\"it''s\"")]),
        (b"a||b\n1||x|y\n", {"delimiter": "||"}, [(1, "x|y")]),
        (b'a||b\n1||"x||y"\n', {"delimiter": "||"}, [(1, "x||y")]),
        ("a§b\n1§ü\n".encode(), {"delimiter": "§"}, [(1, "ü")]),
        ("a§b\n1§ü\n".encode("cp1252"), {"delimiter": "§", "encoding": "cp1252"}, [(1, "ü")]),
        (b'one\ntwo, "\na,b\n1,x\n', {"skip": 2}, [(1, "x")]),
        (b"1,x\n2,y\n", {"header": False, "names": ["a", "b"]}, [(1, "x"), (2, "y")]),
        (b"n,m\n1,x\n", {"names": ["a", "b"]}, [(1, "x")]),
        (b"# it's \"\na,b\n1,x\n#2,y\n3,#z\n", {"comment": "#"}, [(1, "x"), (3, "#z")]),
        (b"a,b\n//\n1,x\n", {"comment": "//"}, [(1, "x")]),
        (b'a , b\n 1,\tx \n2 ," y "\n', {"trim": True}, [(1, "x"), (2, " y ")]),
        (b"  a   b\n 1   x\n", {"delimiter": " ", "trim": True}, [(1, "x")]),
        (b'a,b,\n1,x,\n2,"",\n3,z\n', {"trailing": True}, [(1, "x"), (2, ""), (3, "z")]),
        (b'a,b\n1,x\\,y\n2,"\\"z"\n', {"escape": "\\"}, [(1, "x,y"), (2, '"z')]),
        (b"a,b\r1,x\r2,y\r", {}, [(1, "x"), (2, "y")]),
        (b"a,b\r1,x\r2,y", {}, [(1, "x"), (2, "y")]),
        (MARK + b"#c\na,b\n1,x\n", {"comment": "#"}, [(1, "x")]),
        (MARK + b"1,x\n", {"header": False, "names": ["a", "b"]}, [(1, "x")]),
        (
            b'a,b\n1,"x\n# y"\n# \'"\n2,z\n',
            {"comment": "#", "multiline": True},
            [(1, "x\n# y"), (2, "z")],
        ),
        (
            b"a,b\n1,'x\ny'\n2,'it''s'\n",
            {"quote": "'", "multiline": True},
            [(1, "x\ny"), (2, "it's")],
        ),
        (
            b'a,b\n1,"x\\"\ny"\n2,z\n',
            {"escape": "\\", "multiline": True},
            [(1, 'x"\ny'), (2, "z")],
        ),
    ],
)  # fmt: skip
def test_dialects_are_read(
    tmp_path: Path, name: str, data: bytes, options: dict[str, Any], rows: list[tuple[int, str]]
) -> None:
    expected = [{"a": a, "b": b} for a, b in rows]

    assert of(tmp_path, data, name, **options) == expected
    assert of(tmp_path, data, name, **options, schema={"a": int, "b": str}) == expected
    texts = [{"a": str(a), "b": b} for a, b in rows]
    assert of(tmp_path, data, name, **options, rows=True) == texts


def test_a_header_has_several_lines(tmp_path: Path) -> None:
    data = b"2023,,\na,b,c\n,in m,\n1,2,3\n"

    assert of(tmp_path, data, header=3) == [{"2023 a": 1, "b in m": 2, "c": 3}]


def test_the_decimal_point_may_be_a_comma(tmp_path: Path) -> None:
    data = b"x;n\n1,5;2\n-0,25;3\n"
    rows = [{"x": 1.5, "n": 2}, {"x": -0.25, "n": 3}]

    assert of(tmp_path, data, delimiter=";", decimal=",") == rows
    assert of(tmp_path, data, delimiter=";", decimal=",", schema={"x": float, "n": int}) == rows


def test_a_bad_row_is_named_as_it_stands_in_the_file(tmp_path: Path) -> None:
    data = b"skipped\n# none\na||b\n1||x\n# none\n2||y||z\n3||w\n"
    options: dict[str, Any] = {"delimiter": "||", "comment": "#", "skip": 1}
    schema = {"a": int, "b": str}

    with pytest.raises(GearpyError, match=r"some\.csv.*line 6: .*2\|\|y\|\|z"):
        of(tmp_path, data, **options, schema=schema)
    rows = of(tmp_path, data, **options, schema=schema, on_bad="skip")
    assert [row["a"] for row in rows] == [1, 3]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delimiter": ""}, "delimiter is '', must be text in one line"),
        ({"delimiter": "\n"}, r"delimiter is '\\n', must be text in one line"),
        ({"delimiter": None}, "delimiter is None, must be text"),
        ({"quote": ""}, "quote is '', must be one ASCII character, or None"),
        ({"quote": "ab"}, "quote is 'ab', must be one ASCII character, or None"),
        ({"quote": ","}, "quote is ',', which is in the delimiter ','"),
        ({"escape": "xx"}, "escape is 'xx', must be one ASCII character, or None"),
        ({"escape": '"'}, "is the quote, and something else"),
        ({"comment": " "}, "comment is ' ', must be text such as '#', or None"),
        ({"decimal": ","}, "decimal is ',', which is in the delimiter"),
        ({"decimal": None}, "decimal is None, must be one ASCII character$"),
        ({"quote": None, "multiline": True}, "multiline=True needs a quote"),
        ({"trim": 1}, "trim is 1, must be True or False"),
        ({"trailing": "no"}, "trailing is 'no', must be True or False"),
        ({"skip": -1}, "skip is -1, must be a number of lines"),
        ({"header": "yes"}, "header is 'yes', must be a number of lines"),
        ({"names": "ab"}, "names is 'ab', must be a list"),
        ({"names": ["a", "a"]}, "names has 'a' twice"),
        ({"header": False}, "give schema=, or names="),
        ({"skip": 9}, "has no header: it ends behind line 2"),
    ],
    ids=str,
)
def test_bad_options_are_named(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")

    with pytest.raises(ConfigError, match=text):
        read(tmp_path / "a.csv", **options)


def test_the_plan_says_that_cells_are_translated(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a||b\n1||2\n")

    assert "translated for Arrow" in gp.csv(tmp_path / "a.csv", delimiter="||").note
    assert not gp.csv(tmp_path / "a.csv", delimiter="|", quote=None).note


def test_a_folder_without_quotes_is_read_back(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": '"x'}, {"a": 2, "b": 'say "y"'}, {"a": 3, "b": "z"}]
    app = gp.StreamApp("write")
    app.read(gp.collection(rows)).write(gp.csv_folder(tmp_path / "out", delimiter="\t", quote=None))
    Simulation(app).run()

    (file,) = (tmp_path / "out").glob("*.csv")
    assert file.read_text() == 'a\tb\n1\t"x\n2\tsay "y"\n3\tz\n'
    assert read(file, delimiter="\t", quote=None) == rows


@pytest.mark.parametrize("text", ["x\ty", "x\ny", "x\x1fy"])
def test_what_needs_quotes_is_refused_without(tmp_path: Path, text: str) -> None:
    app = gp.StreamApp("write")
    app.read(gp.collection([{"b": text}])).write(
        gp.csv_folder(tmp_path / "out", delimiter="\t", quote=None)
    )

    with pytest.raises(GearpyError, match="without quotes"):
        gp.run(app)


# -- at random ---------------------------------------------------------------------------------

DELIMITERS = [",", ";", "\t", "||", "::", "§", " ", "|#|"]


def a_dialect(rng: Random) -> dict[str, Any]:
    quote = rng.choice(['"', '"', "'", None])
    return {
        "delimiter": rng.choice(DELIMITERS),
        "quote": quote,
        "escape": rng.choice([None, None, "\\"]),
        "comment": rng.choice([None, "#", "//"]),
        "trim": rng.random() < 0.4,
        "trailing": rng.random() < 0.3,
        "multiline": quote is not None and rng.random() < 0.4,
    }


def a_cell(rng: Random, options: dict[str, Any]) -> str:
    letters = ["a", "b", "ü", "0", "#", "/", "'", '"', " ", *options["delimiter"], "\\"]
    letters += ["\n"] if options["multiline"] else []
    return "".join(rng.choices(letters, k=rng.randrange(5)))


def written(cell: str, options: dict[str, Any], rng: Random, *, is_first: bool) -> str | None:
    """Return a cell as it stands in a file; None if the dialect has no way to write it."""
    quote, escape, delimiter = options["quote"], options["escape"], options["delimiter"]
    needs = (
        set(delimiter) & set(cell)
        or "\n" in cell
        or (quote and quote in cell)
        or cell != cell.strip(" \t")
        or not cell
        or (is_first and cell.startswith(("#", "/", "'", '"')))
    )
    if escape:
        cell = cell.replace(escape, escape * 2)
    if quote and (needs or rng.random() < 0.2):
        cell = cell.replace(quote, (escape or quote if rng.random() < 0.5 else quote) + quote)
        cell = f"{quote}{cell}{quote}"
    elif needs:
        return None
    pad = rng.choice(["", " "]) if options["trim"] else ""
    return f"{pad}{cell}{pad}"


def a_file(rng: Random, options: dict[str, Any]) -> tuple[bytes, dict[str, Any], list[list[str]]]:
    """Return a file, what else is to be said of it, and its rows."""
    end = rng.choice(["\n", "\n", "\r\n"] if options["multiline"] else ["\n", "\r\n", "\r"])
    more: dict[str, Any] = {"skip": rng.randrange(3), "header": rng.choice([0, 1, 1, 2])}
    behind = options["delimiter"] if options["trailing"] else ""
    lines = ['not "a row'] * more["skip"]
    names = ["x", "y", "z"]
    for number in range(more["header"]):
        lines.append(options["delimiter"].join(f"{name}{number}" for name in names) + behind)
    if more["header"] != 1 or rng.random() < 0.3:
        more["names"] = names
    rows = []
    for _ in range(rng.randrange(1, 12)):
        cells = [a_cell(rng, options) for _ in names]
        texts = [written(c, options, rng, is_first=not at) for at, c in enumerate(cells)]
        if options["comment"] and rng.random() < 0.2:
            lines.append(f"{options['comment']} it's \" {options['delimiter']}")
        if None not in texts:
            rows.append(cells)
            lines.append(options["delimiter"].join(map(str, texts)) + behind)
    mark = rng.choice([b"", MARK])
    text = mark + end.join(lines).encode() + (end.encode() if rng.random() < 0.8 else b"")
    return text, more, rows


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_tables.block_at, "__kwdefaults__", {"multiline": None, "size": 48})


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("block", range(4))
def test_random_files_of_random_dialects(tmp_path: Path, block: int) -> None:
    """Rows are those that were written, however blocks are cut."""
    rng = Random(block)
    for number in range(60):
        options = a_dialect(rng)
        data, more, rows = a_file(rng, options)
        source = _source(tmp_path / f"{number}.csv", data, options | more)
        names = more.get("names") or ["x0", "y0", "z0"]
        assert _rows_of(source) == [dict(zip(names, row, strict=True)) for row in rows], (
            f"{data!r} {options | more}"
        )


def _source(path: Path, data: bytes, options: dict[str, Any]) -> Any:
    path.write_bytes(data)
    return gp.csv(path, rows=True, **options)


def _rows_of(source: Any) -> list[Any]:
    (partition,) = source.partitions()
    reader = source.open(partition, None)
    rows: list[Any] = []
    while not reader.finished:
        batch = reader.read_batch(7)
        rows += [] if batch is None else batch.values
    return rows


def test_a_dialect_may_have_no_separator_left() -> None:
    with pytest.raises(ValueError, match="control characters"):
        Dialect(delimiter="||").plain(bytes(range(128)))
