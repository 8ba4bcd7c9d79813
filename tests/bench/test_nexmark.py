"""The table of `bin/bench nexmark`: rates without start-up, ratios of the best, unequal answers."""

from types import SimpleNamespace
from typing import Any, cast

from tests.bench.nexmark import Asked, table_of
from tests.bench.nexmark_loops import checksum


def asked(system: str, query: str, *long_s: float, **others: Any) -> Asked:
    process = cast("Any", SimpleNamespace())
    short_s = [0.5] * len(long_s)
    given = {"events": 1_005_000, "long_s": list(long_s), "short_s": short_s, **others}
    return Asked(process=process, system=system, query=query, **given)


def test_best_turns_are_compared_and_answers_too() -> None:
    rows = {
        "q0": {"rows": asked("rows", "q0", 1.5, 2.5), "loop": asked("loop", "q0", 1.0)},
        "q4": {
            "rows": asked("rows", "q4", 2.5, answer=(5, 10)),
            "loop": asked("loop", "q4", 4.5, answer=(5, 11)),
            "flink": asked("flink", "q4", answer=(5, 10), problem="no more memory"),
        },
    }

    lines = list(table_of(rows, ["rows", "loop", "flink"]))

    assert lines[2].startswith("| q0 | 1 (0.5) | 2 (2) |  | 0.5 |  |  |")
    assert lines[3].startswith("| q4 | 0.5 (0.5) | 0.25 (0.25) |  | 2 |  | not loop |")
    assert lines[4:] == [
        "rows ÷ loop: geometric mean 1.00, least 0.5, 2 queries",
        "q4 flink: no more memory",
    ]


def test_a_sum_does_not_depend_on_the_order_of_rows() -> None:
    rows = [("ada", 2, 0.5), ("bob", 7, 1.25)]

    assert checksum(rows) == checksum(reversed(rows)) == {"rows": 2, "sum": 5274}
