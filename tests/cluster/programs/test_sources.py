"""The definitions in a program's files that some code comes from, and what is set for all of it."""

import importlib
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gearpy.cluster.programs.sources import ProgramFiles, difference

_NUMBERS = count()
_FILES = {
    "program.py": """
import math
import texts
from dataclasses import dataclass
from rules.prices import price, other_price
from rules import rates

LIMIT = 3
TABLE = {"a": 1}
TABLE["b"] = 2
if LIMIT > 2:
    WORD = "more"

def unused(number):
    return number

@dataclass(frozen=True)
class Visit:
    cents: int
    def __add__(self, other):
        return Visit(self.cents + other.cents)

@dataclass
class Shop:
    visits: "list[Visit]"
    last: "Visit"

def helper(number, by=2):
    return math.floor(number) + by

def step(number):
    if number > LIMIT:
        return texts.clean(WORD), TABLE, helper(number)
    return price(number), rates.RATE

def visited(number):
    return Shop([], None)

def main(args):
    first, second = (lambda n: helper(n)), step
    def inner(number):
        import late
        return late.value + number
    return first, second, inner
""",
    "texts.py": "import signs\nMORE = 1\ndef clean(text):\n    return text + signs.SIGN\n",
    "signs.py": "SIGN = '!'\n",
    "late.py": "value = 1\n",
    "alone.py": "value = 1\n",
    "rules/__init__.py": "",
    "rules/prices.py": "from .rates import RATE\nfrom . import fees\nUNIT = 2\n"
    "def price(n):\n    return n * RATE * UNIT + fees.FEE\ndef other_price(n):\n    return n\n",
    "rules/rates.py": "RATE = 5\n",
    "rules/fees.py": "FEE = 7\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for name in [name for name, each in sys.modules.items() if _is_below(each, tmp_path)]:
        del sys.modules[name]


def _is_below(module: object, folder: Path) -> bool:
    return str(getattr(module, "__file__", None)).startswith(str(folder))


def written(folder: Path, files: dict[str, str]) -> ProgramFiles:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return ProgramFiles(str(folder))


def reached(folder: Path, files: dict[str, str], name: str) -> list[Any]:
    """Return the definitions that a function of the program has; it is loaded for this."""
    read = written(folder, files)
    code = compile(files["program.py"], str(folder / "program.py"), "exec")
    inner = [each for each in _codes(code) if each.co_name == name]
    assert inner
    return read.reached(one for each in inner for one in read.of_function(each, name))


def _codes(code: Any) -> Iterator[Any]:
    yield code
    for each in code.co_consts:
        if hasattr(each, "co_code"):
            yield from _codes(each)


def differs(folder: Path, name: str, **files: str) -> str:
    new = _FILES | {each.replace("__", "/") + ".py": text for each, text in files.items()}
    at = next(_NUMBERS)
    return difference(
        reached(folder / f"old{at}", _FILES, name), reached(folder / f"new{at}", new, name)
    )


def changed(was: str, now: str, *, file: str = "program.py") -> dict[str, str]:
    assert was in _FILES[file]
    return {file.removesuffix(".py").replace("/", "__"): _FILES[file].replace(was, now)}


def test_places_of_lines_comments_and_what_is_not_used_do_not_count(folder: Path) -> None:
    files = {
        name.removesuffix(".py").replace("/", "__"): f"# It moves.\n\n{text}\n# The end.\n"
        for name, text in _FILES.items()
        if text
    }
    files["program"] = files["program"].replace("return number\n", "return -number\n")
    files["alone"] = "value = 2\n"

    for name in ("step", "visited", "inner", "<lambda>"):
        assert differs(folder, name, **files) == ""


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("step", changed("LIMIT = 3", "LIMIT = 4")),
        ("step", changed("LIMIT = 3", "LIMIT = 3.0")),
        ("step", changed('TABLE["b"] = 2', 'TABLE["b"] = 3')),
        ("step", changed('"more"', '"less"')),
        ("step", changed("by=2", "by=3")),
        ("step", changed("math.floor", "math.ceil")),
        ("step", changed("import math", "import cmath as math")),
        ("step", changed("'!'", "'?'", file="signs.py")),
        ("step", changed("MORE = 1", "MORE = 2", file="texts.py")),  # A module counts whole.
        ("step", changed("UNIT = 2", "UNIT = 3", file="rules/prices.py")),
        ("step", changed("RATE = 5", "RATE = 6", file="rules/rates.py")),
        ("step", changed("FEE = 7", "FEE = 8", file="rules/fees.py")),
        ("visited", changed("cents: int", "cents: float")),
        ("visited", changed("self.cents + other", "self.cents - other")),
        ("visited", changed("(frozen=True)", "(order=True)")),
        ("inner", changed("value = 1", "value = 2", file="late.py")),
        ("inner", changed("late.value +", "late.value -")),
        ("<lambda>", changed("by=2", "by=3")),
        ("<lambda>", changed("helper(n)", "helper(-n)")),
    ],
)
def test_a_change_is_seen_by_what_uses_it(folder: Path, name: str, change: dict[str, str]) -> None:
    assert differs(folder, name, **change) != ""


