"""What a beginner gets wrong first: each text says what, where in the program, and what to do."""

from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest
from typer.testing import CliRunner

from gearpy.cli.main import app

BEGIN: Final = """\
from pathlib import Path

import gearpy as gp

app = gp.StreamApp("first")
SALES = [{"shop": "a", "price": 1, "at": 1000}]
rows = gp.rows(SALES, time="at")
"""
#: The last lines of a program, and what its error has.
CASES: Final = {
    "no file": (
        'app.read(gp.csv("nope.csv")).write(gp.console())',
        "csv: 'nope.csv' matches no file in",
    ),
    "no key": (
        'app.read(rows).key_by("shoop").count().write(gp.console())',
        "count: there is no field 'shoop' in what 'rows(1)' gives: did you mean 'shop'? there are",
    ),
    "no time column": (
        'app.read(gp.rows(SALES, time="att")).write(gp.console())',
        "rows: time='att' is no column: there are shop, price, at",
    ),
    "no column of an aggregate": (
        (
            'w = app.read(rows).key_by("shop").window(gp.tumbling("1m"))\n'
            'w.aggregate(t=gp.agg.sum("prise")).write(gp.console())'
        ),
        "there is no field 'prise' in what 'rows(1)' gives: did you mean 'price'?",
    ),
    "no column of an expression": (
        'app.read(rows).filter(gp.col("prise") > 1).write(gp.console())',
        "there is no column 'prise': did you mean 'price'?",
    ),
    "no key of a dict": (
        'app.read(gp.collection(SALES)).map(lambda sale: sale["prise"]).write(gp.console())',
        "KeyError: 'prise'",
    ),
    "time as text": (
        'app.read(gp.collection(SALES, timestamp=lambda _: "today")).write(gp.console())',
        "event time 'today' is a str: give int ms since the epoch or a datetime with a time zone",
    ),
    "naive time": (
        (
            "import datetime\n"
            "when = datetime.datetime(2026, 1, 1)\n"
            "app.read(gp.collection(SALES, timestamp=lambda _: when)).write(gp.console())"
        ),
        "zone",
    ),
    "no sink": ("app.read(rows).map(str)", "end its streams with .write(...)"),
    "no source": ("", "application 'first' has no steps: start with app.read(source)"),
    "generator": (
        "app.read(gp.generate(n for n in range(3))).write(gp.console())",
        "is no function: use collection() for values",
    ),
    "print as a sink": (
        "app.read(rows).write(print)",
        "write takes a sink such as gp.console(), not <built-in function print>",
    ),
    "list as a source": (
        "app.read(SALES).write(gp.console())",
        'read takes a source such as gp.files("*.txt"), not [',
    ),
    "text as windows": (
        'app.read(rows).window("1m").count().write(gp.console())',
        "window takes windows such as gp.tumbling(\"10s\"), not '1m'",
    ),
    "number as a duration": (
        "app.read(rows).window(gp.tumbling(60)).count().write(gp.console())",
        "duration 60 has no unit: write '60ms' for milliseconds, or '60s' for seconds",
    ),
    "slip in a duration": (
        'app.read(rows).window(gp.tumbling("1 minuet")).count().write(gp.console())',
        "duration '1 minuet' is not understood: write numbers and units",
    ),
    "aggregate without a key": (
        "app.read(rows).aggregate(n=gp.agg.count()).write(gp.console())",
        "write .key_by(...).aggregate(...), or .window(...).aggregate(...)",
    ),
    "function as an aggregate": (
        'app.read(rows).key_by("shop").aggregate(n=sum).write(gp.console())',
        "give an aggregate, such as agg.sum('price')",
    ),
    "two arguments": (
        "app.read(rows).map(lambda a, b: a).write(gp.console())",
        "map calls its function with a record, and lambda",
    ),
    "slip in a step": (
        "app.read(rows).mapp(str).write(gp.console())",
        "a stream has no 'mapp': did you mean map?",
    ),
    "slip in a name": (
        "app.read(gp.row(SALES)).write(gp.console())",
        "module 'gearpy' has no attribute 'row': did you mean rows?",
    ),
    "coroutine": (
        "async def ask(sale): return sale\napp.read(rows).map(ask).write(gp.console())",
        "which is asynchronous: use map_async",
    ),
    "dict as a key": (
        "app.read(gp.collection(SALES)).key_by(lambda sale: sale).count().write(gp.console())",
        "unhashable type: 'dict': choose a key of text, numbers or tuples of them",
    ),
    "one value for many": (
        "app.read(gp.collection([7])).flat_map(lambda n: n).write(gp.console())",
        "flat_map(f) must return an iterable, it returned 7; use map, or return [] for nothing",
    ),
    "column as a condition": (
        'app.read(rows).filter(1 < gp.col("price") < 3).write(gp.console())',
        "use & for and, | for or, ~ for not",
    ),
    "other application": (
        'other = gp.StreamApp("other")\napp.read(rows).merge(other.read(rows)).write(gp.console())',
        "merge takes streams of one application, but one is of 'first' and one of 'other'",
    ),
    "two applications": (
        'other = gp.StreamApp("other")\none = app\ndel app',
        "has several applications: other, one; say which",
    ),
    "no application": (
        "del app",
        "define `app = gearpy.StreamApp(...)` or a function `main(args)`",
    ),
    "not a folder": (
        'Path("afile").touch()\napp.read(rows).write(gp.jsonl_folder("afile"))',
        "afile is a file: give a folder",
    ),
    "bad line": (
        'Path("a.jsonl").write_text("no json")\napp.read(gp.jsonl("a.jsonl")).write(gp.console())',
        (
            "a.jsonl, line 1: is no JSON from character 1 on: Expecting value: correct the row, "
            'leave such rows out with on_bad="skip", "quarantine" or "side"'
        ),
    ),
    "bad cell": (
        (
            'Path("a.csv").write_text("n\\n1\\nx\\n")\n'
            'app.read(gp.csv("a.csv", schema={"n": int})).write(gp.console())'
        ),
        "a.csv, line 3: column 'n': CSV conversion error to int64: invalid value 'x'",
    ),
    "syntax": ("app.read(rows", "SyntaxError: '(' was never closed"),
}


@pytest.mark.parametrize("case", CASES)
def test_first_error(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, text = CASES[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.py").write_text(BEGIN + dedent(lines) + "\n", encoding="utf-8")
    ended = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["run", "first.py"])
    assert ended.exit_code in (1, 2)
    assert text in ended.stderr
    assert "Traceback" not in ended.stderr
