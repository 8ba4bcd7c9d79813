"""Writers of a Kafka sink: one sends records when their epoch is complete, one sends at once."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from gearpy.clocks import wall_ms
from gearpy.connectors.kafka.client import ClientState, failure, make_producer
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.connectors.kafka.writing.epochs import EpochSender, LanePlan
from gearpy.connectors.kafka.writing.lane import TransactionLane, batch_settings, hand_over
from gearpy.connectors.kafka.writing.outgoing import Addressed, Outgoing, OutgoingEpoch, RecordForm
from gearpy.connectors.kafka.writing.topics import SinkTopics
from gearpy.core.handover.ledger import LATEST
from gearpy.core.handover.transactions import EpochTransactions
from gearpy.errors import GearpyError, OperatorError
from gearpy.task.api.failure import USER_ERRORS
from gearpy.task.api.interfaces import Batch, PacedWriter, SinkContext

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

_log = logging.getLogger(__name__)

#: So many bytes of one epoch are kept; long before that the epoch is ended.
EPOCH_BYTES_MAX: Final = 256 * 1024 * 1024
_QUEUE_RECORDS: Final = 200_000  # In the client; a batch must fit behind those that wait.
_WAITING_RECORDS_MAX: Final = 50_000
_POLL_S: Final = 0.1
_FLUSH_S: Final = 0.5
_CLOSE_S: Final = 5.0
_SETTLE_S: Final = 10.0  # Then its next start has long begun.
_LANE: Final = "lane"
_RECORDS: Final = "records"
_WRITTEN: Final = "written"
_WAITING: Final = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPlan:
    """The settings of a Kafka sink; ``name`` is its part of transactional ids."""

    name: str
    cluster: KafkaCluster
    form: RecordForm
    marker_topic: str
    settings: Mapping[str, Any]


def _lane_id(plan: SinkPlan, task: int, run: str) -> str:
    return f"gearpy-{run}-{plan.name}-{task}"


def settle_lane(plan: SinkPlan, task: int, run: str) -> None:
    """Abort the open transaction of a task that is gone, if the brokers answer soon.

    Its next start would do so, after the start of a process. Who goes on with the transactional id
    finds it taken, and opens it again; see `EpochTransactions`.
    """
    until_s = time.monotonic() + _SETTLE_S
    topics = SinkTopics(
        plan.form.operator,
        plan.cluster,
        ClientState(plan.cluster),
        goes_on=lambda: False,  # Nothing is asked about topics.
        prepare=lambda _: None,
    )
    lane = TransactionLane(
        plan.form.operator,
        plan.cluster,
        _lane_id(plan, task, run),
        marker_topic=plan.marker_topic,
        settings=plan.settings,
        topics=topics,
        goes_on=lambda: time.monotonic() < until_s,
    )
    try:
        lane.open()
        _log.info("%s has settled what task %d had open", plan.form.operator, task)
    finally:
        lane.drop()


class _KafkaWriter(PacedWriter):
    """Makes records of results; the brokers may be away when it begins."""

    atomic = True

    def __init__(self, plan: SinkPlan, task: int) -> None:
        self._plan = plan
        self._task = task
        self._form = replace(plan.form, values=plan.form.values.begun())
        self._is_closed = False
        self._addressed: Addressed | None = None  # The records that come next.
        self._wake: Callable[[], object] = lambda: None
        self._app = ""
        self._state = ClientState(plan.cluster)
        self._topics = SinkTopics(
            plan.form.operator,
            plan.cluster,
            self._state,
            goes_on=lambda: not self._is_closed,
            prepare=self._form.values.prepare,
        )

    def begin(self, context: SinkContext) -> None:
        self._wake = context.wake
        self._app = context.app_name
        self._form = replace(self._form, schema=context.schema)

    def expect(self, batch: Batch) -> None:
        if isinstance(self._form.topic, str):
            return  # It is known before there is room.
        with suppress(OperatorError):  # Comes again when they are written.
            self._addressed = self._form.addressed(batch.values)
            self._topics.ask(self._addressed.topics, self._wake)

    def _outgoing(self, batch: Batch) -> Outgoing:
        addressed, self._addressed = self._addressed, None
        if addressed is None or addressed.results is not batch.values:
            addressed = self._form.addressed(batch.values)
        return self._form.outgoing(addressed, batch.timestamps, self._topics.facts, wall_ms())

    def _ask_topics(self, waiting: Collection[str] = ()) -> None:
        fixed = self._form.topic
        for topic in sorted({*((fixed,) if isinstance(fixed, str) else ()), *waiting}):
            if self._topics.knows([topic]):
                self._topics.look_again(topic)
            else:
                self._topics.facts(topic)


class EpochsWriter(_KafkaWriter):
    """Writes the records of an epoch in one transaction, when the epoch is complete.

    Until then they are in memory, and from its end on in the checkpoint. So a transaction can be
    begun anew as often as brokers or tasks fail, and is open for no longer than it takes to send.
    """

    def __init__(self, plan: SinkPlan, task: int) -> None:
        super().__init__(plan, task)
        self._lane_id = ""
        self._open = OutgoingEpoch()
        self._prepared: dict[int, OutgoingEpoch] = {}
        self._kept: Mapping[str, Any] = {}
        self._sender: EpochSender | None = None

    def restore(self, state: Mapping[str, Any] | None) -> None:
        self._kept = state or {_WRITTEN: {}, _WAITING: {}}

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        """Begin to send, first the records that may not have been sent; also for an earlier run."""
        self._lane_id = _lane_id(self._plan, self._task, run)
        waiting: dict[str, dict[int, OutgoingEpoch]] = {self._lane_id: {}}
        for number, plain in sorted({**self._kept[_WAITING], **prepared}.items()):
            waiting.setdefault(plain[_LANE], {})[number] = OutgoingEpoch.decoded(plain[_RECORDS])
        plans = {
            lane_id: self._lane_plan(lane_id, records, epoch=epoch, incarnation=incarnation)
            for lane_id, records in waiting.items()
        }
        own = plans.pop(self._lane_id)
        self._kept = {}
        self._sender = EpochSender(
            self._plan.form.operator,
            app=self._app,
            earlier=[*plans.values()],
            plan=own,
            prepare=self._ask_topics,
            wake=self._wake,
        )
        self._sender.start()

    def _lane_plan(
        self, lane_id: str, records: dict[int, OutgoingEpoch], *, epoch: int, incarnation: int
    ) -> LanePlan:
        is_over = lane_id != self._lane_id
        transactions = EpochTransactions(
            incarnation=LATEST if is_over else incarnation,
            epoch=epoch,
            written=self._kept[_WRITTEN].get(lane_id, 0),
            waiting=records,
            start=uuid4().hex,
            is_over=is_over,
            rng=Random(),
        )
        lane = TransactionLane(
            self._plan.form.operator,
            self._plan.cluster,
            lane_id,
            marker_topic=self._plan.marker_topic,
            settings=self._plan.settings,
            topics=self._topics,
            goes_on=lambda: not self._is_closed,
        )
        return LanePlan(lane, transactions, records)

    def write_batch(self, batch: Batch) -> None:
        if not batch.values:
            return
        made = self._outgoing(batch)
        if self._open.size_bytes + made.size_bytes > EPOCH_BYTES_MAX:
            raise GearpyError(
                f"{self._plan.form.operator}: more than {EPOCH_BYTES_MAX:,} bytes came before "
                "their epoch could end: raise the parallelism, or lower checkpoint.interval-ms"
            )
        self._open.add(made)

    def prepare(self, epoch: int) -> Mapping[str, Any] | None:
        made, self._open = self._open, OutgoingEpoch()
        if not made:
            return None
        self._prepared[epoch] = made
        return {_LANE: self._lane_id, _RECORDS: made.encoded()}

    def commit(self, epoch: int, prepared: Mapping[str, Any]) -> None:
        made = self._prepared.pop(epoch, None) or OutgoingEpoch.decoded(prepared[_RECORDS])
        self._running.on_complete(epoch, made)

    def snapshot(self) -> Mapping[str, Any]:
        kept = self._running.kept()
        return {
            _WRITTEN: {lane_id: written for lane_id, written, _ in kept},
            _WAITING: {
                epoch: {_LANE: lane_id, _RECORDS: records.encoded()}
                for lane_id, _, waiting in kept
                for epoch, records in waiting.items()
            },
        }

    def close(self, *, completed: bool) -> None:
        self._is_closed = True
        self._topics.close()
        if self._sender is not None:
            self._sender.close()

    @property
    def epoch_fill(self) -> float:
        return self._open.size_bytes / EPOCH_BYTES_MAX

    @property
    def has_room(self) -> bool:
        return self._running.has_room and not self._topics.is_asking

    @property
    def may_end_epoch(self) -> bool:
        """Records are stored once, unless they are few."""
        return self._running.has_little

    @property
    def is_delivered(self) -> bool:
        return self._running.is_delivered

    @property
    def failure(self) -> BaseException | None:
        return None if self._sender is None else self._sender.failure

    @property
    def waits_for(self) -> str:
        return self._state.waits_for or self._topics.waits_for or self._running.waits_for

    @property
    def _running(self) -> EpochSender:
        assert self._sender is not None, "recover() comes first"
        return self._sender


class DirectWriter(_KafkaWriter):
    """Sends records at once, by an idempotent producer; all are there before their epoch ends.

    Runs on: the task's thread; one more looks after what the client tells.
    """

    def __init__(self, plan: SinkPlan, task: int) -> None:
        super().__init__(plan, task)
        self._producer: Producer | None = None
        self._batch_bytes = 0
        self._thread = threading.Thread(
            target=self._look_after, name=f"kafka-{plan.form.operator}", daemon=True
        )

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        self._thread.start()

    def write_batch(self, batch: Batch) -> None:
        if not batch.values:
            return
        made = self._outgoing(batch)
        assert self._producer is not None, "it has room"
        if self._topics.batch_bytes_max < self._batch_bytes:
            self._flush()
            self._producer = self._made()
        hand_over(self._producer, made, self._check)

    def prepare(self, epoch: int) -> None:
        self._flush()

    def commit(self, epoch: int, prepared: None) -> None:
        """Nothing is left to commit."""

    def close(self, *, completed: bool) -> None:
        self._is_closed = True
        self._topics.close()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)
        if self._producer is not None:
            self._producer.purge()

    @property
    def has_room(self) -> bool:
        if self._producer is None or self._failure is not None or self._topics.is_asking:
            return False
        return len(self._producer) < _WAITING_RECORDS_MAX and not self._state.waits_for

    @property
    def may_end_epoch(self) -> bool:
        return self.has_room or self._producer is None or len(self._producer) == 0

    @property
    def is_delivered(self) -> bool:
        return True

    @property
    def waits_for(self) -> str:
        return self._state.waits_for or self._topics.waits_for

    # -- the client ------------------------------------------------------------------------

    def _made(self) -> "Producer":
        batch = batch_settings(self._topics.batch_bytes_max, self._plan.cluster.settings)
        self._batch_bytes = batch["batch.size"]
        settings = {
            "message.timeout.ms": 0,  # However long brokers are away.
            "queue.buffering.max.messages": _QUEUE_RECORDS,
            **self._plan.settings,
            "enable.idempotence": True,
            "on_delivery": self._on_delivery,
            "delivery.report.only.error": True,
            **batch,
        }
        operator, cluster = self._plan.form.operator, self._plan.cluster
        return make_producer(operator, cluster, self._state, settings)

    def _flush(self) -> None:
        producer = self._producer
        while producer is not None and producer.flush(_FLUSH_S):
            self._check()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._state.check(self._plan.form.operator)
        if self._is_closed:
            raise GearpyError(f"{self._plan.form.operator}: ended while it waited for Kafka")

    def _on_delivery(self, error: "KafkaError", message: "Message") -> None:
        if self._failure is None and not self._is_closed:
            self._failure = failure(self._plan.form.operator, f"topic {message.topic()!r}", error)
            self._wake()

    # -- the thread ------------------------------------------------------------------------

    def _look_after(self) -> None:
        try:
            self._ask_topics()
            self._producer = self._made()
            had_room = False
            while not self._is_closed:
                if self._producer.poll(_POLL_S) == 0 and self._state.waits_for:
                    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra

                    assert self._producer is not None
                    with suppress(KafkaException):
                        self._producer.list_topics(timeout=1.0)
                        self._state.on_answer()
                if self.has_room and not had_room:
                    self._wake()
                had_room = self.has_room
                self._state.check(self._plan.form.operator)
        except USER_ERRORS as error:
            self._failure = self._failure or error
            self._wake()
