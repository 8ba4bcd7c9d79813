"""Opens a master's part in the log of all: its disk, its actor, and the gateway for clients."""

import random
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from gearpy.cluster.client.client import user_at_hand
from gearpy.cluster.client.gateway import Gateway
from gearpy.cluster.host.about import disk_of
from gearpy.cluster.net.endpoint import Endpoint
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.quorum.disks import DiskBook, MemberDisks
from gearpy.cluster.quorum.gateway import MemberGateway
from gearpy.cluster.quorum.log import ReplicatedLog, StateMachine, ask_replica
from gearpy.cluster.quorum.member import REPLICA, ReplicaActor
from gearpy.cluster.quorum.spread import ProgramSpread
from gearpy.config.schema import Config
from gearpy.core.consensus.stored import StoredLog
from gearpy.errors import ConfigError, LeadershipLost
from gearpy.storage.artifacts import ArtifactDesk, ArtifactStore
from gearpy.storage.folder.local import LocalFolder
from gearpy.storage.log import FileLog
from gearpy.storage.replica_store import ReplicaStore
from gearpy.transport.api import split_address
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.credentials import Credentials

_LOOK_S: Final = 3.0  # For what another master has on its disk.
#: Opens what a leader needs, and returns what answers clients then.
Lead: TypeAlias = Callable[[int, ReplicatedLog, ArtifactDesk], Gateway]


def open_member(
    config: Config,
    endpoint: Endpoint,
    folder: Path,
    artifacts: ArtifactStore,
    opened: ExitStack,
    *,
    joins: bool,
    machine: StateMachine,
    lead: Lead,
    on_over: Callable[[LeadershipLost], None],
) -> MemberGateway:
    """Begin as one of the masters that the configuration names.

    With a new folder it is one of all that are named; one that ``joins`` waits to be added.
    """
    masters = config.cluster.masters
    own = split_address(endpoint.address)
    me = next((each for each in masters if split_address(each) == own), "")
    if not me:
        named = ", ".join(masters)
        raise ConfigError(f"{endpoint.address} is not among cluster.masters, which is {named}")
    where = LocalFolder(folder, private=True)
    log = FileLog(where)
    opened.callback(log.close)
    store = ReplicaStore(log, StoredLog.of_members(*(() if joins else masters)))
    disks = DiskBook(where, is_new=store.stored.term == 0)
    timeout_s = config.masterclient.timeout_s
    credentials = Credentials.of_cluster(config)
    spread = ProgramSpread(
        artifacts,
        lambda: [each for each in gateway.status.members if each != me],
        partial(_ask, config, credentials, timeout_s),
        timeout_s=timeout_s / 2,
    )
    opened.callback(spread.close)
    opened.callback(endpoint.close)  # Before the log is closed: the actor writes it.
    system = endpoint.system
    artifact_desk = ArtifactDesk(artifacts, spread.refusal_of)
    gateway = MemberGateway(
        artifact_desk,
        lambda make: ask_replica(gateway.replica, system, make, timeout_s),
        disks=MemberDisks(
            disk_of(folder.parent, folder.name, artifacts),
            partial(_ask, config, credentials, min(timeout_s, _LOOK_S)),
        ),
        admins={*config.master.admins, user_at_hand()} - {""},
    )
    gateway.replica = system.spawn(
        lambda: ReplicaActor(
            me,
            store,
            endpoint.post,
            machine,
            disks=disks,
            rng=random.Random(),
            on_status=gateway.on_status,
            lead=lambda term, log: gateway.lead(lead(term, log, artifact_desk)),
            on_over=on_over,
        ),
        REPLICA,
    )
    return gateway


def _ask(
    config: Config, credentials: Credentials, timeout_s: float, address: str, message: Any
) -> Any:
    with ControlClient(address, credentials, transport_limits(config)) as client:
        return client.ask(message, timeout_s)
