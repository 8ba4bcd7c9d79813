"""Joins over windows in columns: all is as with rows, also what is kept."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gearpy.core.window.windows import global_window, session, sliding, tumbling
from gearpy.ids import MIN_MS
from gearpy.task.joins.streams import JoinSpec
from tests.task.joins.test_nearest_tables import PENDING, STEPS, both_forms

WINDOWS = st.sampled_from(
    [
        tumbling("1ms"),
        tumbling("4ms", offset="1ms"),
        sliding("6ms", "2ms"),
        sliding("5ms", "3ms"),
        global_window(),
    ]
)
SPECS = st.builds(JoinSpec.over, WINDOWS, how=st.sampled_from(["inner", "left", "right", "outer"]))


def _in_windows(found: list[Any]) -> list[Any]:
    """Return results by window and key, those of one as they came. Columns begin with all time."""
    first = [(row._replace(start=max(row.start, MIN_MS)), *times) for row, *times in found]
    return sorted(first, key=lambda each: (each[1], each[0].start, repr(each[0].key)))


@settings(max_examples=50)
@given(STEPS, SPECS, st.integers(1, 2))
@example((True, [*PENDING, 3, "other form", "rescale"]), JoinSpec.over(tumbling("4ms")), 2)
def test_results_are_those_of_rows(
    steps: tuple[bool, list[Any]], spec: JoinSpec, sources: int
) -> None:
    """Also behind restarts, of one task or of three, and in the other form."""
    in_columns, in_rows = both_forms(steps, spec, sources)

    found, right = (_in_windows(each.found) for each in (in_columns, in_rows))
    if sources == 1:  # Its records come in order, whatever it says.
        found, right = (sorted(each, key=repr) for each in (found, right))
    assert found == right
    assert in_columns.late == in_rows.late


@settings(max_examples=80)
@given(
    STEPS,
    st.builds(
        JoinSpec.over,
        st.sampled_from([session("1ms"), session("3ms"), session("6ms")]),
        how=st.sampled_from(["inner", "left", "right", "outer"]),
    ),
    st.integers(1, 2),
)
@example((True, [*PENDING, 3, "other form", "rescale"]), JoinSpec.over(session("4ms")), 2)
def test_results_of_sessions_are_those_of_rows(
    steps: tuple[bool, list[Any]], spec: JoinSpec, sources: int
) -> None:
    """Also behind restarts, of one task or of three, and in the other form.

    A late record may make one session of two, whose records come in another order then.
    """
    in_columns, in_rows = both_forms(steps, spec, sources)

    found, right = (sorted(each.found, key=repr) for each in (in_columns, in_rows))
    assert found == right
    assert in_columns.late == in_rows.late
