"""Code of two versions: what is alike, and what is not."""

import sys
from collections.abc import Callable
from itertools import count
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.cluster.programs.same_code import difference

_NUMBERS = count()


def module_of(source: str) -> ModuleType:
    """Return a module of this source; it is in no file."""
    module = ModuleType("program")
    module.__dict__["__file__"] = f"/nowhere/{next(_NUMBERS)}/program.py"
    exec(compile(source, "program.py", "exec"), module.__dict__)  # noqa: S102 - of this test
    return module


def steps_of(*sources: str, name: str = "step") -> list[Any]:
    return [getattr(module_of(each), name) for each in sources]


PROGRAM = """
import math
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial

LIMIT = 3
WORD = re.compile("[a-z]+")
NAMES = {"a": [1, 2], "b": {3, 4}}

class Color(Enum):
    RED = 1
    BLUE = 2

@dataclass(frozen=True)
class Price:
    cents: int
    color: Color = Color.RED

    def __add__(self, other):
        return Price(self.cents + other.cents)

@lru_cache(maxsize=10)
def square(number):
    return number * number

def helper(number, by=2):
    return square(number) + by

def outer(start):
    def inner(number):
        return start + helper(number)
    return inner

adds = outer(10)
half = partial(divmod, 7)

def step(number):
    import json
    if number > LIMIT and WORD.match("x"):
        return adds(number), NAMES, Price(number) + Price(1), half(2)
    return json.dumps(math.floor(number)), [each for each in (1, 2.5) if each > number]
"""

#: What is changed in the program, and to what.
CHANGES = [
    ("LIMIT = 3", "LIMIT = 4"),
    ("LIMIT = 3", "LIMIT = 3.0"),
    ("[a-z]+", "[a-y]+"),
    ("[1, 2]", "[2, 1]"),
    ("{3, 4}", "{3, 5}"),
    ('{"a": [1, 2], "b"', '{"c": [1, 2], "b"'),
    ("RED = 1", "RED = 5"),
    ("Color = Color.RED", "Color = Color.BLUE"),
    ("frozen=True", "frozen=False"),
    ("self.cents + other.cents", "self.cents - other.cents"),
    ("maxsize=10", "maxsize=11"),
    ("number * number", "number + number"),
    ("by=2", "by=3"),
    ("start + helper", "start - helper"),
    ("outer(10)", "outer(11)"),
    ("partial(divmod, 7)", "partial(divmod, 8)"),
    ("partial(divmod, 7)", "partial(pow, 7)"),
    ("import json", "import json.decoder as json"),
    ("math.floor", "math.ceil"),
    ("(1, 2.5)", "(1, 2.25)"),
    ("(1, 2.5)", "(True, 2.5)"),
    ("each > number", "each < number"),
]


def test_the_same_program_is_alike() -> None:
    assert difference(*steps_of(PROGRAM, PROGRAM)) == ""


def test_where_lines_are_does_not_count() -> None:
    moved = "# A comment.\n\n\n" + PROGRAM.replace("\n\n", "\n\n# More of it.\n\n\n")

    assert difference(*steps_of(PROGRAM, moved)) == ""


def test_what_a_step_does_not_use_does_not_count() -> None:
    more = PROGRAM + "\nOTHER = 3\ndef another(number):\n    return number\n"

    assert difference(*steps_of(PROGRAM, more)) == ""


@pytest.mark.parametrize(("was", "now"), CHANGES)
def test_a_change_is_seen(was: str, now: str) -> None:
    assert was in PROGRAM

    assert difference(*steps_of(PROGRAM, PROGRAM.replace(was, now))) != ""


@pytest.mark.parametrize(
    "body",
    [
        "return eval('LIMIT')",
        "return globals()['LIMIT']",
        "return __file__",
        "import own\n    return own.x",
        "from . import own\n    return own",
        "import importlib\n    return importlib.import_module('own')",
    ],
)
def test_code_that_finds_more_by_itself_is_never_alike(body: str) -> None:
    code = f"LIMIT = 3\ndef step(number):\n    {body}\n"

    assert difference(*steps_of(code, code)) != ""


def test_a_module_that_a_step_names_counts_as_a_whole() -> None:
    one, same, other = (module_of(f"def clean(text):\n    return text[{n}:]") for n in (1, 1, 2))
    steps = [module_of("def step(text):\n    return helpers.clean(text)") for _ in range(3)]
    for step, helpers in zip(steps, (one, same, other), strict=True):
        step.__dict__["helpers"] = helpers

    assert difference(steps[0].step, steps[1].step) == ""
    assert difference(steps[0].step, steps[2].step) != ""


def test_what_cannot_be_looked_into_is_never_alike() -> None:
    """A lock, or a generator, may stand for anything."""
    code = (
        "import threading\nlock = threading.Lock()\nits = (n for n in 'ab')\ndef step():\n    {}\n"
    )

    assert difference(*steps_of(code.format("lock"), code.format("lock"))) != ""
    assert difference(*steps_of(code.format("its"), code.format("its"))) != ""


