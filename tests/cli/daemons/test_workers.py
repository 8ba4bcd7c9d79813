"""Workers that are told to leave their cluster, as the command line shows it."""

from msgspec.structs import replace

from tests.cli.build import NOON_MS, Gear


def test_a_worker_that_drains_is_waited_for_and_shown(gear: Gear) -> None:
    workers = gear.cluster.workers
    gear.cluster.workers = (replace(workers[0], slots=0, free_slots=0, is_leaving=True), workers[1])

    rows = gear("worker", "list").splitlines()[2:]
    assert [row.endswith(" leaving") for row in rows] == [True, False]
    assert gear("worker", "drain", "0") == (
        "worker 0 leaves, when 2 executors there have stopped\nworker 0 has ended\n"
    )
    assert gear("worker", "drain", "1", "--no-wait") == "worker 1 leaves, nothing runs there\n"


def test_a_worker_that_is_put_aside_has_a_note_until_when(gear: Gear) -> None:
    """Somebody who wonders why nothing starts there looks at the list."""
    workers = gear.cluster.workers
    gear.cluster.workers = (replace(workers[0], aside_until_ms=NOON_MS, free_slots=0), workers[1])

    line = gear("worker", "list").splitlines()[2]
    assert line.endswith("came and went: gets nothing until 2026-01-01T12:00:00Z")
