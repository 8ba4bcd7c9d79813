"""Compacted Kafka topics as a store: the coordinator log and the changelog of an application.

Each folder of an application, such as ``k3f9a1c2/app3/coordinator``, is a topic. The key of a
record is a path, and the newest record of a path is the file, or tells where its pieces are; so
compaction keeps what a reader needs. A path with ``partition-7`` in it is in partition 7, as
Samza's `ChangelogPartitionManager` has it; all others are in partition 0. Samza: the coordinator
stream.
"""

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import fsspec  # type: ignore[import-untyped]
from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined] # as its manual has it
    AdminClient,
    NewPartitions,
    NewTopic,
)

_ANSWER_S: Final = 10.0
#: A record is stored by all brokers in sync within this, or it is an error.
_STORED_S: Final = 20.0
_COMPACTED: Final = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
_USUAL: Final = {"client.id": "gearpy", "log_level": 0, "reconnect.backoff.max.ms": 500}
_MADE_BY_ANOTHER: Final = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS)


class TopicPlace(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class TopicRecord(NamedTuple):
    """A record as the brokers have it; without a value it removes its key."""

    offset: int
    time_ms: int
    key: str
    value: bytes | None


class TopicClient:
    """Clients of one process, each made when it is first needed.

    Runs on: one thread at a time. All calls raise `KafkaException` or `TimeoutError`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**_USUAL, **settings}

    # -- topics ------------------------------------------------------------------------------

    def partitions(self, topic: str) -> int:
        return _count(self._consumer, topic)

    def all_partitions(self) -> dict[str, int]:
        topics = self._consumer.list_topics(timeout=_ANSWER_S).topics
        return {name: len(each.partitions) for name, each in topics.items()}

    def make(self, place: TopicPlace) -> int:
        """Make a partition, and its topic, unless it is there; return how many there are.

        Another process may make it at the same time. The producer is asked itself: it refuses
        partitions that it has not heard of.
        """
        name, wanted = place.topic, place.partition + 1
        known = _count(self._producer, name)
        if known >= wanted:
            return known
        if known:
            futures = self._admin.create_partitions([NewPartitions(name, wanted)])
        else:
            futures = self._admin.create_topics([NewTopic(name, wanted, -1, config=_COMPACTED)])
        try:
            futures[name].result(_ANSWER_S)
        except KafkaException as error:
            if error.args[0].code() not in _MADE_BY_ANOTHER:
                raise
        while known < wanted:
            time.sleep(0.01)
            known = _count(self._producer, name)
        return known

    # -- records -----------------------------------------------------------------------------

    def send(self, place: TopicPlace, records: Mapping[str, bytes | None]) -> list[TopicRecord]:
        """Store records in order; return them when all brokers in sync have them."""
        errors: list[KafkaError] = []
        stored: list[TopicRecord] = []

        def on_answer(error: KafkaError | None, record: Any) -> None:
            if error is None:
                key = record.key().decode()
                stored.append(
                    TopicRecord(record.offset(), record.timestamp()[1], key, records[key])
                )
            else:
                errors.append(error)

        producer = self._producer
        for key, value in records.items():
            producer.produce(
                place.topic, value, key, partition=place.partition, on_delivery=on_answer
            )
            producer.poll(0)
        left = producer.flush(2 * _STORED_S)
        if errors or left:
            raise KafkaException(errors[0] if errors else KafkaError(KafkaError._MSG_TIMED_OUT))  # noqa: SLF001 - its name
        return stored

    def ends(self, places: Iterable[TopicPlace]) -> dict[TopicPlace, int]:
        """Return the ends of partitions, behind all that was stored before this call."""
        asked = [TopicPartition(*each, OFFSET_END) for each in places]
        found = self._consumer.offsets_for_times(asked, timeout=_ANSWER_S) if asked else []
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
        return {TopicPlace(each.topic, each.partition): each.offset for each in found}

    def records(self, place: TopicPlace, begin: int, end: int) -> Iterator[TopicRecord]:
        """Yield the records between two offsets; compaction may have taken some, also the last."""
        if begin >= end:
            return
        consumer = self._consumer
        consumer.assign([TopicPartition(*place, begin)])
        try:
            until_s = time.monotonic() + _ANSWER_S
            while time.monotonic() < until_s:
                record: Any = consumer.poll(0.2)
                if record is None:
                    continue
                until_s = time.monotonic() + _ANSWER_S
                error = record.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                    raise KafkaException(error)
                at = record.offset() + (error is None)
                if error is None and at <= end:
                    _, time_ms = record.timestamp()
                    key = record.key().decode()
                    yield TopicRecord(record.offset(), time_ms, key, record.value())
                if at >= end:
                    return
        finally:
            consumer.unassign()  # It would go on asking for more, a hundred times a second.
        raise TimeoutError(f"topic {place.topic} gave nothing for {_ANSWER_S} s")

    # -- clients -----------------------------------------------------------------------------

    @cached_property
    def _producer(self) -> Producer:
        return Producer(
            {
                **self._settings,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "delivery.timeout.ms": int(_STORED_S * 1000),
            }
        )

    @cached_property
    def _consumer(self) -> Consumer:
        return Consumer(
            {
                **self._settings,
                "group.id": f"gearpy-{uuid4().hex}",  # Never used: partitions are assigned.
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 5,  # The end is known: nobody waits for more behind it.
            }
        )

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(self._settings)


def _count(client: Producer | Consumer, topic: str) -> int:
    return len(client.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions)


_PIECE_BYTES: Final = 900_000  # Brokers take a megabyte by default.
_WHOLE: Final = b"\0"  # Begins a record that has the file in it.
_PIECES: Final = b"\1"  # Begins one that lists the records that have it.
_SMALL_BYTES: Final = 16_384  # Files up to this size are kept in memory.
#: Files of its own that a process remembers before it reads again: it may never do so.
_OWN_MAX: Final = 256
#: Brokers forget after a day that a path was removed: after so long without a look all is read
#: anew.
_FORGET_S: Final = 12 * 3600
_PARTITION: Final = re.compile(r"(?:^|/)partition-(\d+)(?:/|$)")
_FOLDERS: Final = 3  # Cluster, application, and what is stored of it.


class _Kept(NamedTuple):
    """The newest record of a path."""

    place: TopicPlace
    offset: int
    size: int
    changed_ms: int
    data: bytes | None  # None for a large file.
    pieces: Sequence[int] = ()  # Their offsets.
    mark: str = ""  # It is in the keys of the pieces.


@dataclass(slots=True)
class _Topic:
    """All that is known of a topic.

    Attributes:
        next: the offset up to which each partition is known.
        own: so many records of this process are in it that were not read.
    """

    files: dict[str, _Kept] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    readable: int = 0
    writable: int = 0
    own: int = 0
    began_s: float = field(default_factory=time.monotonic)

    def take(self, place: TopicPlace, record: TopicRecord) -> None:
        self.next[place.partition] = record.offset + 1
        path, value = record.key, record.value
        if "\0" in path:  # A piece, which the record of its file lists.
            return
        if value is None:
            self.files.pop(path, None)
        elif value[:1] == _PIECES:
            head = json.loads(value[1:])
            self.files[path] = _Kept(
                place,
                record.offset,
                head["size"],
                record.time_ms,
                None,
                tuple(head["offsets"]),
                head["mark"],
            )
        else:
            size = len(value) - 1
            data = value[1:] if size <= _SMALL_BYTES else None
            self.files[path] = _Kept(place, record.offset, size, record.time_ms, data)


class KafkaFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """File system of ``kafka://host:port/prefix`` for fsspec; files are small, and stored whole.

    A file is there when brokers in sync have it, which is one question to them for a file of one
    record. Before a file or a listing is told, the brokers are asked where its partitions end, and
    what is behind the known part is read.

    Args:
        servers: ``host:port`` of some brokers.
        user: to log in by SASL PLAIN; None: no login.
        client: asks the brokers; tests may count its steps.

    Runs on: any thread.
    """

    protocol = "kafka"

    def __init__(
        self,
        servers: str,
        user: str | None = None,
        password: str | None = None,
        *,
        client: TopicClient | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        }
        self._servers = servers
        self._client = client or TopicClient(
            {"bootstrap.servers": servers, **({} if user is None else login)}
        )
        self._asking = _Asking(servers)
        self._topics: dict[str, _Topic] = {}
        self._loaded: tuple[tuple[TopicPlace, int] | None, bytes] = None, b""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return urlsplit(path).path.strip("/") if "://" in path else path.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        login, _, servers = urlsplit(path).netloc.rpartition("@")
        user, _, password = login.partition(":")
        found = {"servers": servers, "user": unquote(user), "password": unquote(password)}
        return {key: value for key, value in found.items() if value}

    def unstrip_protocol(self, name: str) -> str:
        return f"kafka://{self._servers}/{self._strip_protocol(name)}"

    # -- files -------------------------------------------------------------------------------

    def find(self, path: str, **_: Any) -> list[str]:
        path = self._strip_protocol(path)
        with self._asking:
            # The topics that may have files below the path are read, all partitions.
            prefix, *parts = path.split("/")
            begin = ".".join([prefix, *parts[:_FOLDERS]])
            if len(parts) >= _FOLDERS:
                counts = {begin: self._client.partitions(begin)}
            else:
                counts = {
                    name: count
                    for name, count in self._client.all_partitions().items()
                    if name == begin or name.startswith(f"{begin}.")
                }
            for name, count in counts.items():
                self._topic(name).readable = count
            self._read(
                TopicPlace(name, at) for name, count in counts.items() for at in range(count)
            )
            found = [
                name
                for topic in counts
                for name in self._topic(topic).files
                if name.startswith(f"{path}/")
            ]
            # A path is a folder or a file: most are told by the topic of the folder.
            if not found and self._kept(path) is not None:
                found = [path]
        return sorted(found)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:  # noqa: FBT001, FBT002 - fsspec's
        path = self._strip_protocol(path)
        names = {name[len(path) + 1 :].split("/")[0] for name in self.find(path) if name != path}
        infos = [self.info(f"{path}/{name}") for name in sorted(names)]
        return infos if detail else [info["name"] for info in infos]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        with self._asking:
            kept = self._kept(path)
        if kept is not None:
            changed = kept.changed_ms / 1000
            return {"name": path, "size": kept.size, "type": "file", "mtime": changed}
        if self.find(path):
            return {"name": path, "size": 0, "type": "directory"}
        raise self._absent(path)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        with self._asking:
            # A reader of ranges has asked for the size before.
            kept = self._kept(path) if start is None else self._known(path)
            if kept is None:
                raise self._absent(path)
            return self._data(kept)[start:end]

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        path = self._strip_protocol(path)
        with self._asking:
            place = _place_of(path)
            topic = self._topic(place.topic)
            if topic.writable <= place.partition:
                topic.writable = self._client.make(place)
            before = topic.files.get(path)
            head = _WHOLE + value
            if len(value) > _PIECE_BYTES:  # Pieces are stored before the record that lists them.
                mark, starts = uuid4().hex, range(0, len(value), _PIECE_BYTES)
                pieces: dict[str, bytes | None] = {
                    f"{path}\0{mark}{at}": value[start : start + _PIECE_BYTES]
                    for at, start in enumerate(starts)
                }
                offsets = self._send(place, pieces)
                listed = {"size": len(value), "offsets": offsets, "mark": mark}
                head = _PIECES + json.dumps(listed).encode()
            self._send(place, {path: head})
            self._send(place, dict.fromkeys(_pieces_of(path, before)))

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def rm_file(self, path: str) -> None:
        path = self._strip_protocol(path)
        with self._asking:
            kept = self._known(path) or self._kept(path)
            if kept is None:
                raise self._absent(path)
            self._send(kept.place, dict.fromkeys([path, *_pieces_of(path, kept)]))

    def rm(self, path: str, recursive: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002 - fsspec's
        for each in self.find(path):
            self.rm_file(each)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - fsspec's
        """Do nothing: a folder is there when a file is in it."""

    def _absent(self, path: str) -> FileNotFoundError:
        return FileNotFoundError(f"{self.unstrip_protocol(path)} is not there")

    # -- writing -----------------------------------------------------------------------------

    def _send(self, place: TopicPlace, records: dict[str, bytes | None]) -> list[int]:
        """Store records in order; return their offsets when all brokers in sync have them."""
        if not records:
            return []
        topic = self._topic(place.topic)
        try:
            stored = self._client.send(place, records)
        except KafkaException:
            topic.writable = 0
            raise
        for each in stored:
            # Note a record that was stored just now, if nothing unknown is before it.
            is_next = topic.next.get(place.partition, 0) == each.offset
            if is_next and topic.own < _OWN_MAX:
                topic.own += 1
                topic.take(place, each)
        return [each.offset for each in stored]

    # -- reading -----------------------------------------------------------------------------

    def _topic(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None or time.monotonic() - topic.began_s > _FORGET_S:
            topic = self._topics[name] = _Topic()
        return topic

    def _known(self, path: str) -> _Kept | None:
        return self._topic(_place_of(path).topic).files.get(path)

    def _kept(self, path: str) -> _Kept | None:
        place = _place_of(path)
        topic = self._topic(place.topic)
        if topic.readable <= place.partition:
            topic.readable = self._client.partitions(place.topic)
        if topic.readable <= place.partition:
            return None
        self._read([place])
        return self._known(path)

    def _read(self, places: Iterable[TopicPlace]) -> None:
        """Read partitions to their ends."""
        places = [*places]
        try:
            ends = self._client.ends(places)
        except KafkaException:
            for place in places:  # It may be gone, or have another leader: it is looked for again.
                self._topic(place.topic).readable = 0
            raise
        for place, end in ends.items():
            topic = self._topic(place.topic)
            begin = topic.next.get(place.partition, 0)
            if end < begin:  # It was removed, and made again.
                topic = self._topics[place.topic] = _Topic(readable=topic.readable)
                begin = 0
            for record in self._client.records(place, begin, end):
                topic.take(place, record)
            topic.next[place.partition] = end
            topic.own = 0

    def _data(self, kept: _Kept) -> bytes:
        if kept.data is not None:
            return kept.data
        newest = (kept.place, kept.offset)
        if self._loaded[0] != newest:  # A file is read range by range.
            one = partial(self._one, kept.place)
            data = b"".join(map(one, kept.pieces)) if kept.pieces else one(kept.offset)[1:]
            self._loaded = newest, data
        return self._loaded[1]

    def _one(self, place: TopicPlace, offset: int) -> bytes:
        for record in self._client.records(place, offset, offset + 1):
            if record.value is not None:
                return record.value
        raise FileNotFoundError(
            f"record {offset} of topic {place.topic} is gone: its file was replaced"
        )


#: Waiting mends these.
_PASSING: Final = (
    *(KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT),  # noqa: SLF001
    *(KafkaError._MSG_TIMED_OUT, KafkaError._RESOLVE),  # noqa: SLF001 - their names
    *(KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.LEADER_NOT_AVAILABLE),
    KafkaError.NOT_LEADER_FOR_PARTITION,
)


class _Asking:
    """One question at a time; errors of Kafka are those of a store, which may pass or not."""

    def __init__(self, servers: str) -> None:
        self._lock = threading.RLock()
        self._servers = servers

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self._lock.release()
        if isinstance(error, KafkaException):
            told = error.args[0]
            text = f"kafka {self._servers}: {told.str()} ({told.name()})"
            passes = told.code() in _PASSING or told.retriable()
            raise (ConnectionError(text) if passes else OSError(text)) from error


def register() -> None:
    fsspec.register_implementation("kafka", KafkaFiles, clobber=True)


def _place_of(path: str) -> TopicPlace:
    prefix, *parts = path.split("/")
    topic = ".".join([prefix, *parts[: max(0, min(_FOLDERS, len(parts) - 1))]])
    found = _PARTITION.search(path)
    return TopicPlace(topic, int(found[1]) if found else 0)


def _pieces_of(path: str, kept: _Kept | None) -> list[str]:
    return [] if kept is None else [f"{path}\0{kept.mark}{at}" for at in range(len(kept.pieces))]
