"""GuestMasters: three masters in tasks of Spark, as their driver sees them."""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, assert_never

from pyspark.sql import SparkSession

from gearpy.cluster.boot.master import MEMBER_LOG, MasterDaemon
from gearpy.cluster.boot.remote import RemoteCluster
from gearpy.cluster.host.folders import TemporaryFolder
from gearpy.cluster.quorum.relocation import check_logs, move_logs
from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, ConnectionLost, GearpyError, LeadershipLost
from gearpy.messages.masters import GetMasters
from gearpy.spark.guest.jobs import GuestJobs, LeavingTasks
from gearpy.spark.guest.order import MasterOrder, make_certificate, master_config, seat_folder
from gearpy.spark.guest.room import too_few
from gearpy.spark.guest.seat_notes import NUMBERS, SeatNotes, SeatOrder
from gearpy.spark.guest.seats import BeginAll, EndTask, MasterSeats, Replace, Seated
from gearpy.spark.guest.task import TaskTie, address_towards, begin_task, task_number
from gearpy.spark.sessions.sessions import is_alive

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.2


class GuestMasters:
    """Starts three masters inside Spark, and replaces lost ones, until `close`.

    Runs on: a thread of its own, from `start` on.

    Args:
        on_members: is told the addresses of all when they have changed, and whether all masters
            have begun anew, so that nobody can hear it from one of them.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: Config,
        order: MasterOrder,
        on_members: Callable[[tuple[str, ...], bool], object],
    ) -> None:
        self._spark, self._config, self._on_members = spark, config, on_members
        self._folder = Path(order.folder)
        self._logs = [seat_folder(self._folder, number) / MEMBER_LOG for number in NUMBERS]
        self._notes = SeatNotes(self._folder)
        self._notes.clear()
        is_spread = not (spark.sparkContext.master or "").startswith("local[")
        self._seats = MasterSeats(NUMBERS, is_spread=is_spread)
        self._leaving = LeavingTasks(spark)
        self._jobs = GuestJobs(spark, "master", lambda number: partial(be_master, order, number))
        self._failure: GearpyError | OSError | None = None  # The last look may have failed.
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._tend, name="gearpy-masters", daemon=True)

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._seats.addresses

    def start(self, timeout_s: float) -> None:
        """Start all, and wait until one of them leads; `close` it also if that fails.

        Raises:
            ConfigError: Spark has no room for them, they cannot run there, or their logs are lost.
        """
        check_logs(self._logs)
        self._jobs.resize(len(NUMBERS))
        until_s = time.monotonic() + timeout_s
        while not self._is_led():
            if not is_alive(self._spark):
                raise ConnectionLost("Spark was stopped while a cluster of gearpy started in it")
            if self._jobs.failure:
                raise ConfigError(f"a master could not start inside Spark: {self._jobs.failure}")
            if time.monotonic() > until_s:
                has = {"workers": len(NUMBERS), "cores": 1, "came": len(self._notes.come())}
                few = too_few(**has, within_s=timeout_s)
                raise self._failure or ConfigError(f"of masters, {few}")
            time.sleep(_LOOK_S)
            self._try_to_look()
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        self._jobs.close()

    def _is_led(self) -> bool:
        with suppress(GearpyError), self._client() as client:
            client.ask(GetMasters())
            return True
        return False

    def _client(self) -> RemoteCluster:
        masters = ",".join(self.addresses)
        if not masters:
            raise ConnectionLost("no master has come yet")
        config = from_overrides({**as_overrides(self._config), "cluster.masters": masters})
        return RemoteCluster(config.cluster.masters, config)

    def _tend(self) -> None:
        while not self._end.wait(_LOOK_S):
            self._try_to_look()

    def _try_to_look(self) -> None:
        """Look, and keep the error if it was in vain: a master of before may end yet."""
        self._failure = None
        try:
            come = self._notes.come()
            leaving = {each for each, seated in come.items() if self._leaving.has(seated.task)}
            for decision in self._seats.on_look(come, leaving):
                match decision:
                    case EndTask():
                        if decision.is_waiting:
                            self._notes.order(decision.number, SeatOrder(attempt=decision.attempt))
                        else:
                            self._jobs.begin_again(decision.number)
                    case Replace():
                        self._replace(decision)
                    case BeginAll():
                        self._begin_all(decision)
                    case _:
                        assert_never(decision)
        except (GearpyError, OSError) as error:
            _log.warning("the masters inside Spark: %s", error)
            self._failure = error

    def _begin_all(self, decision: BeginAll) -> None:
        is_again = bool(self.addresses)
        seats = decision.seats
        masters = tuple(seats[number].address for number in sorted(seats))
        move_logs(self._logs, masters)
        for number, seated in seats.items():
            self._notes.order(number, SeatOrder(attempt=seated.attempt, masters=masters))
        self._seats.on_begun(seats)
        self._on_members(masters, is_again)

    def _replace(self, decision: Replace) -> None:
        by, members = decision.by, decision.members
        _log.info("master %s takes the place of one that is lost", by.address)
        order = SeatOrder(attempt=by.attempt, masters=members, joins=True)
        self._notes.order(decision.number, order)
        self._seats.on_told(by)
        with self._client() as client:
            there = {each.address for each in client.ask(GetMasters()).masters}
            for lost in sorted(there - {*members}):
                client.change_masters("remove", lost)
            if by.address not in there:
                client.change_masters("add", by.address)
        self._seats.on_replaced(decision.number, by)
        self._on_members(self.addresses, False)


_ANY_PORT: Final = 1
_POLL_S: Final = 0.05


def be_master(order: MasterOrder, number: int, rows: Iterable[Any]) -> Iterator[Any]:
    """Run the master of a seat until the task is over.

    Raises:
        ConfigError: this machine cannot have a master of that cluster.
        GearpyError: why the master has ended.
    """
    begin_task(order, rows)
    if not Path(order.folder).is_dir():
        raise ConfigError(
            f"a master at {socket.gethostname()} does not see the folder of the cluster, "
            f"{Path(order.folder).parent}: with several masters it has to be one that all "
            "machines see, such as a mounted one"
        )
    with ExitStack() as opened:
        # A master has its promises on disk, so it may end at any moment.
        opened.enter_context(TaskTie(lambda: None))
        temporary = TemporaryFolder()
        opened.callback(temporary.remove)
        notes = SeatNotes(Path(order.folder))
        host = address_towards(from_overrides(order.config).hostname, _ANY_PORT)
        with socket.create_server((host, 0)) as free:
            port = free.getsockname()[1]
        address, attempt = f"{host}:{port}", uuid.uuid4().hex
        notes.tell(number, Seated(address, attempt, executor=_executor(), task=task_number()))
        while (told := notes.order_of(number, attempt)) is None:
            time.sleep(_POLL_S)
        if not told.masters:
            return iter(())

        folder = temporary.path
        if order.authority is not None:
            make_certificate(folder / "certs", order.authority, host)
        secret = folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(order.secret.hex())
        config = master_config(
            order, number=number, folder=folder, address=address, masters=told.masters
        )
        while True:
            with (
                suppress(LeadershipLost),  # Begin anew: as another node, which does not lead.
                MasterDaemon(
                    config, host=host, port=port, logs="gearpy", joins=told.joins
                ) as master,
            ):
                _log.info("a master of seat %s listens at %s", config.master.folder, master.address)
                master.wait()
                return iter(())


def _executor() -> str:
    """Return a name for the executor of Spark: it has forked the one that has forked this one."""
    with suppress(OSError, ValueError, IndexError):
        of_parent = Path(f"/proc/{os.getppid()}/stat").read_text()
        return f"{socket.gethostname()}-{of_parent.rpartition(')')[2].split()[1]}"
    return ""