def test_other_names_of_a_module_do_not_count(folder: Path) -> None:
    change = changed("return n\n", "return -n\n", file="rules/prices.py")

    assert differs(folder, "step", **change) == ""
    assert differs(folder, "step", **changed("price, other_price", "price")) == ""


def test_a_constant_that_is_another_one_is_named(folder: Path) -> None:
    change = changed("LIMIT = 3", "LIMIT = 4")
    assert differs(folder, "step", **change) == "in LIMIT, 3 has become 4"
    change = changed("return texts", "return 1, texts")
    assert differs(folder, "step", **change) == "in step, the code is another one"


@pytest.mark.parametrize(
    "body",
    [
        "eval('LIMIT')",
        "globals()['LIMIT']",
        "open(__file__)",
        "__import__('alone')",
        "importlib.import_module('alone')",
    ],
)
def test_code_that_finds_more_by_itself_uses_all_files(folder: Path, body: str) -> None:
    program = f"import importlib\nLIMIT = 3\ndef step(number):\n    return {body}\n"
    one, same, more, alone = (
        reached(folder / str(at), {"program.py": text, "alone.py": other}, "step")
        for at, (text, other) in enumerate(
            [
                (program, "value = 1"),
                (program, "value = 1"),
                (f"{program}MORE = 1\n", "value = 1"),
                (program, "value = 2"),
            ]
        )
    )

    assert difference(one, same) == ""
    assert difference(one, more) != ""
    assert difference(one, alone) != ""


def test_code_that_knows_its_folder_uses_data_in_it(folder: Path) -> None:
    """Of another file it would not be seen that a value comes from it."""
    program = "RATES = open(__file__ + '/../rates').read()\ndef step(n):\n    return RATES, n\n"
    one, same, other = (
        reached(folder / str(at), {"program.py": program, "data/rates": text}, "step")
        for at, text in enumerate(["1", "1", "2"])
    )

    assert difference(one, same) == ""
    assert difference(one, other) == "file rates is another one"


def test_a_folder_that_is_reached_by_a_link_is_that_of_its_code(folder: Path) -> None:
    files = written(folder / "a", _FILES)
    (folder / "link").symlink_to(folder / "a")
    code = compile(_FILES["program.py"], str(folder.resolve() / "a" / "program.py"), "exec")
    (step,) = [each for each in _codes(code) if each.co_name == "step"]

    assert len(files.of_function(step, "step")) == 1
    assert len(ProgramFiles(str(folder / "link")).of_function(step, "step")) == 1


