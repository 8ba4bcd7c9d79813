"""How much waits: never told to be nothing too early, and how long it has waited."""

from gearpy.messages.summaries import ConsumerReport
from gearpy.spark.delivery.thread import Backlog


class Clock:
    now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


def a_backlog(clock: Clock | None = None, *, rows_max: int = 100) -> Backlog:
    backlog = Backlog(rows_max=rows_max, wall_ms=clock or Clock())
    backlog.on_looking()
    backlog.on_looked(0, is_all=True)
    return backlog


def test_nobody_knows_what_waits_before_the_first_look() -> None:
    backlog = Backlog(rows_max=100, wall_ms=Clock())

    assert (backlog.is_empty, backlog.is_changed, backlog.has_room) == (False, True, True)


def test_what_is_shown_counts_at_once() -> None:
    backlog = a_backlog()

    backlog.on_shown(60)
    backlog.on_shown(60)

    assert (backlog.has_room, backlog.is_empty, backlog.is_changed) == (False, False, True)
    assert backlog.report("sink").waiting_rows == 120


def test_what_is_shown_during_a_look_is_looked_at_again() -> None:
    backlog = a_backlog()

    backlog.on_looking()
    backlog.on_shown(10)
    backlog.on_looked(0, is_all=True)

    assert (backlog.is_empty, backlog.is_changed) == (False, True)
    assert backlog.report("sink").waiting_rows == 10


def test_it_is_empty_when_all_was_looked_at_and_taken() -> None:
    backlog = a_backlog()
    backlog.on_shown(200)
    backlog.on_looking()
    backlog.on_looked(200, is_all=False)
    before = (backlog.is_empty, backlog.has_room)

    backlog.on_taken(1, 200)
    backlog.on_looked(0, is_all=True)

    assert before == (False, False)
    assert (backlog.is_empty, backlog.has_room) == (True, True)


def test_report_has_what_was_taken_and_what_waits() -> None:
    clock = Clock()
    backlog = a_backlog(clock)
    backlog.on_batch_id(41)
    backlog.on_shown(300)
    clock.now_ms += 20_000

    backlog.on_taken(42, 200)
    backlog.on_looking()
    backlog.on_looked(100, is_all=False)

    assert backlog.report("sink") == ConsumerReport(
        name="sink",
        batch_id=42,
        rows=200,
        rows_per_s=10.0,
        waiting_rows=100,
        waiting_since_ms=21_000,
    )


def test_time_that_rows_wait_begins_with_the_first_of_them() -> None:
    clock = Clock()
    backlog = a_backlog(clock)
    clock.now_ms = 2_000
    backlog.on_shown(1)
    clock.now_ms = 3_000
    backlog.on_shown(1)

    assert backlog.report("sink").waiting_since_ms == 2_000


def test_trouble_is_told_until_a_batch_is_taken() -> None:
    backlog = a_backlog()

    backlog.on_trouble("Spark is not there")
    told = backlog.report("sink").trouble
    backlog.on_taken(1, 1)

    assert (told, backlog.report("sink").trouble) == ("Spark is not there", "")


def test_waiting_ends_when_it_is_closed() -> None:
    backlog = a_backlog()

    backlog.close()
    backlog.wait_for_more()
    backlog.wait_for_end(60.0)

    assert backlog.is_closed
