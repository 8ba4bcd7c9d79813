"""What the leader tells of the disks of all masters."""

from typing import Any

from gearpy.cluster.quorum.disks import MemberDisks
from gearpy.errors import ConnectionLost
from gearpy.messages.client import Refused
from gearpy.messages.masters import GetMasterDisk, MasterDisk, MasterList, MasterSummary


def a_disk(programs: int) -> MasterDisk:
    return MasterDisk(
        version="0.1.0",
        started_ms=1,
        folder="/m",
        log_bytes=2,
        snapshot_ms=0,
        programs=programs,
        programs_bytes=3,
        quota_bytes=4,
        free_bytes=5,
    )


def test_each_master_tells_of_its_own_disk_and_one_that_does_not_hides_nobody() -> None:
    asked: list[str] = []

    def ask(address: str, message: Any) -> object:
        assert message == GetMasterDisk()
        asked.append(address)
        if address == "dead":
            raise ConnectionLost("gone meanwhile")
        return Refused(reason="an older version") if address == "old" else a_disk(2)

    roles = {"me": "leader", "other": "follower", "dead": "follower", "old": "follower"}
    masters = [
        *(MasterSummary(address=each, role=role) for each, role in roles.items()),  # type: ignore[arg-type]
        MasterSummary(address="frozen", role="away"),
    ]
    found = MemberDisks(lambda: a_disk(1), ask).added(MasterList(masters=tuple(masters), term=3))

    disks = {each.address: each.disk for each in found.masters}
    assert disks == {"me": a_disk(1), "other": a_disk(2), "dead": None, "old": None, "frozen": None}
    assert sorted(asked) == ["dead", "old", "other"]
    assert found.term == 3
