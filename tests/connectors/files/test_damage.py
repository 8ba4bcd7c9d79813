"""Bad rows and damaged files of every kind, anywhere: each is named or left out, none is fatal.

What is right is computed by plain Python.
"""

import bz2
import gzip
import json
import lzma
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.ipc as pa_ipc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.connectors.files.partitions import RowFiles
from gearpy.connectors.locations import file_at
from gearpy.errors import ConfigError, GearpyError
from gearpy.task.api.interfaces import Source

#: More than a block.
MANY: Final = 4_000
FEW: Final = 40
SCHEMA: Final = {"a": int, "b": str}
DEEP: Final = b"[" * 20_000 + b"]" * 20_000
#: Whether it is bad also where lines are taken as they are.
BAD_JSON: Final = {
    b"null": False,
    b" null ": False,
    b"[1]": False,
    b'{"a": 1, "b": "x"} null': True,
    b'{"a": 1, "b": "x"}{"a": 2, "b": "y"}': True,
    b'{"a": 1, "b": "x"': True,
    b'{"a": ' + DEEP + b', "b": "x"}': True,
    b'{"a": 1, "b": "\\ud800"}': True,
    b'{"a": 1, "b": "\xff"}': True,
    b'{"a": 1, "b": "x"}\x00': True,
    b'{"a": ' + b"7" * 5000 + b', "b": "x"}': True,
}
BAD_CSV: Final = (b"1", b"1,x,y", b'1,"x', b'"1","x')


def row_of(at: int) -> dict[str, Any]:
    return {"a": at, "b": f"t{at:0600}"}


