"""Masters of two versions of gearpy, in the course of an upgrade."""

from collections.abc import Iterator

import msgspec
import pytest

from gearpy.core.base.versions import MASTERS
from gearpy.core.consensus.stored import decode_write
from gearpy.messages.client import Artifact, ListApplications, SubmitApplication, Submitted
from gearpy.messages.versions import KnownVersions
from gearpy.storage.log import MemoryLog
from tests.world.cluster import ClusterSimulation
from tests.world.masters import SimulatedMasters

_OLD, _NEW = KnownVersions(1), KnownVersions(2)
_RECORD = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])
_COMMAND = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw])
_COMMANDS = msgspec.msgpack.Decoder(tuple[bytes, ...])


@pytest.fixture(autouse=True)
def _is_new(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have this gearpy know a version 2, with which the one before knows nothing to do."""
    msgspec.structs.force_setattr(MASTERS, "newest", 2)
    monkeypatch.setattr(SimulatedMasters, "versions", {})
    yield
    msgspec.structs.force_setattr(MASTERS, "newest", 1)


def submit(cluster: ClusterSimulation, name: str) -> None:
    """Submit an application, and wait until all masters have it on their disks."""
    assert cluster.several is not None
    artifact = Artifact(kind="memory", location="1")
    config = {"application.hosts": "nowhere"}
    message = SubmitApplication(name=name, artifact=artifact, config=config)
    assert isinstance(cluster.several.ask(message), Submitted)
    cluster.world.run(lambda: False, within_ms=1000)


def versions_of(log: MemoryLog) -> list[int]:
    """Return the versions of all commands in the log of a master, oldest first."""
    _, records = log.replay()
    entries = [entry for each in records for entry in decode_write(each).entries]
    commands = [
        each for entry in entries if entry.command for each in _COMMANDS.decode(entry.command)
    ]
    return [_COMMAND.decode(each)[0] for each in commands]


def versions_of_records(log: MemoryLog) -> list[int]:
    """Return the versions of all writes to the disk of a master, oldest first."""
    return [_RECORD.decode(each)[0] for each in log.replay().records]


@pytest.mark.parametrize("old", range(3))
def test_log_is_written_in_the_version_of_the_oldest_master(old: int) -> None:
    address = f"master{old}:1"
    SimulatedMasters.versions.update({f"master{each}:1": _NEW for each in range(3)})
    SimulatedMasters.versions[address] = _OLD
    cluster = ClusterSimulation(old, masters=3)
    masters = cluster.several
    assert masters is not None
    for name in ("a", "b"):
        submit(cluster, name)

    for log in masters.logs:
        assert set(versions_of(log)) == {1}
        assert set(versions_of_records(log)) == {1}

    SimulatedMasters.versions[address] = _NEW
    cluster.kill(masters.processes[old])
    masters.start_dead()
    cluster.world.run(lambda: False, within_ms=5000)
    for name in ("c", "d"):
        submit(cluster, name)

    for log in masters.logs:
        assert versions_of(log)[-1] == 2
        assert sorted(versions_of(log)) == versions_of(log)
    leader = masters.processes.index(masters.leader)
    assert versions_of_records(masters.logs[leader])[-1] == 2
    known = masters.ask(ListApplications()).applications
    assert {each.name for each in known} == {"a", "b", "c", "d"}
    assert not masters.problems


def test_master_that_is_two_versions_behind_is_not_listened_to() -> None:
    """The others go on without it, and it hears nothing that it would misread."""
    msgspec.structs.force_setattr(MASTERS, "newest", 3)
    SimulatedMasters.versions.update({f"master{each}:1": KnownVersions(3) for each in range(3)})
    SimulatedMasters.versions["master2:1"] = _OLD
    cluster = ClusterSimulation(1, masters=3)
    assert cluster.several is not None

    submit(cluster, "a")

    *others, behind = cluster.several.logs
    assert [len(versions_of(each)) > 0 for each in others] == [True, True]
    assert versions_of(behind) == []
