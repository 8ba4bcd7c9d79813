"""MasterDaemon: a master, with all that it needs in a process."""

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from gearpy.actor.api import Ref
from gearpy.clocks import wall_ms
from gearpy.cluster.boot.daemon import MASTER, DaemonExit, RefusalWatch, begin_log, usable
from gearpy.cluster.client.alerting import following
from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.gateway import Gateway
from gearpy.cluster.client.measured import cluster_sample
from gearpy.cluster.host.about import disk_of, this_process
from gearpy.cluster.host.audit import audit_log, note_action
from gearpy.cluster.host.folders import private_folder
from gearpy.cluster.host.logs import LogSettings
from gearpy.cluster.master.actor import MasterActor, MasterMailbox
from gearpy.cluster.master.programs import FindNeeded, NeededPrograms, ProgramSweeper
from gearpy.cluster.master.store import MasterFold
from gearpy.cluster.net.endpoint import Endpoint
from gearpy.config.schema import ArtifactConfig, Config
from gearpy.errors import ActorStopped, AskTimeout, ConfigError, LeadershipLost, MailboxFull
from gearpy.ids import ActorPath
from gearpy.messages.client import GetCluster
from gearpy.messages.cluster import MastersChanged
from gearpy.messages.masters import MasterDisk
from gearpy.messages.metrics import ProcessMetricsData
from gearpy.metrics.process import process_meter
from gearpy.metrics.samples import ClusterSample
from gearpy.storage.artifacts import ArtifactDesk, ArtifactStore
from gearpy.storage.log import FileLog, Log
from gearpy.transport.api import split_address
from gearpy.transport.security.credentials import Credentials

if TYPE_CHECKING:
    from gearpy.cluster.quorum.gateway import MemberGateway
    from gearpy.cluster.quorum.log import ReplicatedLog

_log = logging.getLogger(__name__)

_LOG: Final = "log"
#: The folder, in that of a master, of the log of several.
MEMBER_LOG: Final = "members"


class MasterDaemon:
    """A master: its listener, its log, its artifacts.

    Use as a context manager, or call `close`.

    Runs on: the main thread.

    Args:
        logs: the logger whose lines go into its log file; all, if the process is the master's own.
        joins: it waits until it is made one of several, if its folder is new.
        can_return: workers of a master before, over the same folder, may still be there.
        on_refusal: is told that another one of several masters has another secret. If so many
            have that the rest is no majority, `wait` raises `AuthenticationFailed`.
    """

    def __init__(
        self,
        config: Config,
        *,
        host: str,
        port: int,
        logs: str | None = None,
        joins: bool = False,
        can_return: bool = True,
        on_refusal: Callable[[str], None] = _log.warning,
    ) -> None:
        with ExitStack() as opened:
            endpoint = Endpoint(config, Credentials.of_cluster(config), host=host, port=port)
            opened.callback(endpoint.close)
            self.address = endpoint.address
            name = f"{MASTER}-{split_address(self.address)[1]}.log"
            begin_log(LogSettings.of(config), config, name, opened, logger=logs)
            opened.enter_context(audit_log(config))
            self._exit = DaemonExit()
            self._gauges: Callable[[], dict[str, float]] = dict
            with usable("master.folder"):
                if len(config.cluster.masters) == 1:
                    ask = _begin_alone(config, endpoint, opened, self._exit, can_return=can_return)
                else:
                    gateway = _begin_with_others(config, endpoint, opened, self._exit, joins=joins)
                    ask, self._gauges = gateway.answer, gateway.gauges
                    masters, me = config.cluster.masters, split_address(self.address)
                    watch = RefusalWatch(
                        config,
                        Credentials.of_cluster(config),
                        [each for each in masters if split_address(each) != me],
                        on_refused=self._exit.fail,
                        enough=(len(masters) + 1) // 2,  # The rest is no majority.
                        on_refusal=lambda error: on_refusal(
                            f"one of the masters has another secret: {error}"
                        ),
                        is_over=lambda: bool(gateway.status.leader),
                    )
                    opened.callback(watch.end)
                    watch.begin()
            self.client = ClusterClient(ask)  #: For what is beside it in this process.
            self._opened = opened.pop_all()
        _log.info("master ready at %s", self.address)

    def wait(self) -> None:
        self._exit.wait()

    def sample(self) -> ClusterSample:
        sample = cluster_sample(self.client)
        if sample.processes:
            return sample
        process, gauges = process_meter().sample(), self._gauges()
        own = ProcessMetricsData(name=MASTER, at_ms=wall_ms(), process=process, gauges=gauges)
        return ClusterSample(processes=(own,))

    def close(self) -> None:
        _log.info("the master at %s ends", self.address)
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _begin_alone(
    config: Config, endpoint: Endpoint, opened: ExitStack, exit_: DaemonExit, *, can_return: bool
) -> Callable[[Any], Any]:
    folder = private_folder(Path(config.master.folder), "master.folder")
    if (folder / MEMBER_LOG).exists():
        raise ConfigError(
            f"master.folder {folder} is of one of several masters: name them all in cluster.masters"
        )
    store = ArtifactStore.configured(folder / "artifacts", config.artifact)
    artifacts = ArtifactDesk(store)
    log = FileLog(folder / _LOG)
    opened.callback(log.close)
    opened.callback(endpoint.close)  # Before the log is closed: the actor writes it.
    gateway = _open_gateway(
        config,
        endpoint,
        log,
        artifacts,
        disk=disk_of(folder, _LOG, store),
        opened=opened,
        exit_=exit_,
        can_return=can_return,
    )
    endpoint.transport.serve_control(gateway.answer, gateway.allows)
    _wait_until_it_answers(gateway.answer, exit_)
    _sweep(
        endpoint,
        store,
        lambda after_ms: gateway.ask_master(NeededPrograms(after_ms)),
        config.artifact,
    )
    return gateway.answer