def as_json(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode()


def as_csv(row: dict[str, Any]) -> bytes:
    return b"%d,%s" % (row["a"], row["b"].encode())


def read(source: Source[Any]) -> tuple[list[Any], int]:
    rows, skipped = [], 0
    for partition in source.partitions():
        with closing(source.open(partition, None)) as reader:
            while not reader.finished:
                batch = reader.read_batch(1000)
                if batch is not None:
                    rows += [message.value for message in batch.messages()]
            skipped += reader.skipped_records
    return rows, skipped


def aside(source: Source[Any]) -> list[tuple[str, str]]:
    """Return where bad records were that are set aside, without folders, and their texts."""
    found: list[tuple[str, str]] = []
    for partition in source.partitions():
        with closing(source.open(partition, None)) as reader:
            while not reader.finished:
                reader.read_batch(1000)
                bad = reader.take_bad()
                found += [(each.where.rpartition("/")[2], each.record) for each in bad]
    return found


def refusal(make: Callable[[], Source[Any]]) -> str:
    with pytest.raises((ConfigError, GearpyError)) as told:
        read(make())
    return str(told.value)


PLACES: Final = {
    "first": (FEW, 0),
    "middle": (FEW, 20),
    "last": (FEW, FEW),
    "late": (MANY, MANY - 500),
}
HOW: Final[dict[str, dict[str, Any]]] = {
    "columns": {},
    "schema": {"schema": SCHEMA},
    "rows": {"rows": True},
}


PACKED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": lambda data: data,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


def check_bad(make: Callable[..., Source[Any]], rows: list[Any], where: str, bad: bytes) -> str:
    """See that one bad line is left out, set aside or refused; return the refusal."""
    assert read(make(on_bad="skip")) == (rows, 1)
    assert read(make(on_bad="side")) == (rows, 1)
    text = bad.rstrip(b"\r").decode("utf-8", "backslashreplace")
    assert aside(make(on_bad="side")) == [(where, text)]
    told = refusal(make)
    assert f"{where}: " in told
    assert 'on_bad="skip", "quarantine" or "side"' in told
    assert len(told) < 1500
    return told


def check_json(bad: bytes, place: str, how: str, folder: Path, pack: str = "") -> None:
    count, at = PLACES[place]
    rows = [row_of(number) for number in range(count)]
    lines = [as_json(row) for row in rows]
    file = folder / f"rows.jsonl{pack and '.'}{pack}"
    file.write_bytes(PACKED[pack](b"\n".join([*lines[:at], bad, *lines[at:]])))
    check_bad(partial(gp.jsonl, file, **HOW[how]), rows, f"{file.name}, line {at + 1}", bad)


def check_csv(bad: bytes, place: str, how: str, folder: Path, pack: str = "") -> None:
    count, at = PLACES[place]
    rows = [row_of(number) for number in range(count)]
    lines = [as_csv(row) for row in rows]
    file = folder / f"rows.csv{pack and '.'}{pack}"
    file.write_bytes(PACKED[pack](b"\n".join([b"a,b", *lines[:at], bad, *lines[at:]])))
    if how == "rows":
        rows = [{"a": str(row["a"]), "b": row["b"]} for row in rows]
    make = partial(gp.csv, file, **HOW[how])
    told = check_bad(make, rows, f"{file.name}, line {at + 2}", bad)
    if b'"' in bad:
        assert "multiline=True" in told


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bad", BAD_JSON, ids=lambda bad: bad[:30].decode("latin1"))
def test_bad_lines_of_json(bad: bytes, place: str, how: str, tmp_path: Path) -> None:
    if how == "rows" and not BAD_JSON[bad]:
        return
    if place == "late" and (how == "rows" or bad not in list(BAD_JSON)[::5]):
        return
    check_json(bad, place, how, tmp_path)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bad", BAD_CSV)
def test_bad_lines_of_csv(bad: bytes, place: str, how: str, tmp_path: Path) -> None:
    check_csv(bad, place, how, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("pack", PACKED)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("place", PLACES)
def test_bad_lines_of_every_kind(place: str, how: str, pack: str, tmp_path: Path) -> None:
    for bad in BAD_CSV:
        check_csv(bad, place, how, tmp_path, pack)
    for bad, is_bad_row in BAD_JSON.items():
        if how != "rows" or is_bad_row:
            check_json(bad, place, how, tmp_path, pack)


def test_the_cause_names_column_and_value(tmp_path: Path) -> None:
    """A value of the wrong type is told by its column; a very long one is cut."""
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"a": 1, "b": "x"}\n{"a": "%s", "b": "x"}\n' % (b"y" * 9000))
    told = refusal(lambda: gp.jsonl(file, schema=SCHEMA))
    assert "rows.jsonl, line 2: column 'a' is int64, and \"yyyyy" in told
    assert len(told) < 1000


def test_lines_that_are_null_in_all_columns_are_no_null(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{}\n  {"c": 1} \r\n\n{"a": null}\n')
    kinds = {"a": int | None, "b": str | None}
    assert read(gp.jsonl(file, schema=kinds)) == ([{"a": None, "b": None}] * 3, 0)
    file.write_bytes(b"{}\nnull\n{}\n")
    assert read(gp.jsonl(file, schema=kinds, on_bad="skip")) == ([{"a": None, "b": None}] * 2, 1)


def test_types_are_not_made_of_very_deep_values(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"a": 1}\n{"a": 2, "x": %s}\n' % DEEP)
    assert "nested deeper than 60 levels" in refusal(lambda: gp.jsonl(file))
    assert read(gp.jsonl(file, schema={"a": int})) == ([{"a": 1}, {"a": 2}], 0)


# -- text ------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([b"a", b"", b"\xff", b"b\r", b"\xffc\r", "\u00e9".encode()])),
    st.sampled_from([b"", b"\n"]),
    st.integers(1, 4),
)
def test_lines_that_are_no_text(lines: list[bytes], end: bytes, size: int) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "x.log")
        file.write_bytes(b"\n".join(lines) + (end if lines else b""))
        texts = file.read_bytes().split(b"\n")
        if not texts[-1]:
            texts.pop()
        ended = texts if end and lines else texts[:-1]
        texts = [
            text.removesuffix(b"\r") if at < len(ended) else text for at, text in enumerate(texts)
        ]
        good = [text.decode() for text in texts if b"\xff" not in text]
        bad = [text.removesuffix(b"\r") for text in texts if b"\xff" in text]
        assert read(gp.files(file, on_bad="skip")) == (good, len(bad))
        found, aside, place, ended_at = list[str](), list[gp.BadRecord](), None, False
        source = gp.files(file, on_bad="side")
        while not ended_at:
            with closing(source.open(str(file), place)) as reader:
                batch = reader.read_batch(size)
                found += list(batch.values) if batch else []
                aside += reader.take_bad()
                place, ended_at = reader.snapshot(), reader.finished
        assert found == good
        assert [each.record.removesuffix("\r") for each in aside] == [
            each.decode("utf-8", "backslashreplace") for each in bad
        ]
        data = file.read_bytes() + b"\n"
        for each in aside:
            offset = int(each.where.rpartition("from byte ")[2].removesuffix(" on"))
            line = data[offset : data.index(b"\n", offset)]
            assert line.decode("utf-8", "backslashreplace") == each.record
        if bad:
            told = refusal(lambda: gp.files(file))
            assert "x.log: byte " in told
            assert 'on_bad="skip", "quarantine" or "side"' in told


