"""GuestMasters: three masters in tasks of Spark, as their driver sees them."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, assert_never

from pyspark.sql import SparkSession

from gearpy.cluster.boot.master import MEMBER_LOG
from gearpy.cluster.boot.remote import RemoteCluster
from gearpy.cluster.quorum.relocation import check_logs, move_logs
from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.errors import ConfigError, ConnectionLost, GearpyError
from gearpy.messages.masters import GetMasters
from gearpy.spark.guest.departures import LeavingTasks
from gearpy.spark.guest.jobs import GuestJobs
from gearpy.spark.guest.master_task import be_master
from gearpy.spark.guest.order import MasterOrder, seat_folder
from gearpy.spark.guest.room import too_few
from gearpy.spark.guest.seat_notes import NUMBERS, SeatNotes, SeatOrder
from gearpy.spark.guest.seats import BeginAll, EndTask, MasterSeats, Replace
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
