"""Expressions: the same over columns and over rows; what is refused."""

import math
import pickle
import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import gearpy as gp
from gearpy.errors import ConfigError
from gearpy.expressions.functions import FUNCTIONS, TAKES_NULL
from gearpy.expressions.kernels import RULES

N, X, S, B, T, M, L, D = map(gp.col, ["n", "x", "s", "b", "t", "m", "l", "d"])
NOON: Final = datetime(2026, 11, 29, 12, tzinfo=UTC)
WEEK: Final = datetime(2026, 11, 23, tzinfo=UTC)
BIG: Final = (1 << 53) + 1
ROWS: Final[list[dict[str, Any]]] = [
    {"n": 7, "x": 1.5, "s": "Ada", "b": True, "t": NOON, "m": {"u": 1}, "l": [1, 2]},
    {"n": -7, "x": -0.0, "s": "", "b": False, "t": NOON, "m": {"u": None}, "l": []},
    {"n": None, "x": math.inf, "s": "böb", "b": None, "t": None, "m": None, "l": None},
    {"n": BIG, "x": None, "s": None, "b": True, "t": NOON, "m": {"u": 3}, "l": [None]},
]
for _row in ROWS:
    _row["d"] = _row["t"] and Decimal("1.50")
BATCH: Final = pa.RecordBatch.from_pylist(ROWS)


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        (N + 1, [8, -6, None, BIG + 1]),
        (1 - N, [-6, 8, None, 1 - BIG]),
        (N * 0.5, [3.5, -3.5, None, 2.0**52]),
        (N / 2, [3.5, -3.5, None, BIG / 2]),
        (X / 0, [math.inf, math.nan, math.inf, None]),
        (N // 2, [3, -4, None, 1 << 52]),
        (N % -3, [-2, -1, None, BIG % -3]),
        (-N, [-7, 7, None, -BIG]),
        (abs(N), [7, 7, None, BIG]),
        (N**2, [49.0, 49.0, None, float(BIG) ** 2]),
        (X.round(), [2.0, -0.0, math.inf, None]),
        (N == BIG, [False, False, None, True]),
        (float(BIG - 1) < N, [False, False, None, True]),
        ((N > 0) & B, [True, False, None, True]),
        ((N > 0) | B, [True, False, None, True]),
        (~B, [False, True, None, False]),
        (N.is_null(), [False, False, True, False]),
        (N.is_in([7, 8]), [True, False, None, False]),
        (N.is_in([7, 8.5]), [True, False, None, False]),
        (N.between(-7, 7), [True, True, None, False]),
        (N.fill_null(0), [7, -7, 0, BIG]),
        (gp.coalesce(N % 9, X, 1), [7.0, 2.0, math.inf, float(BIG % 9)]),
        (gp.when(N != 0).then(14 / N).otherwise(None), [2.0, -2.0, None, 14 / BIG]),
        (gp.when(N > 0).then("more"), ["more", None, None, "more"]),
        (gp.when(X == 0).then(0).otherwise(N // 7), [1, 0, None, BIG // 7]),
        (gp.greatest(N, 0), [7, 0, 0, BIG]),
        (N.cast(str), ["7", "-7", None, str(BIG)]),
        (N.cast(float), [7.0, -7.0, None, float(BIG)]),
        (B.cast(int), [1, 0, None, 1]),
        (S.str.lower(), ["ada", "", "böb", None]),
        (S.str.length(), [3, 0, 3, None]),
        (S.str.slice(1, 1), ["d", "", "ö", None]),
        (S.str.contains("b"), [False, False, True, None]),
        (S.str.starts_with("A"), [True, False, False, None]),
        (S.str.like("_d%"), [True, False, False, None]),
        (S.str.replace("b", "-"), ["Ada", "", "-ö-", None]),
        (gp.concat(S, "!"), ["Ada!", "!", "böb!", None]),
        (S > "B", [False, False, True, None]),
        (
            T + timedelta(hours=1),
            [NOON + timedelta(hours=1)] * 2 + [None, NOON + timedelta(hours=1)],
        ),
        (T - NOON, [timedelta(0), timedelta(0), None, timedelta(0)]),
        (M["u"], [1, None, None, 3]),
        (gp.col("m.u") + 1, [2, None, None, 4]),
        (L[0], [1, None, None, None]),
        (L[-1], [2, None, None, None]),
        (L.list.length(), [2, 0, None, 1]),
        (S.str.upper(), ["ADA", "", "BÖB", None]),
        (S.str.strip("Ab"), ["da", "", "ö", None]),
        (gp.concat(" ", S, "\x1c").str.strip(), ["Ada", "", "böb", None]),
        (S.str.strip_start("A"), ["da", "", "böb", None]),
        (S.str.strip_end("a"), ["Ad", "", "böb", None]),
        (S.str.ends_with("b"), [False, False, True, None]),
        (S.str.contains(S.str.lower()), [False, True, True, None]),
        (S.str.like("%d%"), [True, False, False, None]),
        (S.str.like("A%"), [True, False, False, None]),
        (S.str.like("%b"), [False, False, True, None]),
        (S.str.like("Ada"), [True, False, False, None]),
        (S.str.like("%"), [True, True, True, None]),
        (S.str.matches("[dö]"), [True, False, True, None]),
        (S.str.extract("(.)b"), [None, None, "ö", None]),
        (S.str.split("d"), [["A", "a"], [""], ["böb"], None]),
        (S.str.split("d").list.join("-"), ["A-a", "", "böb", None]),
        (S.str.slice(-2, 1), ["d", "", "ö", None]),
        (L.list.contains(2), [True, False, None, False]),
        (X.floor(), [1.0, -0.0, math.inf, None]),
        (X.ceil(), [2.0, -0.0, math.inf, None]),
        (X.sqrt() * X.sqrt() > 1.49, [True, False, True, None]),
        ((X - 2).log(), [math.nan, math.nan, math.inf, None]),
        ((X * 0).exp(), [1.0, 1.0, math.nan, None]),
        (X.round(1), [1.5, -0.0, math.inf, None]),
        (N.round(-1), [10, -10, None, 9007199254740990]),
        (gp.least(X, 1.0), [1.0, -0.0, 1.0, 1.0]),
        (gp.greatest(S, "b"), ["b", "b", "böb", "b"]),
        (D + 1, [Decimal("2.50"), Decimal("2.50"), None, Decimal("2.50")]),
        (D * D, [Decimal("2.2500"), Decimal("2.2500"), None, Decimal("2.2500")]),
        (D / 2, [0.75, 0.75, None, 0.75]),
        (D > 1, [True, True, None, True]),
        (D * 2.0, [3.0, 3.0, None, 3.0]),
        (T.dt.year(), [2026, 2026, None, 2026]),
        (T.dt.weekday(), [7, 7, None, 7]),
        (T.dt.quarter(), [4, 4, None, 4]),
        (T.dt.day_of_year(), [333, 333, None, 333]),
        (T.dt.hour(zone="Asia/Kolkata"), [17, 17, None, 17]),
        (T.dt.minute(zone="Asia/Kolkata"), [30, 30, None, 30]),
        (T.dt.date(zone="Asia/Tokyo"), [NOON.date(), NOON.date(), None, NOON.date()]),
        (T.dt.truncate("week"), [WEEK, WEEK, None, WEEK]),
        (T.dt.truncate("5h"), [NOON - timedelta(hours=1)] * 2 + [None, NOON - timedelta(hours=1)]),
        (
            T.dt.strftime("%d.%m. %H:%M", zone="Asia/Tokyo"),
            ["29.11. 21:00"] * 2 + [None, "29.11. 21:00"],
        ),
        (T.dt.epoch("s"), [1795953600, 1795953600, None, 1795953600]),
        (T.dt.epoch().dt.from_epoch() == T, [True, True, None, True]),
        (T.dt.to_zone("Asia/Tokyo").dt.hour(), [21, 21, None, 21]),
        (T.cast(str), ["2026-11-29T12:00:00+00:00"] * 2 + [None, "2026-11-29T12:00:00+00:00"]),
        (T.cast(str).cast("datetime") == T, [True, True, None, True]),
        (T.dt.strftime("%Y").str.to_datetime("%Y").dt.month(), [1, 1, None, 1]),
        (T.cast("date") == T.dt.date(), [True, True, None, True]),
        (S.cast(bytes).cast(bytes).cast(str) == S, [True, True, True, None]),
        (gp.lit(time(1, 2)).cast(time).cast(str), ["01:02:00"] * 4),
        (gp.lit("01:02").cast(time), [time(1, 2)] * 4),
        (gp.lit("TRUE").cast(bool), [True] * 4),
        (gp.lit("1e3").cast(float), [1000.0] * 4),
        (gp.lit(3), [3, 3, 3, 3]),
        (N + None, [None] * 4),
        (S.hash() == S.hash(), [True, True, True, None]),
    ],
    ids=str,
)
def test_columns_and_rows_give_the_same(expression: gp.Expr, values: list[Any]) -> None:
    of_columns = expression.bind(BATCH.schema).columns(BATCH)
    of_rows = list(map(expression.row(), ROWS))

    assert [_same(each) for each in of_columns.to_pylist()] == [_same(each) for each in values]
    # A row does not know that another one's value is a float.
    assert all(a == b or str(a) == str(b) for a, b in zip(of_rows, values, strict=True))


def _same(value: Any) -> tuple[type, Any]:
    """Return what tells a value from others; -0.0 and NaN are values of their own."""
    return type(value), str(value) if isinstance(value, float) else value


def test_there_is_a_kernel_and_a_function_for_each_name() -> None:
    assert RULES.keys() == FUNCTIONS.keys()
    assert RULES.keys() >= TAKES_NULL


@dataclass
class Sale:
    price: int
    shop: str


class Pair(NamedTuple):
    price: int
    shop: str


@pytest.mark.parametrize("record", [Sale(3, "n"), Pair(3, "n"), {"price": 3, "shop": "n"}])
def test_records_are_dicts_or_have_attributes(record: Any) -> None:
    net = (gp.col("price") * 2).row()

    assert net(record) == 6


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (gp.col("price") * 0.89, "price * 0.89"),
        (gp.col("user") == "ada", 'user == "ada"'),
        ((N + 1) * 2 - N, "(n + 1) * 2 - n"),
        (N - (N - 1), "n - (n - 1)"),
        (~((N > 1) & B), "~((n > 1) & b)"),
        (-N * 2, "-n * 2"),
        (gp.when(N > 1).then("a").otherwise("b").alias("c"), '(when n > 1 then "a" else "b") as c'),
        (M["u"].cast(int), "cast(m.u, to=int)"),
        (N.is_in([1]), "is_in(n, values=[1])"),
    ],
)
def test_text_is_what_was_written(expression: gp.Expr, text: str) -> None:
    assert str(expression) == text


