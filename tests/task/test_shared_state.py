"""What a step keeps beside keyed state, given to another number of tasks."""

from typing import Any

import pytest

from gearpy.task.aggregates.fold import shared_state


@pytest.mark.parametrize(
    ("states", "shared"),
    [
        ([[{0: 5, 10: 12}, 9], [{10: 11, 20: 20}, 7]], [{0: 5, 10: 11, 20: 20}, 7]),
        ([["inner join", 9], ["inner join", 7], ["inner join", 8]], ["inner join", 7]),
        ([[9], [7]], [7]),
    ],
    ids=["folded windows", "joins", "windows"],
)
def test_tasks_of_another_number_go_on_from_the_least_event_time(
    states: list[Any], shared: Any
) -> None:
    assert shared_state(states) == shared


@pytest.mark.parametrize(
    "states",
    [
        [],
        [["inner join", 9], ["outer join", 7]],
        [["inner join", 9], [7]],
        [[9, 100], [7, 100]],  # Of windows that allow lateness.
        [[9, 7, ["in flight"], [8]], [9, 9, [], []]],
        [9, 7],
    ],
)
def test_other_states_cannot_be_shared_out(states: list[Any]) -> None:
    """Windows that have closed, and take late records, would close again if time went back."""
    assert shared_state(states) is None
