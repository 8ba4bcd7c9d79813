"""What code of users may say to the cluster: of itself, and in its own name."""

import pytest

from gearpy.cluster.net.endpoint import may_send
from gearpy.ids import ActorPath, AppId, ExecutorId, WorkerId
from gearpy.messages.client import Artifact, SubmitApplication
from gearpy.messages.cluster import (
    LaunchExecutor,
    RegisterAppMaster,
    RegisterWorker,
    RequestResource,
    ResourceUpdate,
    ReturnResource,
    ShutdownExecutor,
    WithdrawRequests,
)
from gearpy.wire.connection.keys import CLUSTER, Principal

ONE, TWO = Principal(AppId(1)), Principal(AppId(2))
SENDER = "127.0.0.1:5#00000000000000aa"


def a_launch(app_id: int, node: str) -> LaunchExecutor:
    """Return an order to start an executor, whose answer goes to a node."""
    return LaunchExecutor(
        app_id=AppId(app_id),
        executor_id=ExecutorId(0),
        launch=1,
        app_master=1,
        slots=1,
        name="a",
        artifact=Artifact(kind="memory", location="1"),
        executors=1,
        config={},
        reply_to=ActorPath(node, "boss"),
    )


def a_registration(app_id: int, node: str) -> RegisterAppMaster:
    return RegisterAppMaster(app_id=AppId(app_id), app_master=ActorPath(node, "x"), launch=1)


@pytest.mark.parametrize(
    ("message", "allowed"),
    [
        (a_launch(1, SENDER), True),
        (a_launch(2, SENDER), False),
        (a_launch(1, "127.0.0.1:5#00000000000000bb"), False),
        (a_registration(1, SENDER), True),
        (a_registration(1, "127.0.0.1:6#00000000000000bb"), False),
        (RequestResource(app_id=AppId(1), launch=1, slots=1, executors=1), True),
        (RequestResource(app_id=AppId(2), launch=1, slots=1, executors=1), False),
        (ReturnResource(app_id=AppId(1), launch=1, worker_id=WorkerId(0), slots=1), True),
        (ReturnResource(app_id=AppId(2), launch=1, worker_id=WorkerId(0), slots=1), False),
        (WithdrawRequests(app_id=AppId(1), launch=1), True),
        (WithdrawRequests(app_id=AppId(2), launch=1), False),
        (ShutdownExecutor(app_id=AppId(2), executor_id=ExecutorId(0), launch=1, reason=""), False),
        (ResourceUpdate(worker_id=WorkerId(0), running=()), False),
        (RegisterWorker(worker=ActorPath(SENDER, "w"), slots=9), False),
        (SubmitApplication(name="a", artifact=Artifact(kind="file", location="/etc/x.py")), False),
    ],
)
def test_an_application_speaks_of_itself_only(message: object, *, allowed: bool) -> None:
    assert may_send(ONE, SENDER, message, own=CLUSTER) is allowed


def test_processes_of_an_application_say_what_they_want_to_each_other() -> None:
    message = RegisterWorker(worker=ActorPath(SENDER, "w"), slots=9)

    assert may_send(ONE, SENDER, message, own=ONE)
    assert not may_send(TWO, SENDER, message, own=ONE)


@pytest.mark.parametrize("own", [CLUSTER, ONE])
def test_the_cluster_may_say_everything(own: Principal) -> None:
    message = RegisterWorker(worker=ActorPath(SENDER, "w"), slots=9)

    assert may_send(CLUSTER, SENDER, message, own=own)
