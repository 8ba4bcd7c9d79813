"""How much may be under way to a task, see `gearpy.core.flow.pace`."""

from gearpy.core.flow.pace import WorkPace
from gearpy.ids import TaskId

ONE, OTHER = TaskId(0, 0), TaskId(0, 1)


def works(pace: WorkPace, *, at_ms: int, for_ms: int, records: int, sender: TaskId = ONE) -> int:
    """Have a task process records in one turn; return when that has ended."""
    pace.begin(at_ms)
    pace.on_taken(sender, records)
    pace.end(at_ms + for_ms, is_waiting=False)
    return at_ms + for_ms


def test_the_room_is_the_work_of_a_second() -> None:
    pace = WorkPace()

    now_ms = works(pace, at_ms=5, for_ms=400, records=200)

    assert pace.room(now_ms) == 500


def test_who_has_not_worked_yet_does_not_say() -> None:
    pace = WorkPace()
    before = pace.room(0)

    now_ms = works(pace, at_ms=0, for_ms=0, records=200)

    assert (before, pace.room(now_ms)) == (0, 0)


def test_the_turn_at_hand_counts() -> None:
    pace = WorkPace()
    pace.begin(0)
    pace.on_taken(ONE, 1000)

    assert pace.room(2000) == 500


def test_time_of_others_on_the_thread_does_not_count() -> None:
    """With less room the task would take less in each turn, and seem slower still."""
    pace = WorkPace()
    for turn in range(10):
        works(pace, at_ms=turn * 5000, for_ms=1, records=1000)

    assert pace.room(60_000) == 1_000_000


def test_time_in_which_it_waits_for_room_counts() -> None:
    pace = WorkPace()
    pace.begin(0)
    pace.on_taken(ONE, 100)
    pace.end(1, is_waiting=True)

    pace.begin(1000)
    pace.end(1000, is_waiting=False)

    assert pace.room(9000) == 100


def test_senders_share_the_room() -> None:
    pace = WorkPace()
    works(pace, at_ms=0, for_ms=500, records=100)

    now_ms = works(pace, at_ms=500, for_ms=500, records=300, sender=OTHER)

    assert pace.room(now_ms) == 200


def test_a_sender_that_has_gone_quiet_leaves_its_share() -> None:
    pace = WorkPace()
    now_ms = works(pace, at_ms=0, for_ms=1, records=1, sender=OTHER)
    for _ in range(10):
        now_ms = works(pace, at_ms=now_ms, for_ms=1000, records=400)

    assert 390 <= pace.room(now_ms) <= 410


def test_what_was_long_ago_is_forgotten() -> None:
    pace, now_ms = WorkPace(), 0
    for _ in range(5):
        now_ms = works(pace, at_ms=now_ms, for_ms=1000, records=1_000_000)
    for _ in range(20):
        now_ms = works(pace, at_ms=now_ms, for_ms=1000, records=100)
    slow = pace.room(now_ms)
    works(pace, at_ms=now_ms, for_ms=1000, records=1_000_000)

    assert 90 <= slow <= 200
    assert pace.room(now_ms + 1000) > 300_000


def test_some_room_is_left_however_slow_it_is() -> None:
    pace = WorkPace()

    now_ms = works(pace, at_ms=0, for_ms=60_000, records=1)

    assert pace.room(now_ms) == 1
