"""One task's partitions of topics: finds them, reads them, commits how far it is."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict

from gearpy.connectors.kafka.client import (
    ClientState,
    Errands,
    failure,
    final_cause,
    lacking,
    make_admin,
    make_consumer,
)
from gearpy.connectors.kafka.cluster import KafkaCluster
from gearpy.connectors.kafka.reading.decoding import Begun, Reading, RecordDecoder
from gearpy.connectors.kafka.reading.feed import Feed
from gearpy.connectors.kafka.reading.positions import (
    Gap,
    KafkaPlace,
    ReadBounds,
    WantedTopics,
    names_of,
    topic_of,
)
from gearpy.connectors.kafka.reading.raw import Raw
from gearpy.connectors.kafka.registry import RegistryAway
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import Discovery, SourceReader
from gearpy.task.api.sides import BadRecord
from gearpy.task.sources.share import Share

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError


_ANSWER_S: Final = 5
#: Brokers that are older than such ids give this one.
_NO_ID: Final = "A" * 22


class Brokers:
    """Asks brokers by a consumer that does nothing else; see `Offsets`."""

    def __init__(self, consumer: "Consumer", operator: str, cluster: KafkaCluster) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - an extra

        self._consumer = consumer
        self._operator = operator
        self._cluster = cluster
        self._make = TopicPartition

    def topics(self, wanted: WantedTopics) -> dict[str, int]:
        self._consumer.poll(0)  # It keeps news of connections without an end.
        found: dict[str, int] = {}
        for name in wanted.names or ("",):  # No name asks for all topics.
            topics = self._consumer.list_topics(name or None, timeout=_ANSWER_S).topics
            for topic, told in topics.items():
                if told.error is None:
                    found[topic] = len(told.partitions)
                elif topic in wanted.names:
                    what = f"topic {topic!r} of {self._cluster.servers}"
                    lacks = lacking(self._cluster, "Read", f"--topic {topic}")
                    raise failure(self._operator, what, told.error, lacks=lacks)
        return wanted.among(found)

    def ids(self, topics: Collection[str]) -> dict[str, str]:
        """Return the ids of topics, where they are known: one that is made again has another.

        The client is made for this question, as it is a rare one, and another client cannot ask it.
        """
        from confluent_kafka import KafkaException, TopicCollection  # noqa: PLC0415 - an extra

        if not topics:
            return {}
        admin = make_admin(self._operator, self._cluster, ClientState(self._cluster))
        asked = admin.describe_topics(TopicCollection([*topics]), request_timeout=_ANSWER_S)
        found: dict[str, str] = {}
        for topic, answer in asked.items():
            try:
                found[topic] = str(answer.result().topic_id)
            except KafkaException as error:
                if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                    raise
        return {topic: known for topic, known in found.items() if known != _NO_ID}

    def low(self, name: str) -> int:
        return self.range(name)[0]

    def high(self, name: str) -> int:
        return self.range(name)[1]

    def range(self, name: str) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(
            self._make(*topic_of(name)), timeout=_ANSWER_S
        )
        return low, high

    def committed(self, names: Sequence[str]) -> Mapping[str, int]:
        asked = [self._make(*topic_of(name)) for name in names]
        return self._offsets(names, self._consumer.committed(asked, timeout=_ANSWER_S))

    def at_time(self, names: Sequence[str], time_ms: int) -> Mapping[str, int]:
        asked = [self._make(*topic_of(name), time_ms) for name in names]
        return self._offsets(names, self._consumer.offsets_for_times(asked, timeout=_ANSWER_S))

    def commit(self, offsets: Mapping[str, int]) -> None:
        places = [self._make(*topic_of(name), at) for name, at in offsets.items()]
        told = self._consumer.commit(offsets=places, asynchronous=False)
        for each in told or ():
            if each.error is not None:
                raise failure(
                    self._operator, f"commit of {each.topic}/{each.partition}", each.error
                )

    def close(self) -> None:
        self._consumer.close()

    def _offsets(self, names: Sequence[str], told: Sequence[Any]) -> dict[str, int]:
        for name, each in zip(names, told, strict=True):
            if each.error is not None:
                raise failure(self._operator, f"offset of {name}", each.error)
        return {name: at.offset for name, at in zip(names, told, strict=True) if at.offset >= 0}


_LOG: Final = logging.getLogger(__name__)
_AGAIN_MS: Final = 1000  # Between two looks while no broker answers.
_TABLE_MAX: Final = 16_384  # Records of a table: more do not fit the cache of a processor.
_AHEAD_MIN: Final = 4096  # Fewer records are parsed sooner than another thread takes them.
#: A client with enough records at hand asks for no more for so long. Its own second is longer than
#: a task takes to work through them, so that most of the time there would be none.
_USUAL: Final[Mapping[str, int]] = {"fetch.queue.backoff.ms": 10}
_LAST_S: Final = 10  # The end of a task waits so long for its last commit.


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaReading:
    """The topics to read, and the way to do so; the same for all tasks.

    Attributes:
        group: that offsets are committed to; None: to none.
        idle_ms: so long after its end a partition holds event time back.
        up_to_now: a partition finishes where it ends when it is opened.
    """

    cluster: KafkaCluster
    topics: WantedTopics
    bounds: ReadBounds
    group: str | None
    poll_ms: int
    idle_ms: int
    records: Reading
    up_to_now: bool = False

    @property
    def operator(self) -> str:
        return self.records.operator


class Looked(TypedDict):
    """Snapshot of a search: whether the partitions of the beginning are known."""

    looked: bool


@dataclass(frozen=True, slots=True)
class _Look:
    """Answer of an errand: new partitions, and where they begin; new topics; if there are any."""

    places: Mapping[str, KafkaPlace]
    ids: Mapping[str, str]
    has_topics: bool


class KafkaDiscovery(Discovery[Any]):
    def __init__(
        self, reading: KafkaReading, share: Share, now_ms: Callable[[], int], *, has_looked: bool
    ) -> None:
        self.has_looked = has_looked
        self._reading = reading
        self._share = share
        self._now_ms = now_ms
        operator = reading.operator
        reading.records.begin()
        # The client asks for the coordinator of its group, also of one that is never used.
        ignored = () if reading.group is not None else ("GROUP_AUTHORIZATION_FAILED",)
        self._lacks_group = lacking(reading.cluster, "Read", f"--group {reading.group}")
        self._state = ClientState(reading.cluster, ignored, self._lacks_group)
        given = reading.cluster.settings
        settings = {
            **{name: usual for name, usual in _USUAL.items() if name not in given},
            "group.id": reading.group or "gearpy",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        self._consumer = make_consumer(operator, reading.cluster, self._state, settings)
        # A client does one thing at a time: the one that reads would hold the task up while a
        # question waits for brokers that are away.
        asking = make_consumer(operator, reading.cluster, self._state, settings)
        self._brokers = Brokers(asking, operator, reading.cluster)
        self._feed = Feed(self._consumer, self._state, operator, reading.records.columns)
        self._errands = Errands(f"gearpy-{operator}")
        self._parser = ThreadPoolExecutor(1, f"gearpy-{operator}-parser")
        self._is_looking = False
        self._lacks = ""
        self._next_ms = 0
        self._committed: dict[str, int] = {}
        self._ids: dict[str, str] | None = None  # The ids of topics that are known.

    def find(self) -> Mapping[str, KafkaPlace]:
        if self._ids is None:  # No partition is read.
            self._feed.listen()
        answer = self._errands.take()
        found = {} if answer is None else self._take(answer)
        now_ms = self._now_ms()
        if not (self._is_looking or self.finished) and now_ms >= self._next_ms:
            self._is_looking = True
            self._errands.post(self._look)
        self.waits_for = self._state.waits_for or self._lacks
        return found

    def open(self, partition: str, place: KafkaPlace | int) -> "KafkaReader":
        self._share.known.add(partition)
        if isinstance(place, int):  # Set by hand.
            place = KafkaPlace(offset=place, end=None, watermark_ms=MIN_MS)
        return KafkaReader(
            partition,
            place,
            self._reading,
            feed=self._feed,
            brokers=self._brokers,
            state=self._state,
            now_ms=self._now_ms,
            topic_id=self._topic_id,
            parser=self._parser,
        )

    def snapshot(self) -> Looked:
        return {"looked": self.has_looked}

    def on_commit(self, places: Mapping[str, KafkaPlace]) -> None:
        if self._reading.group is None:
            return
        offsets = {name: place["offset"] for name, place in places.items()}
        changed = {name: at for name, at in offsets.items() if self._committed.get(name) != at}
        if changed:
            self._committed |= changed
            self._errands.post(lambda: self._commit(changed))

    def close(self) -> None:
        self._parser.shutdown(wait=False, cancel_futures=True)
        self._errands.post(self._brokers.close)
        self._errands.close(self._consumer.close, _LAST_S)

    def _take(self, answer: Any) -> Mapping[str, KafkaPlace]:
        self._is_looking = False
        if isinstance(answer, _Look):
            self._lacks = "" if answer.has_topics else f"a topic that fits {self._reading.topics}"
            places = answer.places
            self._ids = {**(self._ids or {}), **answer.ids}
            self._state.on_answer()
            self._next_ms = self._now_ms() + self._reading.poll_ms
            if not self.has_looked and not places:
                _LOG.info("%s: no partition is this task's at present", self._reading.operator)
            self.has_looked = True
            self.finished = self._reading.up_to_now or self._reading.bounds.until is not None
            return places
        self._next_ms = self._now_ms() + _AGAIN_MS
        error = _kafka_error(answer)
        if error is None:
            raise answer
        if final_cause(error):
            lacks = self._lacks_group if error.name().startswith("GROUP") else ""
            raise failure(self._reading.operator, "", error, lacks=lacks) from answer
        self._state.on_error(error)
        return {}

    def _topic_id(self, topic: str) -> str | None:
        return None if self._ids is None else self._ids.get(topic, "")

    def _look(self) -> _Look:
        found = self._brokers.topics(self._reading.topics)
        named = [at for at in (self._reading.bounds.start, self._reading.bounds.until) if at]
        for name in (each for at in named if isinstance(at, Mapping) for each in at):
            topic, number = topic_of(name)
            if number >= found.get(topic, 0):
                there = f"topic {topic!r} has {found.get(topic, 0)} partitions here"
                raise OperatorError(
                    operator=self._reading.operator,
                    cause=f"an offset is given for partition {name}, which is not read: {there}",
                    is_final=True,
                )
        ids = self._brokers.ids(sorted(found.keys() - (self._ids or {}).keys()))
        bounds, names = self._reading.bounds, self._share.new_of(names_of(found))
        if bounds.until is not None and self.has_looked:
            names = []  # It ends where those end that it has begun with.
        places = bounds.begin(names, self._brokers, is_first=not self.has_looked)
        return _Look(places, ids, bool(found))

    def _commit(self, offsets: Mapping[str, int]) -> None:
        """Commit; one that fails is made good by that of the next epoch."""
        try:
            self._brokers.commit(offsets)
        except Exception as caught:
            error = _kafka_error(caught)
            if error is None:
                raise
            if final_cause(error):
                what = f"commit to group {self._reading.group!r}"
                lacks = self._lacks_group
                raise failure(self._reading.operator, what, error, lacks=lacks) from caught
            _LOG.warning("%s: offsets not committed: %s", self._reading.operator, error.str())


class KafkaReader(SourceReader[Any]):
    """Reads one partition.

    Args:
        topic_id: tells the id of a topic; None: not yet, and nothing is read until then.
        parser: parses records while the task works on those before them.
    """

    def __init__(
        self,
        name: str,
        place: KafkaPlace,
        reading: KafkaReading,
        *,
        feed: Feed,
        brokers: Brokers,
        state: ClientState,
        now_ms: Callable[[], int],
        topic_id: Callable[[str], str | None],
        parser: Executor,
    ) -> None:
        self._name = name
        self._offset, self._end = place["offset"], place["end"]
        self._first = self._offset
        self._reading = reading
        self._feed = feed
        self._brokers = brokers
        self._state = state
        self._now_ms = now_ms
        self.out_of_order_ms = reading.records.bound_ms
        self._decoder = RecordDecoder(reading.records, *topic_of(name), place["watermark_ms"])
        self._is_table = reading.records.schema is not None
        self._rest: Raw | None = None  # It is left of what was taken last.
        self._held: Raw | None = None  # It waits for the schema registry to be decoded.
        self._parser = parser
        self._begun: Begun | None = None  # Being parsed; never while others are held.
        self._registry = ""
        self._ended_ms: int | None = None  # When it came to the end of the partition.
        self._lost = 0
        self._topic_id = topic_id
        self._read_id = place.get("topic_id", "")  # The offset belongs to this topic.
        self._is_open = False
        self._begins()

    def read_batch(self, max_records: int) -> Batch | None:
        batch = None
        while batch is None and self._begins() and (raw := self._next(max_records)) is not None:
            try:
                batch = self._decoder.batch(*raw)
            except RegistryAway as error:
                self._held, self._registry = raw[0], str(error)
                self._again_ms = self._now_ms() + _AGAIN_MS
                break
        self.skipped_records = self._decoder.skipped + self._lost
        self.waits_for = self._state.waits_for or self._registry
        self._finishes()
        self.idle = (
            batch is None
            and self._ahead is None
            and self._ended_ms is not None
            and self._now_ms() - self._ended_ms >= self._reading.idle_ms
        )
        return batch

    def take_bad(self) -> Sequence[BadRecord]:
        return self._decoder.take_bad()

    def snapshot(self) -> KafkaPlace:
        ahead = self._ahead
        offset = self._offset if ahead is None else ahead.offsets[0]
        return {
            "offset": offset,
            "end": None if self._reading.up_to_now else self._end,
            "watermark_ms": self.watermark_ms,
            "topic_id": self._read_id or self._topic_id(topic_of(self._name)[0]) or "",
        }

    @property
    def watermark_ms(self) -> int:
        return self._decoder.watermark_ms

    @property
    def progress(self) -> tuple[int, int]:
        if self._end is None:
            return (0, 0)
        return self._offset - self._first, max(0, self._end - self._first)

    def step_over(self, *, all_of_file: bool) -> str | None:
        """Go on behind the next record, which is not decoded."""
        if all_of_file:
            raise ConfigError("it is not the record that ends the process: see its client")
        raw = self._raw(1) if self._begins() else None
        return None if raw is None else f"offset {raw.offsets[0]}: {raw.bodies[0]!r:.200}"

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._feed.remove(self._name)

    @property
    def _ahead(self) -> Raw | None:
        return self._held if self._begun is None else self._begun.raw

    def _next(self, max_records: int) -> tuple[Raw, Callable[[], Any]] | tuple[Raw] | None:
        """Return the next records, with a call for their rows if they are parsed already.

        Where there are many, those behind them are parsed meanwhile.
        """
        begun, self._begun = self._begun, None
        raw = self._raw(max_records)
        if begun is None:
            if raw is None or len(raw) < _AHEAD_MIN or not self._reading.records.joins:
                return None if raw is None else (raw,)
            begun, raw = self._decoder.begin(raw, self._parser), self._raw(max_records)
        if raw is not None:
            self._begun = self._decoder.begin(raw, self._parser)
        while not begun.is_done() and self._feed.reads_ahead():
            pass
        return begun.raw, begun.rows

    def _raw(self, max_records: int) -> Raw | None:
        """Return records that the client has: a portion for rows, all there are for a table."""
        if self._held is not None:
            if self._now_ms() < self._again_ms:
                return None
            held, self._held, self._registry = self._held, None, ""
            return held
        max_records = min(max_records, _TABLE_MAX)
        raw, wanted = Raw.none(), max_records if self._is_table else 1
        while len(raw) < wanted and not self._finishes():
            item = self._rest or self._feed.take(self._name)
            if item is None:
                break
            if isinstance(item, Raw):
                if self._is_table and raw and len(raw) + len(item) > max_records:
                    self._rest = item  # To cut it takes longer than a smaller table costs.
                    break
                self._rest, at_most = None, max_records - len(raw)
                if len(item) > at_most:
                    item, self._rest = item.part(0, at_most), item.part(at_most, len(item))
                self._ended_ms = None
                if self._end is not None:
                    item = item.before(self._end)
                self._offset = item.offsets[-1] + 1 if item else self._end or 0
                raw = raw.joined(item)
            elif isinstance(item, int):
                self._offset = max(self._offset, item)
                self._ended_ms = self._now_ms()
            elif not self._steps_over(item):
                break
        return raw or None

    def _begins(self) -> bool:
        """Begin to read, unless it has; False: nobody knows yet whether the topic is the same."""
        if self._is_open or self._finishes():
            return True
        known = self._topic_id(topic_of(self._name)[0])
        if self._read_id and known is None:
            return False
        if self._read_id and known and known != self._read_id:
            between = self._range()
            if between is None:
                return False
            self._step(self._gap(*between, is_other=True))
            self._read_id = known
        if self._reading.up_to_now and self._end is None:
            if (between := self._range()) is None:
                return False
            self._end = between[1]
            if self._finishes():
                return True
        self._is_open = True
        self._feed.add(self._name, self._offset)
        return True

    def _steps_over(self, error: "KafkaError") -> bool:
        """Step over records that are not there any more; False: brokers do not answer now."""
        if final_cause(error):
            topic, _ = topic_of(self._name)
            lacks = lacking(self._reading.cluster, "Read", f"--topic {topic}")
            what = f"partition {self._name} of {self._reading.cluster.servers}"
            raise failure(self._reading.operator, what, error, lacks=lacks)
        between = self._range()
        if between is None:
            self._feed.put_back(self._name, error)
            return False
        low, high = between
        is_there = low <= self._offset <= high
        gap = Gap(self._offset, self._offset, low, high) if is_there else self._gap(low, high)
        self._feed.remove(self._name)
        self._step(gap)
        self._feed.add(self._name, gap.going)
        return True

    def _range(self) -> tuple[int, int] | None:
        """Return where the records begin and end; None: brokers do not answer now."""
        try:
            return self._brokers.range(self._name)
        except Exception as caught:
            if _kafka_error(caught) is None:
                raise
            return None

    def _step(self, gap: Gap) -> None:
        told = (self._reading.operator, self._name, gap, gap.going, gap.lost)
        _LOG.warning("%s: %s: %s: goes on at %d; %d records are left out", *told)
        self._lost += gap.lost
        self._offset = gap.going
        if gap.is_anew and self._reading.bounds.until == "now":  # The end was one of before, too.
            self._end = gap.high

    def _gap(self, low: int, high: int, *, is_other: bool = False) -> Gap:
        gap = self._reading.bounds.recover(self._offset, low, high, is_other=is_other)
        if gap is not None:
            return gap
        gap = Gap(self._offset, self._offset, low, high, is_other)
        raise OperatorError(
            operator=self._reading.operator,
            cause=f"partition {self._name}: {gap}: to go on without what is lost, give "
            "out_of_range='earliest' or 'latest'",
            is_final=True,
        )

    def _finishes(self) -> bool:
        is_read = self._end is not None and self._offset >= self._end
        if self._reading.up_to_now:  # Behind it may be a transaction that has not ended.
            is_read = is_read or self._ended_ms is not None
        self.finished = is_read and self._ahead is None
        return self.finished


def _kafka_error(caught: Exception) -> "KafkaError | None":
    told = caught.args[0] if caught.args else None
    return told if hasattr(told, "retriable") and hasattr(told, "str") else None
