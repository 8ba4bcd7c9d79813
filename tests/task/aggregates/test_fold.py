"""Folds by key, running and per window, beside plain dictionaries."""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.core.window.windows import DisjointWindows, GlobalWindows, TumblingWindows
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Message
from gearpy.task.aggregates.fold import Fold, RunningFold, WindowFold
from gearpy.task.api.rejects import Rejects
from gearpy.task.api.window_result import WindowResult
from gearpy.wire.values.payload import decode_value
from tests.task.build import a_context
from tests.task.stage_build import columns_of, results_of

COUNT = Fold(kind="count", first=lambda _: 1, add=lambda total, _: total + 1)
JOIN = Fold(kind="fold", first=lambda value: [value], add=lambda kept, value: [*kept, value])

FOLDS: dict[str, tuple[Fold, Callable[[list[int]], Any]]] = {
    "count": (COUNT, len),
    "join": (JOIN, lambda values: values),
}


def by_three(value: int) -> int:
    return value % 3


def a_window_fold(
    windows: DisjointWindows,
    fold: Fold = COUNT,
    *,
    key: Callable[[Any], Any] | None = by_three,
    limit: int = 100,
) -> WindowFold:
    return WindowFold(a_context(), "fold", windows, key, fold, limit=limit)


def results_at(fold: WindowFold, watermark_ms: int) -> list[Message]:
    return [
        Message(*pair)
        for portion in columns_of(fold.on_watermark(watermark_ms))
        for pair in zip(*portion, strict=True)
    ]


# -- windows ---------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(0, 20), st.integers(-30, 60)), min_size=1, max_size=6),
        st.integers(-40, 80),
    ),
    max_size=20,
)


@given(
    STEPS,
    st.sampled_from([TumblingWindows(10), TumblingWindows(7, 3), GlobalWindows()]),
    st.sampled_from(sorted(FOLDS)),
    st.integers(1, 4),
)
def test_window_results_are_those_of_a_dictionary(
    steps: list[Any], windows: DisjointWindows, name: str, limit: int
) -> None:
    """Invariant: one result for each key and closed window; late records are counted, not folded.

    A result is stamped with the last ms of its window: never older than the watermark before.
    """
    fold, summed = FOLDS[name]
    context = a_context()
    stage = WindowFold(context, "fold", windows, by_three, fold, limit=limit)
    kept: defaultdict[int, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    oldest: dict[int, int] = {}
    late, watermark_ms = 0, MIN_MS

    for step in [*steps, MAX_MS]:
        if isinstance(step, list):
            values, times = map(list, zip(*step, strict=True))
            assert list(results_of(stage, values, times)) == []
            for value, time in step:
                start = windows.start_of(time)
                if windows.end_of(start) <= watermark_ms:
                    late += 1
                else:
                    kept[start][by_three(value)].append(value)
                    oldest[start] = min(time, oldest.get(start, MAX_MS))
        elif step > watermark_ms:
            before_ms, watermark_ms = watermark_ms, step
            due = sorted(start for start in kept if windows.end_of(start) <= watermark_ms)
            expected = [
                Message(WindowResult(key, summed(values), start, windows.end_of(start)), end - 1)
                for start in due
                for end in [windows.end_of(start)]
                for key, values in kept.pop(start).items()
            ]
            got = results_at(stage, watermark_ms)
            assert got == expected
            assert all(message.timestamp >= before_ms for message in got)
            for start in due:
                del oldest[start]
        assert stage.hold_ms == min(oldest.values(), default=MAX_MS)
        assert context.counters.late_records == late
    assert not kept


def test_closing_window_is_given_in_portions() -> None:
    """A window of a million keys is no single batch; what is not given yet is still held."""
    fold = a_window_fold(TumblingWindows(10), key=lambda value: value, limit=4)
    list(results_of(fold, list(range(10)), [3] * 10))

    portions = columns_of(fold.on_watermark(10))
    first = next(portions)
    held = fold.hold_ms
    rest = list(portions)

    assert len(first[0]) == 4
    assert held == 3
    assert [len(values) for values, _ in rest] == [4, 2]
    assert fold.hold_ms == MAX_MS


def test_window_closes_when_the_watermark_reaches_its_end() -> None:
    """A watermark of 10 says that no record before 10 will come."""
    fold = a_window_fold(TumblingWindows(10))
    list(results_of(fold, [1], [5]))

    assert results_at(fold, 9) == []
    assert results_at(fold, 10) == [Message(WindowResult(1, 1, 0, 10), 9)]


def first_letter(text: str) -> str:
    return text[0]


@pytest.mark.parametrize("fold", [COUNT, JOIN], ids=["count", "join"])
@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (first_letter, r"IndexError: string index out of range"),
        (lambda text: next(iter(text)), r"StopIteration"),
        (lambda text: text or [], r"TypeError: .*unhashable type: 'list'"),
    ],
    ids=["raises", "next", "unhashable"],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_key_function_that_raises_blames_its_record(
    fold: Fold, key: Callable[[Any], Any], cause: str, at: int
) -> None:
    """Also `next` without a default, which would else look like the end of the batch.

    An unhashable key is found by the dictionary, one step later.
    """
    values = ["ab", "cd", "ef"]
    values[at] = ""
    stage = a_window_fold(TumblingWindows(10), fold, key=key)

    with pytest.raises(OperatorError) as raised:
        list(results_of(stage, values, [1, 2, 3]))

    error = raised.value
    assert error.operator == "fold"
    assert re.match(cause, error.cause)
    assert (error.record, error.event_time_ms) == ("''", at + 1)


