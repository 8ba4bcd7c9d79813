"""Speed cannot leak: instructions and calls of the main paths are those of the committed table."""

from dataclasses import replace
from pathlib import Path

import pytest

from gearpy.core.flow.read_size import ReadSize
from tests.bench.work import PATHS, Cost, PathWork, measure_work, work_of
from tests.bench.work_table import WorkTable

FAST = PathWork(
    record=Cost(40, 4),
    batch=Cost(1000, 100),
    epoch=Cost(5000, 500),
    functions={"a.py:f": 900, "a.py:g": 100},
    epoch_functions={"a.py:end": 5000},
)


def table_of(work: PathWork, reason: str = "") -> WorkTable:
    empty = replace(WorkTable.read(), paths={}, reasons={"rows": reason} if reason else {})
    return empty.changed({"rows": work}, "")


@pytest.mark.smoke
def test_no_path_takes_more_instructions_or_calls_than_the_table_says() -> None:
    problems = [each.text for each in WorkTable.read().problems(measure_work())]
    assert not problems, "\n".join(problems)


def test_the_table_knows_all_paths_and_is_as_it_is_written() -> None:
    table = WorkTable.read()
    assert list(table.paths) == list(PATHS)
    assert WorkTable.read().text() == Path(__file__).with_name("work.toml").read_text("utf-8")


def test_figures_are_the_same_to_the_digit_in_each_run() -> None:
    assert measure_work(["rows"]) == measure_work(["rows"])


def test_a_call_more_in_a_batch_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work_of(PATHS["rows"], tmp_path / "first")  # What a process does once is not counted.
    before = work_of(PATHS["rows"], tmp_path / "before")
    on_read = ReadSize.on_read

    def slower(size: ReadSize, records: int, worked_ms: int) -> None:
        for _ in range(20):  # More than what differs as texts hash otherwise.
            on_read(size, 0, worked_ms)
        on_read(size, records, worked_ms)

    monkeypatch.setattr(ReadSize, "on_read", slower)
    after = work_of(PATHS["rows"], tmp_path / "after")
    texts = [each.text for each in table_of(before).problems({"rows": after})]
    # What other tests have left may be freed meanwhile, by code that counts for a record.
    problems = {text.partition(" grew")[0]: text for text in texts if " of a batch " in text}
    assert list(problems) == ["rows: instructions of a batch", "rows: calls of a batch"]
    read = "gearpy/core/flow/read_size.py:ReadSize.on_read (+"
    assert all(read in each for each in problems.values())


def test_a_figure_that_grew_is_told_with_those_functions_that_grew_most() -> None:
    slow = replace(
        FAST, batch=Cost(1011, 100), functions={"a.py:f": 905, "a.py:g": 106, "a.py:h": 90}
    )
    (problem,) = table_of(FAST).problems({"rows": slow})
    assert problem.text == (
        "rows: instructions of a batch grew by 1.1%, from 1,000 to 1,011; most of it in "
        "a.py:g (+6), a.py:f (+5); if that must be: bin/bench work --write --reason 'WHY'"
    )
    assert problem.is_growth


def test_growth_of_an_epoch_names_functions_of_epochs() -> None:
    slow = replace(FAST, epoch=Cost(6000, 500), epoch_functions={"a.py:end": 5900, "b.py:x": 5100})
    (problem,) = table_of(FAST).problems({"rows": slow})
    assert "instructions of an epoch grew by 20.0%" in problem.text
    assert "in a.py:end (+900), b.py:x (+100);" in problem.text


@pytest.mark.parametrize(
    "now",
    [
        FAST,
        replace(FAST, batch=Cost(1010, 101)),
        replace(FAST, record=Cost(40.4, 4.04)),
        replace(FAST, batch=Cost(951, 96)),
    ],
)
def test_a_hundredth_more_or_a_little_less_is_no_problem(now: PathWork) -> None:
    assert not list(table_of(FAST).problems({"rows": now}))


def test_a_figure_that_fell_much_is_kept() -> None:
    (problem,) = table_of(FAST).problems({"rows": replace(FAST, batch=Cost(900, 100))})
    assert "instructions of a batch fell by 10.0%, from 1,000 to 900: keep that" in problem.text
    assert not problem.is_growth


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (0.0, -0.5, "fell out of nothing, from 0 to -0.5"),
        (0.0, 0.5, "grew out of nothing, from 0 to 0.5"),
        (-2.0, -1.0, "grew by 50.0%, from -2 to -1"),
        (-2.0, -3.0, "fell by 50.0%, from -2 to -3"),
    ],
)
def test_what_a_record_takes_may_be_nothing_or_less(was: float, now: float, told: str) -> None:
    # It is a difference of batches: one that a full batch does not have makes it negative.
    table = table_of(replace(FAST, record=Cost(was, 4)))
    (problem,) = table.problems({"rows": replace(FAST, record=Cost(now, 4))})
    assert told in problem.text
    assert not list(table.problems({"rows": replace(FAST, record=Cost(was + 0.04, 4))}))


def test_small_steps_add_up_to_growth() -> None:
    table = table_of(FAST)
    for instructions in (1004, 1008):
        table = table.changed({"rows": replace(FAST, batch=Cost(instructions, 100))}, "small")
    assert table.paths["rows"].batch.instructions == 1000
    assert list(table.problems({"rows": replace(FAST, batch=Cost(1012, 100))}))


def test_the_reason_of_growth_stays_and_other_paths_do() -> None:
    table = replace(table_of(FAST), paths={"rows": FAST, "words": FAST})
    grown = table.changed({"rows": replace(FAST, batch=Cost(1100, 100))}, "late records are told")
    assert grown.paths["words"] == FAST
    assert grown.reasons["rows"] == "late records are told"
    fell = grown.changed({"rows": FAST}, "")
    assert fell.paths["rows"] == FAST
    assert fell.reasons["rows"] == "late records are told"
    assert 'grew = "late records are told"' in fell.text()


def test_a_path_without_figures_is_told() -> None:
    (problem,) = table_of(FAST).problems({"words": FAST})
    assert problem.text == "words: is not in the table: bin/bench work --write"