def test_an_expression_travels() -> None:
    net = (N * 2).alias("net")

    sent = pickle.loads(pickle.dumps(net))  # noqa: S301 - made here

    assert (str(sent), sent.node, sent({"n": 4})) == (str(net), net.node, 8)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (gp.col("nn") + 1, "there is no column 'nn': did you mean 'n'? there are n, x, s"),
        (S * 2, "s * 2: * takes numbers, not string and int64"),
        (N == "a", 'n == "a": int64 == string compares nothing alike'),
        (N & B, "int64 is neither true nor false"),
        (gp.when(N > 1).then(1).otherwise("a"), "when has values of int64 and string"),
        (M["v"], "m.v: there is no field 'v': there are u"),
        (N.str.lower(), "lower takes texts, not int64"),
        (N.is_in(["a"]), "is_in looks for string in int64"),
    ],
)
def test_types_that_do_not_fit_are_refused_when_they_are_known(
    expression: gp.Expr, text: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        expression.bind(BATCH.schema)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "record", "text"),
    [
        (N * 2, {"n": 1 << 62}, "4611686018427387904 * 2 is 9223372036854775808, more than"),
        (N / 0, {"n": 1}, "1 / 0: division by zero"),
        (N // 0, {"n": 1}, "division"),
        (-N, {"n": -(1 << 63)}, "more than the 64 bits"),
        (X.cast(int), {"x": 1.5}, "1.5 is no whole number: use .floor()"),
        (N.cast("int8"), {"n": 200}, "200 does not fit int8"),
        (S.cast(int), {"s": "1x"}, "'1x' is no whole number"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    expression: gp.Expr, record: dict[str, Any], text: str
) -> None:
    batch = pa.RecordBatch.from_pylist([record])

    with pytest.raises((ArithmeticError, ValueError), match=re.escape(text)):
        expression(record)
    with pytest.raises((ArithmeticError, ValueError, pa.ArrowInvalid)):
        expression.bind(batch.schema).columns(batch)


def test_an_expression_is_no_condition_of_python() -> None:
    with pytest.raises(TypeError, match="use & for and"):
        bool(N > 1)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: gp.col(""), "give the name of a column"),
        (lambda: gp.lit(object()), "is no value for an expression"),
        (lambda: gp.lit(1 << 63), "more than the 64 bits"),
        (lambda: N.is_in([None]), "it equals nothing"),
        (lambda: N.is_in("ab"), "give a list of plain values"),
        (lambda: N.cast("int3"), "cast(int3): there is no column type"),
        (lambda: N.alias(""), "give a name"),
        (gp.coalesce, "give at least one"),
    ],
)
def test_mistakes_are_told_where_they_are_made(wrong: Any, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        wrong()
    assert text in str(refused.value)
