"""Checkpoint files that are read through a cluster are those of the store."""

from typing import Any

import pytest

from gearpy.cluster.checkpoints.remote import RemoteCheckpoints, StoreReader
from gearpy.errors import ConfigError, SnapshotDamaged, SubmitRefused
from gearpy.ids import AppId
from gearpy.messages.client import EpochList, GetEpochs, Refused
from gearpy.messages.question import answer_of
from gearpy.storage.checkpoints import MemoryCheckpoints

APP = AppId(3)


@pytest.fixture
def store() -> MemoryCheckpoints:
    return MemoryCheckpoints()


@pytest.fixture
def remote(store: MemoryCheckpoints) -> RemoteCheckpoints:
    def cluster(message: object) -> object:
        assert message == GetEpochs(app_id=APP)
        return EpochList(app_id=APP, epochs=(), place="memory", prefix="k/app3")

    return RemoteCheckpoints(asking(StoreReader(cluster, store)), APP, "memory")


def asking(reader: StoreReader) -> Any:
    """Ask as a client does: a refusal is raised."""

    def ask(message: Any) -> object:
        answer = reader.answer(message)
        if isinstance(answer, Refused):
            raise SubmitRefused(answer.reason)
        assert isinstance(answer, answer_of(type(message)))
        return answer

    return ask


@pytest.mark.parametrize("size", [0, 1, 512 * 1024 - 1, 512 * 1024, 2 * 512 * 1024 + 7])
def test_a_file_comes_whole(store: MemoryCheckpoints, remote: RemoteCheckpoints, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    stored = store.save("k/app3/file", [data])

    assert remote.load("k/app3/file", stored.sha256) == data
    assert remote.open("k/app3/file").read() == data
    assert remote.names("k/app3") == store.names("k/app3") == ["k/app3/file"]


def test_what_is_gone_or_wrong_is_damaged(
    store: MemoryCheckpoints, remote: RemoteCheckpoints
) -> None:
    store.save("k/app3/file", [b"other"])

    with pytest.raises(SnapshotDamaged, match="it is not there"):
        remote.load("k/app3/gone")
    with pytest.raises(SnapshotDamaged, match="it is not what was stored"):
        remote.load("k/app3/file", "0" * 64)


def test_it_is_only_read(remote: RemoteCheckpoints) -> None:
    for change in (lambda: remote.save("k/new", [b""]), lambda: remote.drop("k/new")):
        with pytest.raises(ConfigError, match="only read: change it where the store is seen"):
            change()
    with pytest.raises(SubmitRefused, match="is not allowed"):
        remote.names("../etc")


def test_a_master_that_does_not_see_the_store_says_so() -> None:
    nowhere = EpochList(app_id=APP, epochs=(), place="/nowhere/at/all", prefix="k/app3")
    blind = RemoteCheckpoints(asking(StoreReader(lambda _: nowhere)), APP, nowhere.place)
    unknown = StoreReader(lambda _: Refused(reason="no application has id 3"))

    with pytest.raises(SubmitRefused, match="cannot read this: checkpoint store /nowhere/at/all"):
        blind.names("k/app3")
    with pytest.raises(SubmitRefused, match="no application has id 3"):
        RemoteCheckpoints(asking(unknown), APP, "").names("k/app3")