def test_fold_that_raises_blames_its_record() -> None:
    fold = Fold(kind="fold", first=lambda value: value, add=lambda total, value: total + value)
    stage = a_window_fold(TumblingWindows(10), fold, key=lambda _: None)

    with pytest.raises(OperatorError, match="TypeError") as raised:
        list(results_of(stage, [1, 2, "x", 3], [11, 12, 13, 24]))

    error = raised.value
    assert (error.record, error.event_time_ms) == ("'x'", 13)
    assert "total + value" in error.source_line


# -- running ---------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=6), max_size=6),
    st.sampled_from(sorted(FOLDS)),
)
def test_running_results_are_those_of_a_dictionary(batches: list[list[int]], name: str) -> None:
    """Invariant: after every record what its key has come to, at the record's time."""
    fold, summed = FOLDS[name]
    stage = RunningFold(a_context(), "fold", by_three, fold)
    kept: defaultdict[int, list[int]] = defaultdict(list)

    for batch in batches:
        times = list(range(len(batch)))
        ((values, stamped),) = results_of(stage, batch, times)

        expected = []
        for value in batch:
            kept[by_three(value)].append(value)
            expected.append((by_three(value), summed(list(kept[by_three(value)]))))
        assert values == expected
        assert stamped == times
    assert list(columns_of(stage.on_watermark(MAX_MS))) == []
    assert stage.hold_ms == MAX_MS


@pytest.mark.parametrize("at", [0, 1, 2])
def test_running_fold_that_raises_blames_its_record(at: int) -> None:
    values = ["ab", "cd", "ef"]
    values[at] = ""
    stage = RunningFold(a_context(), "fold", first_letter, COUNT)

    with pytest.raises(OperatorError, match="IndexError") as raised:
        list(results_of(stage, values, [1, 2, 3]))

    error = raised.value
    assert (error.record, error.event_time_ms) == ("''", at + 1)
    assert error.source_line == "return text[0]"


# -- bad records -----------------------------------------------------------------------------


def bad_key(value: int) -> Any:
    """Return a key; of some there is none, of others one that cannot be hashed."""
    if value % 5 == 1:
        raise ValueError(value)
    return [] if value % 5 == 2 else value % 3


def bad_fold(name: str) -> Fold:
    fold = FOLDS[name][0]

    def checked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if args[-1] % 5 == 3:
                raise ValueError(args[-1])
            return function(*args)

        return call

    return Fold(kind=fold.kind, first=checked(fold.first), add=checked(fold.add))


def is_bad(value: int, name: str) -> bool:
    """Whether a record is bad; a count calls no function of the fold."""
    return value % 5 in ((1, 2) if name == "count" else (1, 2, 3))


RECORDS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), min_size=1, max_size=12)


@given(st.lists(RECORDS, max_size=4), st.sampled_from(sorted(FOLDS)))
def test_window_goes_on_behind_bad_records(batches: list[Any], name: str) -> None:
    """Property: windows hold what they would without them; each is in quarantine, once."""
    contexts = [a_context(), a_context()]
    counters = contexts[0].counters
    contexts[0].rejects = rejects = Rejects("quarantine", counters)
    windows = TumblingWindows(10)
    fold, key = bad_fold(name), bad_key
    stage = WindowFold(contexts[0], "fold", windows, key, fold, limit=100)
    without = WindowFold(contexts[1], "fold", windows, key, fold, limit=100)

    dropped = []
    for batch in batches:
        list(results_of(stage, *map(list, zip(*batch, strict=True))))
        good = [record for record in batch if not is_bad(record[0], name)]
        dropped += [record for record in batch if is_bad(record[0], name)]
        if good:
            list(results_of(without, *map(list, zip(*good, strict=True))))

    found = [(decode_value(record.value), record.event_time_ms) for record in rejects.records]
    assert sorted(found) == sorted(dropped)
    assert counters.quarantined_records == len(dropped)
    assert stage.hold_ms <= without.hold_ms, "a bad record may hold the clock until then"
    assert results_at(stage, MAX_MS) == results_at(without, MAX_MS)


@given(st.lists(st.lists(st.integers(0, 30), min_size=1), max_size=4))
def test_running_fold_goes_on_behind_bad_records(batches: list[list[int]]) -> None:
    """Property: the updates are those of the others, at their own times."""
    context = a_context()
    counters = context.counters
    context.rejects = Rejects("skip", counters)
    fold = Fold(kind="fold", first=bad_fold("join").first, add=bad_fold("join").add)
    stage = RunningFold(context, "fold", bad_key, fold)
    without = RunningFold(a_context(), "fold", bad_key, fold)

    dropped = 0
    for batch in batches:
        times = list(range(len(batch)))
        good = [at for at in times if not is_bad(batch[at], "join")]
        dropped += len(batch) - len(good)
        portions = list(results_of(stage, batch, times))
        assert portions == list(results_of(without, [batch[at] for at in good], good))
    assert counters.skipped_records == dropped