# -- packed files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "how"),
    [*((suffix, "schema") for suffix in PACKED if suffix), ("gz", "rows"), ("zst", "columns")],
)
def test_packed_files_that_are_cut_or_not_packed(suffix: str, how: str, tmp_path: Path) -> None:
    """Rows before the damage are given; the rest is refused by file and line, or left out."""
    rows = [row_of(random.Random(number).randrange(10**9)) for number in range(700)]
    whole = b"".join(as_json(row) + b"\n" for row in rows)
    packed = PACKED[suffix](whole)
    file = tmp_path / f"2.jsonl.{suffix}"
    good = tmp_path / f"1.jsonl.{suffix}"
    good.write_bytes(PACKED[suffix](as_json(rows[0]) + b"\n"))
    for data in (packed[: len(packed) * 2 // 3], packed[:20], b"", whole[:1000], packed[:-3]):
        file.write_bytes(data)
        found, skipped = read(gp.jsonl(good, file, on_bad="skip", **HOW[how]))
        assert found == rows[:1] + rows[: len(found) - 1]
        if not data:
            continue  # An empty file has no rows, and no damage.
        assert skipped == 1
        told = refusal(lambda: gp.jsonl(good, file, **HOW[how]))
        assert f"{file.name}, from line {len(found)} on: cannot be unpacked" in told
        assert 'on_bad="skip"' in told


def test_all_that_was_unpacked_before_a_cut_is_given(tmp_path: Path) -> None:
    lines = [as_csv(row_of(random.Random(number).randrange(10**9))) for number in range(MANY)]
    packed = gzip.compress(b"\n".join([b"a,b", *lines]))
    cut = packed[: len(packed) * 3 // 4]
    (tmp_path / "x.csv.gz").write_bytes(cut)
    whole = zlib.decompressobj(31).decompress(cut).decode()
    expected = [line.split(",") for line in whole.split("\n")[1:-1]]
    found, skipped = read(gp.csv(tmp_path / "x.csv.gz", schema=SCHEMA, on_bad="skip"))
    assert [[str(row["a"]), row["b"]] for row in found] == expected
    assert skipped == 1


def test_a_header_that_cannot_be_unpacked(tmp_path: Path) -> None:
    """The file as a whole is bad; others tell the columns."""
    (tmp_path / "1.csv.gz").write_bytes(b"a,b\n1,x\n")
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n"))
    told = refusal(lambda: gp.csv(tmp_path))
    assert "1.csv.gz cannot be unpacked at all (Not a gzipped file" in told
    assert 'on_bad="skip"' in told
    assert read(gp.csv(tmp_path, on_bad="skip")) == ([{"a": 1, "b": "x"}], 1)


def test_a_file_that_is_cut_or_grows_while_it_is_read(tmp_path: Path) -> None:
    """Half a line is no row, and what was added since it was found is not read."""
    lines = [as_csv(row_of(number)) for number in range(MANY)]
    file = tmp_path / "rows.csv"

    def read_with(change: Callable[[], None], on_bad: Any) -> tuple[list[Any], int]:
        file.write_bytes(b"\n".join([b"a,b", *lines]))
        reader = gp.csv(file, schema=SCHEMA, on_bad=on_bad).open(str(file), None)
        rows = []
        while not reader.finished:
            batch = reader.read_batch(10_000)
            rows += [] if batch is None else [message.value for message in batch.messages()]
            change()
        return rows, reader.skipped_records

    def cut() -> None:
        with file.open("r+b") as opened:
            opened.truncate(700_003)

    def grow() -> None:
        with file.open("ab") as opened:
            opened.write(b"7\n1,x\n")

    rows = [row_of(number) for number in range(MANY)]
    assert read_with(grow, "fail") == (rows, 0)
    file.write_bytes(b"\n".join([b"a,b", *lines]))
    source = gp.csv(file, schema=SCHEMA, on_bad="skip")
    reader = source.open(str(file), None)
    found = file_at("csv", str(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowFiles, "_file_at", lambda *_: found)
        cut()  # Between the look at it and the first block.
        rows = []
        while not reader.finished:
            batch = reader.read_batch(10_000)
            rows += [] if batch is None else [message.value for message in batch.messages()]
    whole = file.read_bytes().decode().split("\n")[1:-1]
    assert [f"{row['a']},{row['b']}" for row in rows] == whole
    assert reader.skipped_records == 1


# -- columns ---------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [0, 2, 4])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("how", ["columns", "schema"])
def test_damaged_pages_of_parquet(codec: str, group: int, how: str, tmp_path: Path) -> None:
    """The rest of their group is refused by file, group and row; or left out, row by row."""
    file, rows = tmp_path / "x.parquet", [row_of(number) for number in range(1000)]
    pq.write_table(
        pa.Table.from_pylist(rows),
        file,
        compression=codec,
        use_dictionary=False,
        row_group_size=200,
        write_page_checksum=True,
    )
    column = pq.ParquetFile(file).metadata.row_group(group).column(0)
    data = bytearray(file.read_bytes())
    end = column.data_page_offset + column.total_compressed_size
    for at in range(end - 60, end - 40):
        data[at] ^= 0xFF
    file.write_bytes(data)
    found, skipped = read(gp.parquet(file, on_bad="skip", **HOW[how]))
    assert found == rows[: group * 200] + rows[group * 200 + 200 :]
    assert skipped == 200
    assert aside(gp.parquet(file, on_bad="side", **HOW[how])) == [
        (f"x.parquet, from row 0 of group {group} on", str(file))
    ]
    told = refusal(lambda: gp.parquet(file, **HOW[how]))
    assert f"x.parquet, from row 0 of group {group} on: " in told
    assert 'on_bad="skip"' in told


@pytest.mark.parametrize("make", [pa_ipc.new_file, pa_ipc.new_stream])
def test_arrow_files_whose_offsets_lie_outside(make: Any, tmp_path: Path) -> None:
    """Such a batch would end the process when its texts are asked for."""
    file, rows = tmp_path / "x.arrow", [row_of(number) for number in range(600)]
    with make(file, pa.Table.from_pylist(rows).schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows), max_chunksize=200)
    data = bytearray(file.read_bytes())
    offsets = (
        pa.array([row_of(number)["b"] for number in range(200, 400)]).buffers()[1].to_pybytes()
    )
    at = data.index(offsets[:800], data.index(offsets[:800]) + 1)  # All batches have these.
    data[at + 400 : at + 404] = (2**31 - 5).to_bytes(4, "little")
    file.write_bytes(data)
    found, skipped = read(gp.arrow(file, on_bad="skip"))
    kept = rows[:200] if make is pa_ipc.new_stream else rows[:200] + rows[400:]
    assert (found, skipped) == (kept, 1)
    (bad,) = aside(gp.arrow(file, on_bad="side"))
    assert bad == (
        "x.arrow, from row 0 of group 1 on" if make is pa_ipc.new_file else bad[0],
        str(file),
    )
    assert "x.arrow, from row" in refusal(lambda: gp.arrow(file))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("at", [0, 500, 999])
def test_texts_that_are_no_text(suffix: str, at: int, tmp_path: Path) -> None:
    texts: list[bytes] = [b"t%d" % number for number in range(1000)]
    texts[at] = b"J\xfcrgen"
    column = pa.array(texts)
    column = pa.StringArray.from_buffers(len(column), *column.buffers()[1:])
    table = pa.table({"a": list(range(1000)), "b": column})
    inner = pa.table({"a": table["a"], "b": pa.StructArray.from_arrays([column], ["x"])})
    for each, plain in ((table, str), (inner, lambda text: {"x": text})):
        file, make = tmp_path / f"x.{suffix}", gp.parquet if suffix == "parquet" else gp.arrow
        if suffix == "parquet":
            pq.write_table(each, file)
        else:
            with pa_ipc.new_file(file, each.schema) as writer:
                writer.write_table(each)
        if suffix == "arrow" and each is inner:
            continue  # The batch as a whole is damaged then.
        found, skipped = read(make(file, on_bad="skip"))
        assert skipped == 1
        assert found == [{"a": n, "b": plain(f"t{n}")} for n in range(1000) if n != at]
        ((where, record),) = aside(make(file, on_bad="side"))
        assert where == f"{file.name}, row {at} of group 0"
        assert str(at) in record
        told = refusal(lambda: make(file))  # noqa: B023 - called at once
        assert f"row {at} of group 0: column 'b' has bytes that are no UTF-8" in told


# -- what has ended processes ----------------------------------------------------------------


_ODD: Final = """
from tests.bench.fuzz import findings_of
from tests.bench.fuzz_parsers import PARSERS

for name, each in PARSERS.items():
    for finding in findings_of(each, range(3 if each.inputs > 1 else 40), seed=7):
        print(name, finding)
print("over")
"""


def test_odd_inputs_end_no_process() -> None:
    """A few of many of each parser; `bin/bench fuzz` takes as many as one wants.

    A process of its own forks for them: this one has threads of Arrow, which a fork does not get.
    """
    done = _python("-c", _ODD)

    assert done.stdout == "over\n", done.stdout + done.stderr


_ENDS: Final = """
import os, signal
from tests.bench.fuzz import Parser, findings_of

def read_one(inputs, folder, chance):
    if inputs == [b"3"]:
        os.kill(os.getpid(), signal.SIGSEGV)
    if inputs == [b"5"]:
        raise EOFError("nothing")

numbers = iter(range(10))
found = findings_of(Parser(1, lambda _: [b"%d" % next(numbers)], read_one), range(8), seed=1)
print([finding.what for finding in found])
"""


def test_a_process_that_ends_is_found() -> None:
    done = _python("-c", _ENDS)

    assert done.stdout.startswith("['the process ended: SIGSEGV'"), done.stdout + done.stderr


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
