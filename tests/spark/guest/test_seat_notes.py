"""Notes between masters in tasks of Spark and their driver."""

from dataclasses import replace
from pathlib import Path

import pytest

from gearpy import __version__
from gearpy.errors import ConfigError
from gearpy.spark.guest.masters import be_master
from gearpy.spark.guest.order import MasterOrder
from gearpy.spark.guest.seat_notes import SeatNotes, SeatOrder
from gearpy.spark.guest.seats import Seated


def test_an_order_is_for_one_task_of_a_seat(tmp_path: Path) -> None:
    """The next one waits for its own; a new driver forgets all that was said."""
    driver, task = SeatNotes(tmp_path / "masters"), SeatNotes(tmp_path / "masters")
    driver.clear()
    seated = Seated("10.0.0.2:4711", "first", "machine-17", 3)
    order = SeatOrder(attempt="first", masters=("10.0.0.2:4711", "b:1", "c:1"), joins=True)

    assert (driver.come(), task.order_of(2, "first")) == ({}, None)
    task.tell(2, seated)
    assert driver.come() == {2: seated}
    driver.order(2, order)
    assert task.order_of(2, "first") == order
    assert task.order_of(2, "second") is None
    assert task.order_of(1, "first") is None
    driver.clear()
    assert (driver.come(), task.order_of(2, "first")) == ({}, None)


def test_a_folder_that_a_machine_does_not_see_is_told(tmp_path: Path) -> None:
    """What masters agree on would be lost with the task."""
    order = MasterOrder(
        version="0", config={}, folder=str(tmp_path / "shop" / "masters"), secret=b"secret"
    )
    with pytest.raises(ConfigError, match="gearpy is 0 in the driver and"):
        be_master(order, 1, [])
    told = rf"a master at .* does not see the folder of the cluster, {tmp_path}/shop: with several"
    with pytest.raises(ConfigError, match=told):
        be_master(replace(order, version=__version__), 1, [])