@pytest.mark.parametrize("body", ["1", "None", "n + 2", "(lambda m: m + 2)(n)"])
def test_functions_without_names_in_one_line_are_told_apart(folder: Path, body: str) -> None:
    def of_both(at: int, first: str) -> list[list[Any]]:
        program = f"steps = (lambda n: {first}), (lambda n: {body})\n"
        files = written(folder / str(at), {"program.py": program})
        outer = compile(program, str(folder / str(at) / "program.py"), "exec")
        codes = [each for each in outer.co_consts if hasattr(each, "co_code")]
        return [files.reached(files.of_function(each, "step")) for each in codes]

    one, other = of_both(1, "n + 1"), of_both(2, "n - 1")

    assert difference(one[0], other[0]) != ""
    assert difference(one[1], other[1]) == ""


def test_all_names_of_a_module_are_one_import(folder: Path) -> None:
    program = "from rules import *\ndef step(number):\n    return RATE\n"
    one, other = (
        reached(folder / rate, {"program.py": program, "rules.py": f"RATE = {rate}\n"}, "step")
        for rate in ("1", "2")
    )

    assert difference(one, one) == ""
    assert difference(one, other) != ""


def test_modules_that_import_each_other_are_read_once(folder: Path) -> None:
    files = {
        "program.py": "import one\ndef step(n):\n    return step(one.f(n))\n",
        "one.py": "import other\ndef f(n):\n    return other.g(n)\n",
        "other.py": "from one import f\ndef g(n):\n    return f(n)\n",
    }
    assert len(reached(folder / "a", files, "step")) < 10


def test_what_is_of_no_file_of_the_program_has_no_definitions(folder: Path) -> None:
    files = written(folder / "a", _FILES)

    assert files.of_function(importlib.import_module.__code__, "import_module") == []
    assert files.of_module("json", "JSONDecoder") == []
    assert ProgramFiles("").of_module("program", "Visit") == []


# -- many programs -----------------------------------------------------------------------------

_OPERATORS = ("+", "-", "*", "|", "&", "^")
_HOLES = 9


def _rendered(values: list[int], operators: list[str], layout: list[int]) -> str:
    """Return a program whose parts are reached in many ways; ``layout`` moves lines only."""
    a, b, c, d, e, f, g, h, i = values
    p, q, r, s = operators
    gap = ["\n" * each + ("# comment\n" if each % 2 else "") for each in layout]
    return f"""
TABLE = {{'k': [{a}, {b}]}}
LIMIT = {c}{gap[0]}
class Base:
    by = {d}
    def scaled(self, n):{gap[1]}
        return n {p} self.by
class Scale(Base):
    def __init__(self, to):
        self.to = to
    def __call__(self, n, *, also={e}):{gap[2]}
        return self.scaled(n) {q} self.to {q} also
def adder(start, twice=lambda n: n {r} {f}):
    def add(n):
        return twice(n) {s} start{gap[3]}
    return add
scale, add = Scale({g}), adder({h})
def step(n):
    if n > LIMIT:
        return scale(n) + TABLE['k'][n % 2]
    return add(n) + sum(m * {i} for m in range(n))
"""


_PARTS = st.tuples(
    st.lists(st.integers(-3, 9), min_size=_HOLES, max_size=_HOLES),
    st.lists(st.sampled_from(_OPERATORS), min_size=4, max_size=4),
)
_LAYOUTS = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_PARTS, st.data(), _LAYOUTS, _LAYOUTS)
def test_whatever_behaves_otherwise_is_different(
    folder: Path,
    parts: tuple[list[int], list[str]],
    data: st.DataObject,
    layout: list[int],
    other_layout: list[int],
) -> None:
    """One part of the program is another one, or none; only where lines are never counts."""
    values, operators = parts
    at = data.draw(st.integers(0, _HOLES + 3))
    if at < _HOLES:
        values = [*values[:at], data.draw(st.integers(-3, 9)), *values[at + 1 :]]
    else:
        at -= _HOLES
        operators = [*operators[:at], data.draw(st.sampled_from(_OPERATORS)), *operators[at + 1 :]]
    texts = _rendered(*parts, layout), _rendered(values, operators, other_layout)
    results, found = [], []
    for text in texts:
        own: dict[str, Any] = {}
        exec(text, own)  # noqa: S102 - of this test
        results.append([*map(own["step"], range(12))])
        place = folder / f"many{next(_NUMBERS)}"
        found.append(reached(place, {"program.py": text}, "step"))

    assert results[0] == results[1] or difference(*found) != ""
    assert (parts == (values, operators)) <= (difference(*found) == "")


