"""Masters in virtual time, one of which is started over an older copy of its folder."""

import pytest

from gearpy.errors import ConfigError
from gearpy.messages.client import (
    Artifact,
    Asker,
    ChangeMasters,
    ListApplications,
    Refused,
    SubmitApplication,
    Submitted,
)
from gearpy.messages.masters import GetMasters, MasterSummary
from gearpy.storage.folder.memory import MemoryFolder
from tests.world.cluster import ClusterSimulation
from tests.world.masters import SimulatedMasters


class Scene:
    def __init__(self) -> None:
        self.cluster = ClusterSimulation(1, masters=3)
        masters = self.cluster.several
        assert masters is not None
        self.masters: SimulatedMasters = masters

    def submit(self, name: str) -> None:
        """Submit an application, and wait until all masters have it on their disks."""
        artifact = Artifact(kind="memory", location="1")
        config = {"application.hosts": "nowhere"}
        message = SubmitApplication(name=name, artifact=artifact, config=config)
        assert isinstance(self.masters.ask(message), Submitted)
        self.wait()

    def wait(self) -> None:
        self.cluster.world.run(lambda: False, within_ms=1000)

    def seen(self, number: int) -> MasterSummary:
        """Return how the leader sees a master."""
        found: tuple[MasterSummary, ...] = self.masters.ask(GetMasters()).masters
        return {each.address: each for each in found}[self.masters.addresses[number]]

    def remove(self, number: int) -> object:
        address = self.masters.addresses[number]
        by = Asker(user="ada", is_admin=True)
        return self.masters.ask(ChangeMasters(change="remove", address=address, by=by))

    def put_back(self, number: int, copy: MemoryFolder) -> None:
        self.masters.put_back(number, copy)
        self.wait()
        self.wait()


def copied(folder: MemoryFolder) -> MemoryFolder:
    """Return a folder with the same files."""
    copy = MemoryFolder()
    for name in folder.names():
        data = folder.read(name)
        assert data is not None
        copy.put(name, data)
    return copy


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_master_over_an_older_copy_of_its_folder_ends_and_says_so(*, is_leader: bool) -> None:
    """Also one that led: another one leads now, and has heard from it what it had."""
    scene = Scene()
    masters = scene.masters
    scene.submit("a")
    leader = masters.processes.index(masters.leader)
    number = leader if is_leader else (leader + 1) % 3
    copy = copied(masters.logs[number].folder)
    scene.submit("b")
    newest = copied(masters.logs[number].folder)
    scene.cluster.kill(masters.processes[number])
    scene.submit("c")

    scene.put_back(number, copy)

    (problem,) = masters.problems
    assert "is an older copy" in problem
    assert f"gear master remove {masters.addresses[number]}" in problem
    assert scene.seen(number).has_older_copy
    with pytest.raises(ConfigError, match="is an older copy"):
        masters.put_back(number, copied(copy))
    known = masters.ask(ListApplications()).applications
    assert {each.name for each in known} == {"a", "b", "c"}

    scene.put_back(number, newest)

    assert len(masters.problems) == 1
    assert not scene.seen(number).has_older_copy
    assert scene.seen(number).behind == 0


def test_no_master_is_removed_whom_the_others_need() -> None:
    """Nobody could agree to it, and nobody would lead; the one that is lost is named."""
    scene = Scene()
    masters = scene.masters
    scene.submit("a")
    leader = masters.processes.index(masters.leader)
    lost, other = (leader + 1) % 3, (leader + 2) % 3
    scene.cluster.kill(masters.processes[lost])
    scene.wait()
    scene.wait()

    refused = scene.remove(other)
    assert isinstance(refused, Refused)
    assert f"as {masters.addresses[lost]} cannot agree" in refused.reason

    assert not isinstance(scene.remove(lost), Refused)
    assert not isinstance(scene.remove(other), Refused)
    assert len(masters.ask(GetMasters()).masters) == 1
