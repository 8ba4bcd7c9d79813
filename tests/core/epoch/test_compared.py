"""Differences between what two versions of a step have put out."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.epoch.compared import DifferentOutput, OutputComparison, PutOut

_RECORDS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=8)


def put_out(*records: tuple[str, int]) -> list[PutOut]:
    return [PutOut(mark=each, key=each[0], value=each) for each in records]


def test_equal_records_in_another_order_are_no_difference() -> None:
    found = OutputComparison(examples=3)
    found.add(1, put_out(("a", 1), ("b", 1)), put_out(("b", 1), ("a", 1)))

    assert found.is_same
    assert (found.then, found.now, found.examples) == (2, 2, [])


def test_differences_are_counted_and_the_first_are_shown_by_key() -> None:
    found = OutputComparison(examples=2)
    found.add(4, put_out(("a", 1), ("b", 1)), put_out(("b", 2), ("a", 1), ("c", 9)))
    found.add(5, put_out(("d", 1)), [])

    assert (found.missing, found.added, found.keys) == (2, 2, {"b", "c", "d"})
    assert found.examples == [
        DifferentOutput(epoch=4, key="b", then="('b', 1)", now="('b', 2)"),
        DifferentOutput(epoch=4, key="c", then="", now="('c', 9)"),
    ]


@given(_RECORDS, _RECORDS)
def test_the_counts_are_those_of_multisets(
    then: list[tuple[str, int]], now: list[tuple[str, int]]
) -> None:
    found = OutputComparison(examples=100)
    found.add(1, put_out(*then), put_out(*now))

    assert found.missing == (Counter(then) - Counter(now)).total()
    assert found.added == (Counter(now) - Counter(then)).total()
    assert len([each for each in found.examples if each.then]) == found.missing
