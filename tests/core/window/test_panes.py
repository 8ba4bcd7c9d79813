"""All windows with all triggers, in the order of any stream, beside brute force."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.core.base.copies import own
from gearpy.ids import MAX_MS
from tests.core.pieces import tiny_pieces
from tests.core.window_cases import FOLDS, KINDS, TRIGGERS, check_stream, random_steps, variants_of


@pytest.fixture(autouse=True, scope="module")
def pieces() -> Iterator[None]:
    """Let others go on as often as possible; that changes no result."""
    with tiny_pieces():
        yield


VARIANTS = {
    (kind, trigger): list(variants_of(KINDS[kind], TRIGGERS[trigger]))
    for kind in KINDS
    for trigger in TRIGGERS
    if kind != "count" or trigger == "default"
}


@pytest.mark.parametrize(("kind", "trigger"), sorted(VARIANTS))
def test_windows_give_what_brute_force_gives(kind: str, trigger: str) -> None:
    """Each accumulation, lateness, clock and kind of fold; late records, holds and order, too."""
    for number, windows in enumerate(VARIANTS[kind, trigger]):
        for at, name in enumerate(sorted(FOLDS)):
            if at == (number + 1) % len(FOLDS):  # Restarts have another kind of each variant.
                check_stream(windows, FOLDS[name], random_steps(7 * number + at))


@pytest.mark.parametrize(("kind", "trigger"), sorted(VARIANTS))
def test_restarted_windows_go_on_as_if_nothing_had_happened(kind: str, trigger: str) -> None:
    for number, windows in enumerate(VARIANTS[kind, trigger]):
        name = sorted(FOLDS)[number % len(FOLDS)]
        check_stream(windows, FOLDS[name], random_steps(100 + number, 25), restarts=True)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("record"), st.sampled_from("abc"), st.integers(0, 99), st.integers(-30, 60)
        ),
        st.tuples(st.just("watermark"), st.integers(-30, 70)),
        st.tuples(st.just("pass"), st.integers(0, 6)),
        st.just(("wall",)),
    ),
    max_size=30,
)


@settings(max_examples=120)
@given(st.sampled_from(sorted(VARIANTS)), st.data(), STEPS, st.booleans())
def test_any_stream_gives_what_brute_force_gives(
    name: tuple[str, str],
    data: st.DataObject,
    steps: list[tuple[Any, ...]],
    restarts: bool,  # noqa: FBT001 - drawn
) -> None:
    """Property: the invariant of the panes, for streams in any order."""
    windows = data.draw(st.sampled_from(VARIANTS[name]))
    fold = FOLDS[data.draw(st.sampled_from(sorted(FOLDS)))]

    check_stream(windows, fold, [*steps, ("watermark", MAX_MS)], restarts=restarts)


def test_own_values_share_nothing_within() -> None:
    value = ([[1]], {"a": [2]})

    copied = own(value)
    value[0][0].append(3)
    value[1]["a"].append(4)

    assert copied == ([[1]], {"a": [2]})