def _sweep(
    endpoint: Endpoint, store: ArtifactStore, find_needed: FindNeeded, config: ArtifactConfig
) -> None:
    endpoint.system.spawn(
        lambda: ProgramSweeper(store, find_needed, keep_hours=config.keep_ended), "programs"
    )


def _wait_until_it_answers(ask: Callable[[Any], Any], exit_: DaemonExit) -> None:
    """Wait until a master has read its log: nobody reads that it is ready before."""
    while not exit_.is_within(0):
        try:
            ask(GetCluster())
        except AskTimeout:
            continue  # The log is long.
        except ActorStopped:
            break
        else:
            return
    exit_.wait()


def _begin_with_others(
    config: Config, endpoint: Endpoint, opened: ExitStack, exit_: DaemonExit, *, joins: bool
) -> "MemberGateway":
    # A master without others, and a worker, need nothing of it.
    from gearpy.cluster.quorum.open import open_member  # noqa: PLC0415

    folder = private_folder(Path(config.master.folder), "master.folder")
    if (folder / _LOG).exists():
        raise ConfigError(
            f"master.folder {folder} is of a master without others: give each of several masters "
            "a new folder"
        )
    leading = _Leading()
    # After the node is closed: what asks others meanwhile hears at once that they are gone.
    opened.callback(leading.close)

    def lead(term: int, log: "ReplicatedLog", artifacts: ArtifactDesk) -> Gateway:
        def tell(masters: tuple[str, ...]) -> None:
            with suppress(MailboxFull):  # All that register are told again.
                endpoint.post.tell(ActorPath("", MASTER), MastersChanged(masters=masters))

        log.on_members = tell
        with leading.entered() as stack:
            return _open_gateway(
                config, endpoint, log, artifacts, opened=stack, exit_=exit_, term=term
            )

    store = ArtifactStore.configured(folder / "artifacts", config.artifact)
    gateway = open_member(
        config,
        endpoint,
        folder / MEMBER_LOG,
        store,
        opened,
        joins=joins,
        machine=MasterFold(),
        lead=lead,
        on_over=exit_.fail,
    )
    exit_.watch(gateway.replica)
    endpoint.transport.serve_control(gateway.answer, gateway.allows)

    def find_needed(ended_after_ms: int) -> Any:
        return gateway.inspect(
            lambda fold: fold.state.needed_programs(ended_after_ms=ended_after_ms)
        )

    _sweep(endpoint, store, find_needed, config.artifact)
    return gateway


class _Leading:
    """The files and services that a master has open while it leads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._is_closed = False

    @contextmanager
    def entered(self) -> Iterator[ExitStack]:
        with self._lock:
            if self._is_closed:
                raise LeadershipLost("this master ends")
            yield self._opened

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._opened.close()


def _open_gateway(
    config: Config,
    endpoint: Endpoint,
    log: Log,
    artifacts: ArtifactDesk,
    *,
    opened: ExitStack,
    exit_: DaemonExit,
    disk: Callable[[], MasterDisk] | None = None,
    term: int = 0,
    can_return: bool = True,
) -> Gateway:
    post = endpoint.post
    master: Ref[MasterMailbox] = endpoint.system.spawn(
        lambda: MasterActor(
            post, log=log, config=config, rng=random.Random(), term=term, can_return=can_return
        ),
        MASTER,
    )
    exit_.watch(master)
    timeout_s = config.masterclient.timeout_s

    def ask(message: object) -> object:
        return gateway.answer(message)

    alerting = following(ask, config)
    folder, logs = config.master.folder, config.log.folder
    gateway = Gateway(
        lambda message: master.ask(message, timeout_s),
        post,
        artifacts=artifacts,
        about=this_process(config, endpoint.address, folder=folder, logs=logs),
        disk=disk,
        admins=config.master.admins,
        alerts=alerting.answer,
        note_action=note_action,
        timeout_s=timeout_s,
    )
    opened.enter_context(alerting)
    return gateway


def address_to_listen(config: Config, *, host: str | None, port: int | None) -> tuple[str, int]:
    """Return where a master listens: at one of ``cluster.masters``, if those were chosen.

    Of several it is the one on this host, ``hostname``, unless something else is said.
    """
    masters = config.cluster.masters
    listed = [split_address(each) for each in masters]
    found = [each for each in listed if host in {None, each[0]} and port in {None, each[1]}]
    if len(found) > 1 and host is None:
        found = [each for each in found if each[0] == config.hostname] or found
    if len(found) == 1:
        return found[0]
    if masters == Config().cluster.masters:  # Nobody has chosen any.
        (default,) = listed
        return host or default[0], default[1] if port is None else port
    wanted = f"{host or '*'}:{'*' if port is None else port}"
    text = ", ".join(masters)
    if found:
        raise ConfigError(
            f"cluster.masters is {text}: say which one this is, by hostname, or --host and --port"
        )
    raise ConfigError(f"{wanted} is not among cluster.masters, which is {text}: add it everywhere")
