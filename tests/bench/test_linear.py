"""The checker says of known histories whether they fit one order of events."""

from pathlib import Path

import pytest

from tests.bench.linear_history import History, Op, Operation, listed, verdict_of


def op(name: Op, argument: str, result: str | None, call: int, end: int) -> Operation:
    return Operation(1, "shop", name, argument, result, call, end)


SUBMITTED = op("submit", "a", "ok", 1, 2)
LOST = op("submit", "a", None, 1, 2)
KILLED = op("kill", "a", "ok", 3, 4)
OTHER = op("submit", "b", "ok", 5, 6)


def seen(text: str, call: int, end: int) -> Operation:
    return op("list", "", text, call, end)


@pytest.mark.parametrize(
    "operations",
    [
        [SUBMITTED, seen("a;", 3, 4)],
        [SUBMITTED, seen(";", 1, 3)],  # It was listed at the same time.
        [SUBMITTED, op("submit", "b", "refused", 3, 4), KILLED, OTHER, seen("b; a", 7, 8)],
        [SUBMITTED, op("submit", "a", "ok", 3, 4), seen("a;", 5, 6)],  # Sent again.
        [LOST, seen(";", 3, 4), seen("a;", 5, 6)],  # It was done late.
        [LOST, OTHER, seen("b;", 7, 8)],  # It was never done.
        [SUBMITTED, op("kill", "a", None, 3, 4), seen("a;", 5, 6), seen("; a", 7, 8)],
        [op("store", "1", "ok", 1, 2), op("store", "2", None, 3, 4), op("load", "", "1", 5, 6)],
    ],
)
def test_what_fits_one_order_is_right(history_checker: Path, operations: list[Operation]) -> None:
    verdict = verdict_of(History(operations))

    assert (verdict.wrong, verdict.undecided) == ((), ())
    assert verdict.operations == len(operations)


@pytest.mark.parametrize(
    "operations",
    [
        [SUBMITTED, seen(";", 3, 4)],
        [SUBMITTED, KILLED, seen("a;", 5, 6)],
        [SUBMITTED, OTHER],
        [op("submit", "b", "refused", 1, 2)],
        [LOST, seen("a;", 3, 4), seen(";", 5, 6)],
        [SUBMITTED, KILLED, op("kill", "a", "ok", 5, 6)],
        [op("kill", "a", "refused", 1, 2)],
        [op("store", "1", "ok", 1, 2), op("store", "2", "ok", 3, 4), op("load", "", "1", 5, 6)],
        [op("store", "1", None, 1, 2), op("load", "", "1", 3, 4), op("load", "", "", 5, 6)],
    ],
)
def test_what_fits_none_is_wrong(
    history_checker: Path, tmp_path: Path, operations: list[Operation]
) -> None:
    verdict = verdict_of(History(operations), tmp_path)

    assert verdict.wrong == ("shop",)
    assert (tmp_path / "shop.html").exists()


def test_each_object_is_judged_alone(history_checker: Path) -> None:
    wrong = Operation(1, "desk", "list", "", listed("x", []), 1, 2)

    assert verdict_of(History([SUBMITTED, wrong])).wrong == ("desk",)
