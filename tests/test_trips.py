"""How many modules and forms a record, a program and an epoch go through: no more than today.

The bounds are the figures of `python -m tests.trips`. Lower them when they have fallen.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.trips import (
    MARK,
    Trip,
    holding,
    is_marked,
    trip_of_epoch,
    trip_of_program,
    trip_of_record,
)

PROGRAM: Final = (59, 31, 8)


def is_within(trip: Trip, bounds: tuple[int, int, int]) -> bool:
    return all(now <= bound for now, bound in zip(trip.figures, bounds, strict=True))


def assert_within(trip: Trip, bounds: tuple[int, int, int]) -> None:
    found = "\n".join((*sorted(trip.modules), *sorted(trip.forms)))
    assert is_within(trip, bounds), f"{trip}: more than {bounds}:\n{found}"


@pytest.mark.smoke
def test_a_record_from_its_reader_to_the_window_log(tmp_path: Path) -> None:
    trip = trip_of_record(tmp_path)
    assert {"gearpy.task.runtime.runner", "gearpy.windowlog.lane"} <= trip.modules
    assert {"Batch", "DataMessage", "RecordBatch"} <= trip.forms
    assert_within(trip, (23, 8, 9))


def test_a_program_from_its_file_to_its_tasks(tmp_path: Path) -> None:
    # What is not ready yet, such as a fork server, is gone around: a longer way, not the usual one.
    trips = []
    for name in "abc":
        (tmp_path / name).mkdir()
        trips.append(trip_of_program(tmp_path / name))
        if is_within(trips[-1], PROGRAM):
            break
    trip = min(trips, key=lambda trip: trip.figures)
    assert {"gearpy.cluster.programs.upload", "gearpy.task.runtime.wiring"} <= trip.modules
    assert_within(trip, PROGRAM)


def test_a_snapshot_from_its_task_to_the_commit() -> None:
    trip = trip_of_epoch()
    assert {"gearpy.task.runtime.runner", "gearpy.core.epoch.epochs"} <= trip.modules
    assert {"TaskSnapshot", "Manifest", "CommitTask"} <= trip.forms
    assert_within(trip, (32, 21, 7))


@pytest.mark.parametrize(
    "value", [MARK, f"a line with {MARK}", [{"user": MARK}], {MARK: 3}, f"x{MARK}".encode()]
)
def test_a_thing_holds_the_mark_if_it_is_somewhere_in_it(value: object) -> None:
    assert holding(is_marked)(value)


@pytest.mark.parametrize("value", [[{"user": "another"}], "another", b"bytes", 7, None])
def test_other_things_do_not(value: object) -> None:
    assert not holding(is_marked)(value)