def test_one_object_in_two_places_is_not_two() -> None:
    code = "kept = []\nothers = {}\ndef step(number):\n    kept.append(number)\n    return others\n"

    assert difference(*steps_of(code.format("kept"), code.format("kept"))) == ""
    assert difference(*steps_of(code.format("kept"), code.format("[]"))) != ""


def test_what_holds_itself_is_compared_once() -> None:
    code = "kept = []\nkept.append(kept)\ndef step():\n    return kept, step\n"

    assert difference(*steps_of(code, code)) == ""


@pytest.mark.parametrize(
    "value",
    [
        "__import__('decimal').Decimal('1.{}')",
        "__import__('datetime').timedelta(milliseconds={})",
        "__import__('pathlib').Path('a{}')",
        "__import__('collections').deque([1, {}])",
        "__import__('collections').Counter({{'a': {}}})",
        "__import__('collections').OrderedDict(a={})",
        "__import__('functools').partial(int, base={})",
        "__import__('operator').itemgetter({})",
        "__import__('uuid').UUID(int={})",
        "__import__('itertools').count({})",
        "type('Made', (), {{'x': {}}})",
        "type('Slots', (), {{'__slots__': 'x', '__init__': lambda s: setattr(s, 'x', {})}})()",
        "type('Wrong', (int,), {{}})({})",
        "type('Words', (str,), {{}})('a{}')",
        "type('Kept', (dict,), {{}})(a={})",
        "[].append if {} else None",
        "range({})",
        "1.{}",
        "b'{}'",
        "(1, {})",
        "frozenset({{(1, {})}})",
    ],
)
def test_values_are_compared(value: str) -> None:
    code = "value = {}\ndef step():\n    return value\n"
    sources = [code.format(value.format(number)) for number in (8, 8, 7)]
    if "if" in value:
        sources = [code.format(value.format(number)) for number in (1, 1, 0)]
    one, same, other = steps_of(*sources)

    assert difference(one, same) == ""
    assert difference(one, other) != ""


def test_schemas_and_structs_are_compared() -> None:
    code = """
import msgspec, pyarrow
from typing import Generic, NamedTuple, TypeVar
T = TypeVar("T")
class Visit(msgspec.Struct, frozen=True):
    user: str
    count: int = {0}
class Row(NamedTuple):
    at: int = {0}
class Box(Generic[T]):
    kept: list[T] = [{0}]
schema = pyarrow.schema([("a", pyarrow.int64()), ("b{0}", pyarrow.string())])
def step() -> Box[Row] | None:
    return {1}
"""
    for used in ("schema", "Visit", "Row", "Box"):
        one, same, other = steps_of(*(code.format(number, used) for number in (1, 1, 2)))
        assert difference(one, same) == "", used
        assert difference(one, other) != "", used


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


@settings(max_examples=150, deadline=None)
@given(_PARTS, _LAYOUTS, _LAYOUTS)
def test_only_where_lines_are_never_counts(
    parts: tuple[list[int], list[str]], one: list[int], other: list[int]
) -> None:
    assert difference(*steps_of(_rendered(*parts, one), _rendered(*parts, other))) == ""


@settings(max_examples=200, deadline=None)
@given(_PARTS, st.data(), _LAYOUTS)
def test_whatever_behaves_otherwise_is_different(
    parts: tuple[list[int], list[str]], data: st.DataObject, layout: list[int]
) -> None:
    """One part of the program is another one; where results differ, that is seen."""
    values, operators = parts
    at = data.draw(st.integers(0, _HOLES + 3))
    if at < _HOLES:
        values = [*values[:at], data.draw(st.integers(-3, 9)), *values[at + 1 :]]
    else:
        at -= _HOLES
        operators = [*operators[:at], data.draw(st.sampled_from(_OPERATORS)), *operators[at + 1 :]]
    one, other = steps_of(_rendered(*parts, layout), _rendered(values, operators, layout))

    behaves_alike = [*map(one, range(12))] == [*map(other, range(12))]

    assert behaves_alike or difference(one, other) != ""
    assert (parts == (values, operators)) <= (difference(one, other) == "")


def test_a_comparison_ends() -> None:
    """Also of more than can be looked at in a reasonable time."""
    code = "kept = [[n] for n in range(400_000)]\ndef step():\n    return kept\n"

    assert "too much" in difference(*steps_of(code, code))


def test_modules_of_the_test_are_not_needed() -> None:
    """What both versions have as one object is alike, whatever it is."""
    made: Callable[[], Any] = lambda: sys.stdin  # noqa: E731
    assert difference(made, made) == ""


def test_a_difference_is_said_in_the_order_of_the_versions() -> None:
    """Where both look alike it says no more than that."""
    assert difference(3, 1) == "in the step, 3 has become 1"
    assert difference([[1]], [[1, 2]]) == "in the step, a list is another one"
