"""What a program sets for all of its code."""

import pytest

from gearpy.cluster.programs.setup_code import setup_code

PROGRAM = """
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

    def open(self, partition, resume):
        return Reader()

class Reader(gp.SourceReader):
    def read_batch(self, max_records):
        random.shuffle(self.records)
        return {3}

def of_a_step(record):
    record.at[0] = {3}
    random.shuffle(record)
    return record

def main(args):
    {4}
    configure()
    app = gp.StreamApp("shop")
    words = app.read(Source())
    words.map(of_a_step).map(lambda word: word + {3}).write(gp.console())
    return app
"""


def program(statement: str = "pass", *, at: int = 0, constant: int = 1) -> str:
    parts = ["pass"] * 5
    parts[3] = str(constant)
    parts[at] = statement
    return PROGRAM.format(*parts)


def test_steps_and_their_functions_set_nothing() -> None:
    assert setup_code(program()) == []


def test_only_where_lines_are_does_not_count() -> None:
    one, other = program("random.seed(1)"), "\n\n" + program("random.seed( 1 )", constant=2)

    assert setup_code(one) == setup_code(other) != []


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
        ("context = getcontext(); context.prec = 1", "context = getcontext(); context.prec = 2"),
        ("prec = 1; getcontext().prec = prec", "prec = 2; getcontext().prec = prec"),
    ],
)
def test_what_is_set_counts(at: int, one: str, other: str) -> None:
    assert setup_code(program(one, at=at)) != setup_code(program(other, at=at))


def test_a_global_that_is_needed_counts() -> None:
    one = program("getcontext().prec = PREC")

    assert setup_code(one) != setup_code(one.replace("PREC = 10", "PREC = 20"))


def test_a_condition_counts() -> None:
    one = program("if PREC > 9:\n    random.seed(1)")

    assert setup_code(one) != setup_code(one.replace("> 9", "> 99"))


def test_an_argument_makes_all_of_the_module_count() -> None:
    one = program("random.seed(args[0])", at=4)

    assert setup_code(one) != setup_code(one.replace("word + 1", "word + 2"))
