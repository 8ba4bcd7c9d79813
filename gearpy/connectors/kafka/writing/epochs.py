"""The thread that sends complete epochs to Kafka, one transaction for each."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gearpy.clocks import monotonic_ms
from gearpy.connectors.kafka.writing.lane import TransactionLane, TransactionTrouble
from gearpy.connectors.kafka.writing.outgoing import OutgoingEpoch
from gearpy.core.handover.handoff import Pause
from gearpy.core.handover.transactions import EpochTransactions, Open, ReadMarker, Refuse, Write
from gearpy.errors import OperatorError

_log = logging.getLogger(__name__)

#: The stream waits while so many complete epochs, of so many bytes, are not in Kafka: each
#: checkpoint has all of them.
_WAITING_EPOCHS_MAX: Final = 2
_WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
_CLOSE_S: Final = 5.0  # A transaction that is under way may take so long.
_TROUBLES_TOLD: Final = 3  # One that passes at once need not be told of.
#: The way to give a run transactional ids of its own.
_APART: Final = (
    "give its kafka_sink another name= and resume it; on a cluster "
    "'gear app submit --from-checkpoint' does it without that"
)
#: Reasons to refuse; see `gearpy.core.handover.transactions.Refuse`.
_CAUSES: Final = {
    "given-up": (
        "a later start of this task, or another run of {app!r}, writes with the same transactional "
        "id {lane}: that one goes on, and this one ends. A run and a copy of its folder or "
        "checkpoint cannot both write: for one of them, {apart}"
    ),
    "ahead": (
        "{lane} has committed epochs up to {epoch}, and the application goes on from an earlier "
        "one, or from a copy of its folder or checkpoint: their records would come twice; Kafka "
        "takes nothing back. To write them all the same, {apart}"
    ),
    "forgotten": (
        "the marker of {lane} is gone, or is that of epoch {epoch}, and newer epochs were "
        "committed: nobody can tell whether the last one was. The topic of markers was removed or "
        "emptied: bring it back, or begin a new run"
    ),
}


@dataclass(frozen=True, slots=True)
class LanePlan:
    """A transactional id, the decision about it, and the records of its epochs."""

    lane: TransactionLane
    transactions: EpochTransactions
    records: dict[int, OutgoingEpoch]


class EpochSender:
    """Sends epochs, as `EpochTransactions` decides.

    Runs on: a thread of its own, since brokers may be away for long. All methods may be called on
    any other one, and never wait for the brokers; `close` waits for some seconds.
    Restart: another one goes on from a checkpoint, in any process; the brokers see to it that this
    one is not heard any more.

    Args:
        earlier: plans of earlier runs, which are settled first.
        prepare: called on the thread before it has room, and after trouble with the topics of the
            records that wait.
        wake: called when an answer has changed.
    """

    def __init__(
        self,
        operator: str,
        *,
        app: str,
        earlier: Sequence[LanePlan],
        plan: LanePlan,
        prepare: Callable[[Collection[str]], object],
        wake: Callable[[], object],
    ) -> None:
        self._operator = operator
        self._app = app
        self._plans = [*earlier, plan]
        self._plan = plan
        self._at = self._plans[0]
        self._prepare = prepare
        self._wake = wake
        self._changed = threading.Condition()
        self._new: list[tuple[int, OutgoingEpoch]] = []
        self._waiting_bytes = sum(
            each.size_bytes for plan in self._plans for each in plan.records.values()
        )
        self._is_prepared = False
        self._is_closed = False
        self._troubles = 0
        self.trouble = ""  #: The last one, while it lasts.
        self.failure: BaseException | None = None  #: Why it has ended.
        self._thread = threading.Thread(target=self._run, name=f"kafka-{operator}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def on_complete(self, epoch: int, records: OutgoingEpoch) -> None:
        with self._changed:
            self._new.append((epoch, records))
            self._waiting_bytes += records.size_bytes
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)

    # -- questions -------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        waiting = len(self._new) + len(self._plan.records)
        return self._is_prepared and (self.has_little or waiting < _WAITING_EPOCHS_MAX)

    @property
    def has_little(self) -> bool:
        return self._waiting_bytes < _WAITING_BYTES_MAX

    @property
    def is_delivered(self) -> bool:
        with self._changed:
            return not self._new and not any(plan.records for plan in self._plans)

    @property
    def waits_for(self) -> str:
        return self._at.lane.state.waits_for or self.trouble

    def kept(self) -> Sequence[tuple[str, int, Mapping[int, OutgoingEpoch]]]:
        """Return ids, the newest epoch of each that is sent, and epochs that may not be."""
        with self._changed:
            own = self._plan
            earlier = [plan for plan in self._plans if plan is not own and plan.records]
            kept = [(each, dict(each.records)) for each in earlier]
            kept.append((own, {**own.records, **dict(self._new)}))
        return [(each.lane.lane_id, each.transactions.written, records) for each, records in kept]

    # -- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            for plan in self._plans:
                self._at = plan
                self._settle(plan)
        except BaseException as error:  # noqa: BLE001 - the task raises it
            if not self._is_closed:
                self.failure = error
                _log.warning("%s sends nothing more: %s", self._operator, error)
                self._wake()
        finally:
            for plan in self._plans:
                plan.lane.abort()

    def _settle(self, plan: LanePlan) -> None:
        """Do what is decided for one id; for this run's own, until it is closed."""
        own = plan is self._plan
        while not self._is_closed and (own or not plan.transactions.is_settled):
            if own:
                with self._changed:
                    new, self._new = self._new, []
                    for epoch, records in new:
                        plan.records[epoch] = records
                        plan.transactions.on_complete(epoch)
            step = plan.transactions.next(monotonic_ms())
            try:
                self._do(plan, step)
            except TransactionTrouble as error:
                self._troubles += 1
                self.trouble = f"kafka: {error}"
                level = logging.WARNING if self._troubles >= _TROUBLES_TOLD else logging.INFO
                _log.log(level, "%s begins its transaction anew: %s", self._operator, error)
                self._wake()
                plan.transactions.on_failed(monotonic_ms())
        if not own:
            plan.lane.drop()

    def _do(self, plan: LanePlan, step: Open | ReadMarker | Write | Pause | Refuse) -> None:
        match step:
            case Open():
                plan.lane.open()
                plan.transactions.on_opened()
                # Nobody waits any more for transactions that an earlier start left open. After
                # trouble topics are asked for once more, as one may be gone.
                if not self._is_prepared or self._troubles:
                    waiting = self._plan.records.values() if self._troubles else ()
                    self._prepare({topic for records in waiting for topic in records.topics})
                    self._is_prepared = True
                    self._wake()
            case ReadMarker():
                plan.transactions.on_marker(plan.lane.look())
                self._forget_sent(plan)
            case Write(epoch, marker):
                plan.lane.write(None if epoch is None else plan.records[epoch], marker)
                plan.transactions.on_written(step)
                self._forget_sent(plan)
                self._troubles, self.trouble = 0, ""
            case Pause(until_ms):
                with self._changed:
                    if not (self._is_closed or (until_ms is None and self._new)):
                        left_s = None if until_ms is None else (until_ms - monotonic_ms()) / 1000
                        self._changed.wait(left_s)
            case Refuse(because, marker):
                cause = _CAUSES[because].format(
                    lane=plan.lane.lane_id, app=self._app, epoch=marker.committed, apart=_APART
                )
                raise OperatorError(operator=self._operator, cause=cause, is_final=True)

    def _forget_sent(self, plan: LanePlan) -> None:
        with self._changed:
            for epoch in plan.records.keys() - set(plan.transactions.waiting):
                self._waiting_bytes -= plan.records.pop(epoch).size_bytes
        self._wake()
