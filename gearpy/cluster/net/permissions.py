"""Permissions of processes that run code of users: messages that the cluster takes from them."""

from typing import Final

from gearpy.ids import ActorPath, is_same_node
from gearpy.messages.cluster import (
    ApplicationStatusChanged,
    LaunchExecutor,
    PutValue,
    Quarantine,
    RegisterAppMaster,
    RequestResource,
    ReturnResource,
    ShutdownExecutor,
)
from gearpy.wire.connection.keys import CLUSTER, Principal

#: What app masters tell the master and workers.
_OF_APP_MASTERS: Final = (
    RegisterAppMaster,
    RequestResource,
    ReturnResource,
    ApplicationStatusChanged,
    PutValue,
    Quarantine,
    LaunchExecutor,
    ShutdownExecutor,
)


def may_send(principal: Principal, sender: str, message: object, *, own: Principal) -> bool:
    """Tell whether one that has proved to be ``principal`` may send this to ``own``.

    The cluster may say everything, and so may the processes of an application to each other.
    To the cluster an application speaks of itself only, and only has itself answered: else the
    cluster would say to others what they believe it alone.
    """
    if principal in (CLUSTER, own):
        return True
    if own != CLUSTER or not isinstance(message, _OF_APP_MASTERS):
        return False
    if message.app_id != principal.application:
        return False
    return all(is_same_node(path.node, sender) for path in _answered(message))


def _answered(message: object) -> tuple[ActorPath, ...]:
    if isinstance(message, RegisterAppMaster):
        return (message.app_master,)
    return (message.reply_to,) if isinstance(message, LaunchExecutor) else ()
