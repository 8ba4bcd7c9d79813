"""Sources that read little, to find what ends processes; see `gearpy.core.app.deadly.probing`."""

from typing import Any, cast

import pytest

from gearpy.errors import OperatorError
from gearpy.messages.app import LeftOut, SourceProbe
from gearpy.task.sources.place_text import place_text, stored_place_text
from gearpy.task.sources.task import SourceTask
from gearpy.wire.values.payload import decode_value, encode_value
from tests.task.build import TARGET, TASK, Bench
from tests.task.stage_build import BoundedSource, a_source_bench

RECORDS = [(at, at) for at in range(200)]


def probed(
    *partitions: list[tuple[int, int]],
    records: int = 1,
    names: tuple[str, ...] | None = None,
    leaves_out: LeftOut = "",
    **kwargs: Any,
) -> Bench:
    probe = SourceProbe(
        task_id=TASK, records=records, partitions=names, leaves_out=leaves_out, cause="a death"
    )
    return a_source_bench(BoundedSource(*partitions), read=64, probe=probe, **kwargs)


def reads(bench: Bench, turns: int = 20) -> list[int]:
    before = len(bench.target.messages)
    for _ in range(turns):
        bench.pass_time(10)
        bench.consume(TARGET, len(bench.target.queue))
    return [message.value for message in bench.target.messages[before:]]


def commit(bench: Bench, epoch: int) -> None:
    bench.runner.cut(epoch)
    bench.turn()
    bench.runner.commit(epoch)


def test_nothing_is_read_before_an_epoch_is_complete_then_so_much_in_each() -> None:
    bench = probed(RECORDS, records=3)
    assert reads(bench) == []
    assert bench.runner.clock().wants_epoch

    bench.runner.cut(1)
    assert reads(bench) == []
    assert not bench.runner.clock().wants_epoch
    bench.runner.commit(1)

    assert reads(bench) == [0, 1, 2]
    assert bench.runner.clock().wants_epoch
    bench.runner.commit(1)
    assert reads(bench) == []  # The epoch in which these were read is not complete.
    commit(bench, 2)
    assert reads(bench) == [3, 4, 5]


def test_behind_enough_epochs_it_reads_as_always() -> None:
    """However an epoch is to end meanwhile: what is read is not held back for it."""
    bench = probed(RECORDS * 9, records=1)
    seen: list[int] = []
    for epoch in range(1, 120):
        bench.runner.cut(epoch, 7)
        bench.turn()
        bench.runner.commit(epoch)
        seen += reads(bench, turns=2)

    assert seen == [value for value, _ in RECORDS * 9]
    assert bench.runner.clock().clock_ms > 10**15


def test_of_some_partitions_each_gives_so_much_and_others_nothing() -> None:
    bench = probed(RECORDS, [(at + 1000, at) for at in range(9)], RECORDS, names=("p1", "p2"))
    commit(bench, 1)
    assert sorted(reads(bench)) == [0, 1000]
    assert bench.runner.clock().wants_epoch
    commit(bench, 2)
    assert sorted(reads(bench)) == [1, 1001]


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_a_record_is_left_out_before_anything_is_read(policy: Any) -> None:
    bench = probed(RECORDS, names=("p0",), leaves_out="record", on_error=policy)
    assert reads(bench) == []
    assert bench.runner.clock().wants_epoch
    commit(bench, 1)
    assert reads(bench) == []

    clock = bench.runner.clock()
    assert (clock.skipped_records, clock.quarantined_records) == (
        (1, 0) if policy == "skip" else (0, 1)
    )
    after = a_source_bench(BoundedSource(RECORDS), resume=bench.snapshot(1)).run()
    assert after.target.values == [value for value, _ in RECORDS[1:]]
    if policy == "quarantine":
        (record,) = bench.runner.rejected
        assert decode_value(record.value) == 0
        assert record.error.cause == (
            "p0, at [0, -9223372036854775808]: this record ends the process that works on it: "
            "a death"
        )


def test_a_source_that_cannot_step_over_what_it_cannot_read_says_so() -> None:
    with pytest.raises(OperatorError, match="cannot step over it unread: take it out") as raised:
        reads(probed(RECORDS, names=("p0",), leaves_out="block", on_error="quarantine"))

    assert raised.value.is_final


def test_what_cannot_be_read_is_put_aside_unread() -> None:
    bench = probed(RECORDS, names=("p0",), leaves_out="block", on_error="quarantine")
    (part,) = cast("SourceTask", bench.runner.task)._parts  # noqa: SLF001 - its reader is asked
    asked: list[bool] = []

    def step_over(*, all_of_file: bool) -> str | None:
        asked.append(all_of_file)
        return "line 7: {" if len(asked) > 1 else None

    part.reader.step_over = step_over  # type: ignore[method-assign] # it has none
    assert reads(bench) == []

    assert asked == [False, False]
    (record,) = bench.runner.rejected
    assert (record.value, record.error.record) == (b"", "line 7: {")
    assert "to read on from there ends the process: a death" in record.error.cause


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (None, "the beginning of a"),
        ({"offset": 7, "watermark_ms": 5}, "a, byte 7"),
        ({"offset": 7, "end": None, "watermark_ms": 5, "topic_id": ""}, "a, offset 7"),
        ({"position": 6, "watermark_ms": 5}, "a, record 7"),
        ({"file": "f", "place": {"line": 8, "row": 0, "offset": 9}}, "f, line 8"),
        ({"file": "f", "place": {"line": 8, "row": 3, "offset": 9}}, "f, about line 11"),
        ({"file": "f", "place": {"group": 2, "row": 3}}, "f, row 3 of group 2"),
        ({"file": "f", "place": None}, "the beginning of f"),
        ({"file": "", "place": None}, "the next file of a"),
        ({"at": [3], "watermark_ms": 5}, 'a, at {"at": [3]}'),
        ((3, 4), "a, at [3, 4]"),
    ],
)
def test_places_are_told_in_the_terms_of_their_sources(place: Any, text: str) -> None:
    assert place_text("a", place) == text
    assert stored_place_text("a", encode_value(place)) == text


def test_a_place_that_nobody_here_can_read_is_shown_as_it_is() -> None:
    assert stored_place_text("a", b"\xc1").startswith("a, at b'")
