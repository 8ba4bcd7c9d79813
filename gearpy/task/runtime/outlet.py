"""The output side of a task: partitioning, credit, numbers, watermark and epoch per link."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from gearpy.core.base.copies import ATOMS, own, own_each
from gearpy.core.dag.graph import Meeting
from gearpy.core.flow.link import FlowLimits, Subscription
from gearpy.core.flow.partition import Part, Partitioner
from gearpy.errors import CannotTravel, OperatorError
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.data import (
    NOWHERE,
    Ack,
    AckRequest,
    Batch,
    DataMessage,
    InitialAckRequest,
    LatencyProbe,
    LinkMessage,
    Message,
    Origin,
    estimate_bytes,
)
from gearpy.messages.table import ROWS_PER_CREDIT, Table, has_late, oldest_of
from gearpy.task.api.failure import operator_error
from gearpy.task.api.interfaces import Task
from gearpy.task.api.sides import SidePartitioner
from gearpy.task.chain.chain import check_no_messages
from gearpy.wire.values.payload import encode_value

#: Links that get a probe at a time, or as many bare promises as in the time between two: lest tasks
#: that all talk to each other speak of nothing else.
_LINKS_AT_A_TIME: Final = 16

#: The messages for the tasks of an edge.
_Parts: TypeAlias = "tuple[_EdgeOutput, list[Part]]"


class OutputEdge(Struct, frozen=True, kw_only=True):
    """An edge of the graph as one of its sending tasks sees it.

    Attributes:
        meets: which records of the same source may come to the same tasks by another edge.
    """

    processor: int
    parallelism: int
    partitioner: Partitioner
    meets: Meeting = "none"


class OutputLimits(Struct, frozen=True, kw_only=True):
    """The bounds of one data message, and the time between bare watermarks.

    ``columnar_batch_records`` is the limit of a table, which has one of its own: a step takes it as
    a whole, and the cost hardly grows with its rows.
    """

    flow: FlowLimits
    batch_records: int
    batch_bytes: int
    watermark_interval_ms: int
    columnar_batch_records: int = 65_536


class _Link(Struct):
    """The link to one target task: its counts, and the batch that is being filled for it."""

    target: TaskId
    seq: int = 0
    watermark_ms: int = MIN_MS  #: Last watermark told.
    idle: bool = False  #: Last flag told.
    after_end: int = 0  #: Messages without records since the end was told.
    held: deque[DataMessage] = field(default_factory=deque)  #: Wait for credit.
    probe_ns: int = 0  #: A probe that waits behind them.


class Outlet:
    """Sends the output of a task as far as the targets have room; holds the rest.

    Messages to send are appended to ``outbox`` in the order of each link. The task must not
    go on while `is_blocked`; then it holds at most the output of one step.
    Gearpump: the output side of `TaskActor`.
    """

    def __init__(
        self,
        *,
        task_id: TaskId,
        session: SessionId,
        edges: Sequence[OutputEdge],
        limits: OutputLimits,
        outbox: list[LinkMessage],
        epoch: int,
        operator: str = "",
    ) -> None:
        self._operator = operator
        self.epoch = epoch  #: The epoch of records put out now.
        self._task_id = task_id
        self._session = session
        self._limits = limits
        self._outbox = outbox
        self._edges = [_EdgeOutput(edge, limits) for edge in edges]
        self._shares = len(edges) > 1 or not all(edge.is_unicast for edge in self._edges)
        self._has_sides = any(isinstance(edge.partitioner, SidePartitioner) for edge in edges)
        self._by_target = {
            link.target: (edge, index)
            for edge in self._edges
            for index, link in enumerate(edge.links)
        }
        turns = max(1, -(-len(self._by_target) // _LINKS_AT_A_TIME))
        self._tell_every_ms = limits.watermark_interval_ms * turns
        self.watermark_ms = MIN_MS
        self.idle = False
        self.is_blocked = False
        self._told_ms = 0
        self._dirty = False
        self.bytes_sent = 0
        self._probed = 0  # The link that the next probe begins with.
        self._travels: set[type] = set()  # Types of which a record could be sent.

    def open(self) -> None:
        for target in self._by_target:
            self._outbox.append(InitialAckRequest(self._session, self._task_id, target))

    def forget_order(self) -> None:
        for edge in self._edges:
            edge.is_in_order = False

    def restore(self, watermark_ms: int) -> None:
        self.announce(watermark_ms, idle=False)

    def emit(self, batch: Batch, now_ms: int) -> None:
        """Send at least one record to every processor behind; if a partitioner raises, to none."""
        values, timestamps = batch.values, batch.timestamps
        if type(values) is list and type(values[0]) not in self._travels and self._edges:
            # Refuse records that could not go to another process, also within this one.
            check_no_messages(self._operator, values, timestamps)
            for value, event_time_ms in zip(values, timestamps, strict=True):
                if type(value) not in self._travels:
                    try:
                        encode_value(value, where="a record")
                    except CannotTravel as error:
                        raise operator_error(
                            self._operator, error, record=value, event_time_ms=int(event_time_ms)
                        ) from error
                    self._travels.add(type(value))
        sender = self._task_id.task_index
        parts = []
        for edge in self._edges:
            if edge.is_whole:
                parts.append((edge, [(0, values, timestamps)]))
                continue
            split, parallelism = edge.partitioner.partition, len(edge.links)
            of_edge = split(values, timestamps, parallelism=parallelism, sender=sender)
            parts.append((edge, of_edge))
        if self._shares and type(values) is not Table:
            parts = _unshared(parts, has_sides=self._has_sides)
        is_late = batch.has_late and has_late(timestamps)
        for edge, parts_of_edge in parts:
            told = edge.told(batch.origin)
            for index, part, times in parts_of_edge:
                count, size_bytes = len(part), estimate_bytes(part)
                whole = Batch(part, times, is_late, told)
                message = self._message(edge.links[index], whole, size_bytes)
                is_table, limits = type(part) is Table, self._limits
                limit = limits.columnar_batch_records if is_table else limits.batch_records
                step = min(limit, max(1, limits.batch_bytes * count // max(size_bytes, 1)))
                if count <= step:
                    self._offer(edge, index, message, now_ms)
                    continue
                for start in range(0, count, step):
                    self._offer(edge, index, _part(message, start, start + step), now_ms)

    def begin_epoch(self, epoch: int, now_ms: int) -> None:
        """Begin another epoch; each link is told behind the records that it holds."""
        self.epoch = epoch
        for edge in self._edges:
            for index in range(len(edge.links)):
                self._offer(edge, index, self._message(edge.links[index]), now_ms)

    def on_ack(self, ack: Ack, now_ms: int) -> None:
        """Take an acknowledgement; send records that were held for want of credit."""
        found = self._by_target.get(ack.source)
        if found is None or ack.session != self._session:
            return
        edge, index = found
        edge.subscription.on_ack(index, seq=ack.seq, received=ack.received, room=ack.room)
        if edge.links[index].held:
            self._release(edge, index, now_ms)
            self.is_blocked = any(link.held for _, link in self._links())

    def divided(
        self, unsent: Sequence[LinkMessage], refuse: Callable[[Message], None]
    ) -> list[LinkMessage]:
        """Return messages that were not sent, the records of the first one in two messages.

        One record alone goes to ``refuse``, and a punctuation in its place, as it was counted.
        """
        first = unsent[0]
        assert type(first) is DataMessage, "others hold no records"
        assert type(first.batch) is Batch, "it was made here"
        count = len(first.batch)
        if count == 1:
            refuse(next(first.batch.messages()))
            return [replace(first, batch=Batch([], []), size_bytes=0), *unsent[1:]]
        edge, index = self._by_target[first.target]
        edge.links[index].seq += 1
        low, high = _part(first, 0, count // 2), _part(first, count // 2, count)
        low.watermark_ms = MIN_MS  # Only what comes behind the other half is promised.
        high.seq += 1
        halves: list[LinkMessage] = [low, high]
        counted = sum(
            each.counted
            for each in unsent
            if type(each) is DataMessage and each.target == first.target
        )
        more = low.counted + high.counted - first.counted
        edge.subscription.on_divided(index, unsent=counted, more=more)
        for each in unsent[1:]:
            if each.target == first.target and type(each) is DataMessage:
                halves.append(replace(each, seq=each.seq + 1))
            elif each.target == first.target and type(each) is AckRequest:
                halves.append(replace(each, seq=each.seq + more))
            else:
                halves.append(each)
        return halves

    def probe(self, sent_ns: int) -> None:
        """Send a probe behind all records; of very many links to some, others the next time."""
        links = [link for _, link in self._links()]
        first, number = self._probed, min(len(links), _LINKS_AT_A_TIME)
        self._probed = (first + number) % max(1, len(links))
        for at in range(first, first + number):
            link = links[at % len(links)]
            if link.held:
                link.probe_ns = link.probe_ns or sent_ns
            else:
                probe = LatencyProbe(self._session, self._task_id, link.target, sent_ns)
                self._outbox.append(probe)

    def announce(self, watermark_ms: int, *, idle: bool) -> None:
        """Promise that everything put out from now on is not older than the watermark.

        Told with the next data, or bare after a while; the end and idleness are told at once.
        An ended task is not idle.
        """
        idle = idle and max(watermark_ms, self.watermark_ms) < MAX_MS
        if watermark_ms > self.watermark_ms or idle != self.idle:
            self._dirty = True
        self.watermark_ms = max(self.watermark_ms, watermark_ms)
        self.idle = idle

    def on_tick(self, now_ms: int, *, blocks: bool = False) -> None:
        """Tell what is due; before the task blocks, as it may, all that is promised."""
        if self._dirty and blocks:
            self._tell_with_records()
        if self._dirty and (
            (
                self.watermark_ms == MAX_MS
                or any(link.idle != self.idle for _, link in self._links())
            )
            or now_ms - self._told_ms >= self._tell_every_ms
            or (blocks and len(self._by_target) <= _LINKS_AT_A_TIME)
        ):
            self._dirty = False
            self._told_ms = now_ms
            for edge in self._edges:
                for index, link in enumerate(edge.links):
                    if link.watermark_ms == self.watermark_ms and link.idle == self.idle:
                        continue
                    if link.held or edge.subscription.credit(index) <= 0:
                        self._dirty = True  # Told with held records, or bare, once there is credit.
                    else:
                        self._dispatch(edge, index, self._message(link), 1, now_ms)
        for edge in self._edges:
            for index, seq in edge.subscription.on_tick(now_ms):
                target = edge.links[index].target
                self._outbox.append(AckRequest(self._session, self._task_id, target, seq))

    def _tell_with_records(self) -> None:
        """Have the last message of each link, which is still here, promise what holds behind it."""
        if self.watermark_ms == MAX_MS:  # The end is a message of its own.
            return
        for message in self._outbox:
            if type(message) is DataMessage:
                edge, index = self._by_target[message.target]
                link = edge.links[index]
                if message.seq == link.seq and not link.held:
                    message.watermark_ms = link.watermark_ms = self.watermark_ms

    def wake_ms(self, now_ms: int) -> int | None:
        if self._dirty and not self.is_blocked:
            return self._told_ms + self._tell_every_ms
        return None if self.is_settled else now_ms + self._limits.flow.quiet_ack_ms

    @property
    def oldest_ms(self) -> int:
        """Oldest event time that was put out and is not acknowledged; `MAX_MS` if none."""
        oldest_ms = min(
            [edge.subscription.oldest_unacked_ms for edge in self._edges], default=MAX_MS
        )
        if not self.is_blocked:  # Nothing is held.
            return oldest_ms
        held_ms = (
            oldest_of(message.batch.timestamps, MAX_MS)
            for _, link in self._links()
            for message in link.held
            if type(message.batch) is Batch
        )
        return min(oldest_ms, min(held_ms, default=MAX_MS))

    @property
    def records_pending(self) -> int:
        return sum(
            edge.subscription.pending(at) for edge in self._edges for at in range(len(edge.links))
        )

    @property
    def is_settled(self) -> bool:
        return not self.is_blocked and all(e.subscription.is_settled for e in self._edges)

    @property
    def has_ended(self) -> bool:
        """Whether every target has acknowledged the end of the stream; epochs may end later."""
        return not self.is_blocked and all(
            link.watermark_ms == MAX_MS and edge.subscription.pending(index) <= link.after_end
            for edge in self._edges
            for index, link in enumerate(edge.links)
        )

    @property
    def is_told(self) -> bool:
        """Whether all links know the newest watermark."""
        return not self._dirty

    @property
    def is_settled_and_told(self) -> bool:
        return self.is_settled and self.is_told

    def _links(self) -> Iterable[tuple["_EdgeOutput", _Link]]:
        return ((edge, link) for edge in self._edges for link in edge.links)

    def _message(self, link: _Link, batch: Batch | None = None, size_bytes: int = 0) -> DataMessage:
        """Return a message that has yet to get its number and promise, as it is sent."""
        return DataMessage(
            session=self._session,
            source=self._task_id,
            target=link.target,
            seq=0,
            batch=Batch([], []) if batch is None else batch,
            epoch=self.epoch,
            size_bytes=size_bytes,
        )

    def _offer(self, edge: "_EdgeOutput", index: int, message: DataMessage, now_ms: int) -> None:
        link, counted = edge.links[index], message.counted
        if link.held or not edge.subscription.takes(index, counted):
            link.held.append(message)
            self.is_blocked = True
            self._release(edge, index, now_ms)
        else:
            self._dispatch(edge, index, message, counted, now_ms)

    def _release(self, edge: "_EdgeOutput", index: int, now_ms: int) -> None:
        link = edge.links[index]
        while link.held and (room := edge.subscription.credit(index)) > 0:
            message = link.held.popleft()
            if (counted := message.counted) > room:
                count = len(message.batch)
                is_table = type(message.batch) is Batch and type(message.batch.values) is Table
                fits = room * ROWS_PER_CREDIT if is_table else room
                link.held.appendleft(_part(message, fits, count))
                message, counted = _part(message, 0, fits), room
            self._dispatch(edge, index, message, counted, now_ms)
        if link.probe_ns and not link.held:
            probe = LatencyProbe(self._session, self._task_id, link.target, link.probe_ns)
            link.probe_ns = 0
            self._outbox.append(probe)

    def _dispatch(
        self,
        edge: "_EdgeOutput",
        index: int,
        message: DataMessage,
        counted: int,
        now_ms: int,
    ) -> None:
        link, batch = edge.links[index], message.batch
        assert type(batch) is Batch, "it was made here"
        link.seq += 1
        is_after_end = link.watermark_ms == MAX_MS and not batch.values
        link.after_end = link.after_end + 1 if is_after_end else 0
        if not link.held:  # Records still held were put out before the latest promise.
            link.watermark_ms, link.idle = self.watermark_ms, self.idle
        message.seq, message.watermark_ms, message.idle = link.seq, link.watermark_ms, link.idle
        self._outbox.append(message)
        self.bytes_sent += message.size_bytes
        due = edge.subscription.on_sent(
            index,
            records=counted,
            size_bytes=message.size_bytes,
            oldest_ms=oldest_of(batch.timestamps, MAX_MS),
            now_ms=now_ms,
        )
        if due is None and message.watermark_ms == MAX_MS:
            due = edge.subscription.ask(index, now_ms)  # The end waits for nothing but this.
        if due is not None:
            self._outbox.append(AckRequest(self._session, self._task_id, message.target, due))


class Promises:
    """Passes on watermarks and idleness as far as `Task.passes_ms` lets.

    A task is not idle as long as it holds a watermark up: its records will come.
    """

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._is_idle = False
        self.promised_ms = MIN_MS  #: By the inputs, or by the task itself if it has none.

    def restore(self, promised_ms: int, watermark_ms: int) -> None:
        self.promised_ms = max(promised_ms, watermark_ms)
        self._outlet.restore(watermark_ms)

    def pass_on(self, watermark_ms: int, task: Task | None) -> None:
        """Take a promise; earlier output must have been sent."""
        self.promised_ms = max(self.promised_ms, watermark_ms)
        passes_ms = MAX_MS if task is None else task.passes_ms
        idle = self._is_idle and passes_ms == MAX_MS
        self._outlet.announce(min(self.promised_ms, passes_ms), idle=idle)

    def set_idle(self, idle: bool, task: Task | None) -> None:  # noqa: FBT001 - its only question
        """Learn whether nothing comes at present."""
        if not (idle or self._is_idle):
            return  # The rule, with each batch.
        self._is_idle = idle
        idle = idle and (task is None or task.passes_ms == MAX_MS)
        self._outlet.announce(self._outlet.watermark_ms, idle=idle)


def _unshared(parts: list[_Parts], *, has_sides: bool) -> list[_Parts]:
    """Let no two targets have the same record, unless it cannot change.

    A target in another process gets a copy in any case, but later: until then a neighbour here
    might have changed the record.

    Args:
        has_sides: edges are for several outputs, so that not each of them gets all records.
    """
    given: set[int] = set()  # Records with a target, by identity.

    def unshared(values: list[Any], *, is_first: bool) -> list[Any]:
        if not has_sides:
            return values if is_first else own_each(values)
        if ATOMS.issuperset(map(type, values)):
            return values
        mine = [own(value) if id(value) in given else value for value in values]
        given.update(map(id, values))
        return mine

    try:
        return [
            (
                edge,
                [
                    (index, unshared(part, is_first=not at and (edge.is_unicast or not nth)), times)
                    for nth, (index, part, times) in enumerate(parts_of_edge)
                ],
            )
            for at, (edge, parts_of_edge) in enumerate(parts)
        ]
    except TypeError as error:
        raise OperatorError(operator="several readers", cause=str(error)) from error


def _part(message: DataMessage, start: int, stop: int) -> DataMessage:
    """Return the records from one place to another, with their share of the bytes."""
    assert type(message.batch) is Batch, "it was made here"
    batch = message.batch.part(start, stop)
    size_bytes = message.size_bytes * len(batch) // len(message.batch)
    return replace(message, batch=batch, size_bytes=size_bytes)


class _EdgeOutput:
    def __init__(self, edge: OutputEdge, limits: OutputLimits) -> None:
        self.partitioner = edge.partitioner
        self.is_unicast = edge.partitioner.is_unicast
        #: All records go to its only task.
        self.is_whole = edge.parallelism == 1 and edge.partitioner.is_whole_for_one
        self.subscription = Subscription(targets=edge.parallelism, limits=limits.flow)
        self.links = [_Link(TaskId(edge.processor, i)) for i in range(edge.parallelism)]
        self._meets = edge.meets
        self.is_in_order = True  #: Records come as those of their partition do.
        self._told = (NOWHERE, NOWHERE)  # The latest origin, and the one told for it.

    def told(self, origin: Origin) -> Origin:
        if origin is not self._told[0]:
            # Where parts of one partition meet again, nobody knows how they were read; those that
            # have no order but that of their arrival have it still.
            may_meet = (origin.is_split or self._meets == "any") and not origin.is_by_arrival
            told = NOWHERE if may_meet else origin
            if self._meets == "other side" and not origin.is_by_arrival:
                told = told._replace(is_alone=False, is_sorted=False)
            # The order of records must not depend on the number of tasks to which parts of a
            # partition may go, but for those that have none.
            edge = self.partitioner
            splits = not edge.keeps_whole or (edge.by_chance and not origin.is_by_arrival)
            if told.source >= 0 and splits:
                told = Origin(*told[:-1], is_split=True)
            if not self.is_in_order:
                told = told._replace(is_sorted=False)
            self._told = (origin, told)
        return self._told[1]
