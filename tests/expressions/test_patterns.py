"""Arrow finds what Python finds, where it is asked; see `gearpy.expressions.patterns`."""

import re

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.expressions.patterns import arrow_pattern

_PARTS = st.sampled_from(
    [
        *("a", "b", "=", "ö", ".", "[^&]", "[a-c]", "[^a]", "(a)", "(b.)", "(", ")", "|", "^", "$"),
        *(
            r"\.",
            r"\d",
            r"\W",
            r"\s",
            r"[\w.]",
            r"[^\s\\]",
            r"\[",
            "[]a]",
            "[[:alpha:]]",
            "(?:a)",
            "(?i)",
            "-",
            "{",
            "}",
            "\n",
            r"\n",
        ),
        *("*", "+", "?", "*?", "+?", "++", "{2}", "{1,2}", "{,2}", "{2}+"),
    ]
)
_PATTERNS = st.lists(_PARTS, min_size=1, max_size=6).map("".join)
_TEXTS = st.lists(st.text("aAbö=.\n&-{}[]\0\x1c\v 5٣_") | st.none(), min_size=1, max_size=6)


def found_by_python(pattern: str, group: int, text: str | None) -> tuple[bool | None, str | None]:
    if text is None:
        return None, None
    found = re.search(pattern, text)
    return found is not None, None if found is None else found[group]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # Of sets within sets.
@given(pattern=_PATTERNS, group=st.integers(0, 2), texts=_TEXTS)
@example(pattern="(a)|b", group=1, texts=["b"])
@example(pattern="a*(b?)+", group=1, texts=["aabb"])
@example(pattern="channel_id=([^&]*)", group=1, texts=["x&channel_id=7&y", "x"])
def test_columns_find_what_rows_find(pattern: str, group: int, texts: list[str | None]) -> None:
    try:
        groups = re.compile(pattern).groups
    except re.error:
        assume(False)
    group = min(group, groups)
    batch = pa.record_batch({"s": pa.array(texts, pa.string())})
    wanted = [found_by_python(pattern, group, text) for text in texts]

    matches = gp.col("s").str.matches(pattern).bind(batch.schema).columns(batch)
    extracted = gp.col("s").str.extract(pattern, group).bind(batch.schema).columns(batch)

    assert list(zip(matches.to_pylist(), extracted.to_pylist(), strict=True)) == wanted


@given(pattern=st.text("%_ab.ö\n\\[^", max_size=6), texts=_TEXTS)
def test_columns_are_like_what_rows_are_like(pattern: str, texts: list[str | None]) -> None:
    batch = pa.record_batch({"s": pa.array(texts, pa.string())})
    is_like = gp.col("s").str.like(pattern)

    found = is_like.bind(batch.schema).columns(batch).to_pylist()

    assert found == [is_like({"s": text}) for text in texts]


@pytest.mark.parametrize(
    ("pattern", "group", "of_arrow"),
    [
        ("channel_id=([^&]*)", 1, ("channel_id=(?P<found>[^&]*)", False)),
        (r"(a+)-(b{2})\.", 2, (r"(?:a+)-(?P<found>b{2})\.", False)),
        ("[0-9]+", 0, ("(?P<found>[0-9]+)", False)),
        ("^a|b", None, ("^a|b", False)),
        (r"\d+", None, ("[0-9]+", True)),
        (r"(?:\W)([\w.]*)$", 1, ("(?:[^0-9A-Za-z_])(?P<found>[0-9A-Za-z_.]*)$", True)),
        ("a$", None, ("a$", True)),
        ("(?i)a", None, ("(?i)a", True)),
        (r"[\\d]", None, (r"[\\d]", False)),
        (r"a\b", None, None),
        ("a++", None, None),
        ("(a)|(b)", 1, None),
        ("(a)?b", 1, None),
    ],
)
def test_what_arrow_is_asked_for(
    pattern: str, group: int | None, of_arrow: tuple[str, bool] | None
) -> None:
    assert arrow_pattern(pattern, group) == of_arrow
