"""Endpoint: everything for a process in a cluster: a listener, a node, actors."""

from typing import Final

from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.post import Post
from gearpy.config.schema import Config
from gearpy.ids import is_same_node
from gearpy.messages.client import ReplayQuarantined
from gearpy.messages.cluster import (
    ApplicationStatusChanged,
    FindWorkers,
    LastAnswer,
    LaunchExecutor,
    PutValue,
    Quarantine,
    RegisterAppMaster,
    RequestResource,
    ReturnResource,
    ShutdownExecutor,
    WithdrawRequests,
)
from gearpy.transport.api import LinkLost
from gearpy.transport.links.tcp import TcpTransport
from gearpy.transport.loop.loop import LoopThread
from gearpy.transport.security.credentials import Credentials, is_unspecified
from gearpy.wire.connection.keys import CLUSTER, Principal

#: What app masters tell the master and workers.
_OF_APP_MASTERS: Final = (
    RegisterAppMaster,
    RequestResource,
    ReturnResource,
    WithdrawRequests,
    FindWorkers,
    ApplicationStatusChanged,
    PutValue,
    Quarantine,
    ReplayQuarantined,
    LastAnswer,
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
    answered = None
    if isinstance(message, RegisterAppMaster):
        answered = message.app_master
    elif isinstance(message, LaunchExecutor):
        answered = message.reply_to
    return answered is None or is_same_node(answered.node, sender)


class Endpoint:
    """The listener of one process, its node, its actors, and the carrier of their messages.

    Use as a context manager, or call `close`.

    Runs on: any thread but the loop's and those of actors.
    """

    def __init__(
        self, config: Config, credentials: Credentials, *, host: str = "", port: int = 0
    ) -> None:
        self._config = config
        self._credentials = credentials
        self._loop = LoopThread()
        self.transport = self._new_transport(host or config.hostname, port)
        self._loop.start()
        try:
            self.address = self.transport.start()
        except BaseException:
            self._loop.stop()
            raise
        hostname = config.hostname if is_unspecified(host) else host
        self.peers = self.transport.serve_peers(hostname=hostname)
        self.system = ThreadedActorSystem(node=self.peers.node)
        self.post = Post(self.system, self.peers, allow=self._allow)

    @property
    def node(self) -> str:
        return self.peers.node

    def data_transport(self, on_lost: LinkLost) -> TcpTransport:
        return self._new_transport(self._config.hostname, 0, on_lost)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Stop the actors, then everything else; return whether the actors stopped in time.

        What they have told others on their way out is sent.
        """
        in_time = self.system.shutdown(timeout_s)
        self.post.close()
        self.transport.stop()
        self._loop.stop()
        return in_time

    def _allow(self, sender: str, _to: str, message: object) -> bool:
        principal = self.peers.principal_of(sender)
        own = self._credentials.keys.own
        return principal is not None and may_send(principal, sender, message, own=own)

    def _new_transport(self, host: str, port: int, on_lost: LinkLost | None = None) -> TcpTransport:
        return TcpTransport(
            self._credentials,
            host=host,
            port=port,
            listen_host=self._config.listen_host,
            limits=transport_limits(self._config),
            loop=self._loop,
            on_link_lost=on_lost,
        )
