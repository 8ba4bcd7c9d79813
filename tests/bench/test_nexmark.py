"""The table of `bin/bench nexmark`: rates without start-up, ratios of the best, unequal answers."""

from types import SimpleNamespace
from typing import Any, cast

from tests.bench.nexmark import Asked, means_of, row_text
from tests.bench.nexmark_loops import checksum


def asked(system: str, query: str, *long_s: float, **others: Any) -> Asked:
    process = cast("Any", SimpleNamespace())
    short_s = [0.5] * len(long_s)
    given = {"events": 1_005_000, "long_s": list(long_s), "short_s": short_s, **others}
    return Asked(process=process, system=system, query=query, **given)


def test_best_turns_are_compared_and_answers_too() -> None:
    systems, pairs = ["rows", "loop", "flink"], [("rows", "loop"), ("rows", "flink")]
    rows = [
        {"rows": asked("rows", "q0", 1.5, 2.5), "loop": asked("loop", "q0", 1.0)},
        {
            "rows": asked("rows", "q4", 2.5, answer=(5, 10)),
            "loop": asked("loop", "q4", 4.5, answer=(5, 11)),
            "flink": asked("flink", "q4", answer=(5, 10)),
        },
    ]

    texts = [row_text(row, systems, pairs) for row in rows]

    assert texts[0] == "| q0 | 1 (0.5) | 2 (2) |  | 0.5 |  |  |  |"
    assert texts[1] == "| q4 | 0.5 (0.5) | 0.25 (0.25) |  | 2 |  | not loop |  |"
    assert list(means_of(rows, pairs)) == ["rows ÷ loop: geometric mean 1.00, least 0.5, 2 queries"]


def test_a_sum_does_not_depend_on_the_order_of_rows() -> None:
    rows = [("ada", 2, 0.5), ("bob", 7, 1.25)]

    assert checksum(rows) == checksum(reversed(rows)) == {"rows": 2, "sum": 5274}