# -- what is set for all of a program ----------------------------------------------------------

_SETTING = """
import decimal
import os
import random
import logging
import gearpy as gp
from decimal import getcontext

PREC = 10
logging.basicConfig()
{0}

def configure():
    {1}

class Source(gp.Source):
    def partitions(self):
        {2}
        return ["0"]

def of_a_step(record):
    record.at[0] = {3}
    return record

def main(args):
    {4}
    configure()
    app = gp.StreamApp("shop")
    words = app.read(Source())
    words.map(of_a_step).map(lambda word: word + {3}).write(gp.console())
    return app
"""


def set_by(folder: Path, statement: str = "pass", *, at: int = 0, constant: int = 1) -> list[Any]:
    parts = ["pass"] * 5
    parts[3] = str(constant)
    parts[at] = statement
    return _settings_of(folder, _SETTING.format(*parts))


def _settings_of(folder: Path, text: str) -> list[Any]:
    return written(folder / f"set{next(_NUMBERS)}", {"program.py": text}).settings


def test_steps_and_their_functions_set_nothing(folder: Path) -> None:
    assert set_by(folder) == []


def test_only_where_lines_of_settings_are_does_not_count(folder: Path) -> None:
    one = set_by(folder, "random.seed(1)")
    other = set_by(folder, "# A comment.\n\nrandom.seed( 1 )", constant=2)

    assert len(one) > 0
    assert difference(one, other) == ""


@pytest.mark.parametrize("at", [0, 1, 2, 4])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("decimal.getcontext().prec = 1", "decimal.getcontext().prec = 2"),
        ("getcontext().prec += 1", "getcontext().prec += 2"),
        ("getcontext().prec = PREC", "pass"),
        ("random.seed(1)", "random.seed(2)"),
        ("os.environ['TZ'] = 'UTC'", "os.environ['TZ'] = 'CET'"),
        ("del os.environ['TZ']", "del os.environ['LANG']"),
        ("decimal.setcontext(decimal.Context(prec=1))", "decimal.setcontext(decimal.Context())"),
        ("prec = 1; getcontext().prec = prec", "prec = 2; getcontext().prec = prec"),
    ],
)
def test_what_is_set_counts(folder: Path, at: int, one: str, other: str) -> None:
    assert difference(set_by(folder, one, at=at), set_by(folder, other, at=at)) != ""


@pytest.mark.parametrize("at", [0, 1, 4])
def test_a_setting_by_another_name_counts(folder: Path, at: int) -> None:
    one, other = (f"context = getcontext(); context.prec = {n}" for n in (1, 2))

    assert difference(set_by(folder, one, at=at), set_by(folder, other, at=at)) != ""


def test_a_value_that_a_setting_needs_counts(folder: Path) -> None:
    text = _SETTING.format("getcontext().prec = PREC", "pass", "pass", 1, "pass")
    one, other = (_settings_of(folder, each) for each in (text, text.replace("= 10", "= 20")))

    assert difference(one, other) == "in PREC, 10 has become 20"


def test_a_condition_of_a_setting_counts(folder: Path) -> None:
    text = _SETTING.format("if PREC > 9:\n    random.seed(1)", "pass", "pass", 1, "pass")
    one, other = (_settings_of(folder, each) for each in (text, text.replace("> 9", "> 99")))

    assert difference(one, other) != ""


def test_an_argument_makes_all_of_its_function_count(folder: Path) -> None:
    text = _SETTING.format("pass", "pass", "pass", 1, "random.seed(args[0])")
    one, other = (_settings_of(folder, each) for each in (text, text.replace("+ 1", "+ 2")))

    assert difference(one, other) != ""
