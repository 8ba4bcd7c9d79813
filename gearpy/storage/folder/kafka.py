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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import fsspec  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # as its manual has it
    AdminClient,
    NewPartitions,
    NewTopic,
)

_ANSWER_S: Final = 10.0
#: A record is stored by all brokers in sync within this, or it is an error.
_STORED_S: Final = 20.0
_PIECE_BYTES: Final = 900_000  # Of the megabyte that brokers take by default.
_WHOLE: Final = b"\0"  # Begins a record that has the file in it.
_PIECES: Final = b"\1"  # Begins one that lists the records that have it.
_SMALL_BYTES: Final = 16_384  # Files up to this size are kept in memory.
#: Brokers forget after a day that a path was removed; whoever has not looked for long begins anew.
_FORGET_S: Final = 12 * 3600
_PARTITION: Final = re.compile(r"(?:^|/)partition-(\d+)(?:/|$)")
_FOLDERS: Final = 3  # Cluster, application, and what is stored of it.


class _Kept(NamedTuple):
    """The newest record of a path."""

    partition: int
    offset: int
    size: int
    changed_ms: int
    data: bytes | None  # Of a small file.
    pieces: Sequence[int] = ()  # Their offsets.
    mark: str = ""  # In the keys of the pieces.


@dataclass(slots=True)
class _Topic:
    """All that was read of a topic."""

    files: dict[str, _Kept] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    read_s: float = field(default_factory=time.monotonic)


class KafkaFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """File system of ``kafka://host:port/prefix`` for fsspec; files are small, and stored whole.

    A file is there when brokers in sync have it; a listing reads each topic to its end first.

    Args:
        servers: ``host:port`` of some brokers.
        user: to log in by SASL PLAIN; None: no login.
        password: of the user.

    Runs on: any thread.
    """

    protocol = "kafka"

    def __init__(
        self, servers: str, user: str | None = None, password: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        }
        self._servers = servers
        self._settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "client.id": "gearpy",
            "log_level": 0,
            **({} if user is None else login),
        }
        self._lock = threading.RLock()
        self._topics: dict[str, _Topic] = {}
        self._loaded: tuple[tuple[str, int, int] | None, bytes] = None, b""
        self._clients: tuple[Producer, Consumer, AdminClient] | None = None

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
        """Return the URL of a path."""
        return f"kafka://{self._servers}/{self._strip_protocol(name)}"

    # -- files -------------------------------------------------------------------------------

    def find(self, path: str, **_: Any) -> list[str]:
        """Return the paths of all files below one, or itself."""
        path = self._strip_protocol(path)
        with self._asking():
            found = [name for topic in self._below(path) for name in self._read(topic).files]
        return sorted(name for name in found if name == path or name.startswith(f"{path}/"))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:  # noqa: FBT001, FBT002 - fsspec's
        """Return the files and folders in a folder."""
        path = self._strip_protocol(path)
        names = {name[len(path) + 1 :].split("/")[0] for name in self.find(path) if name != path}
        infos = [self.info(f"{path}/{name}") for name in sorted(names)]
        return infos if detail else [info["name"] for info in infos]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return size and time of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        path = self._strip_protocol(path)
        with self._asking():
            kept = self._read(self._topic_of(path), _partition_of(path)).files.get(path)
        if kept is not None:
            changed = kept.changed_ms / 1000
            return {"name": path, "size": kept.size, "type": "file", "mtime": changed}
        if self.find(path):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(f"{self.unstrip_protocol(path)} is not there")

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return a file, or a part of it.

        Raises:
            FileNotFoundError: there is none.
        """
        path = self._strip_protocol(path)
        with self._asking():
            topic = self._topic_of(path)
            if start is None:  # Whoever reads ranges has asked for the size before.
                self._read(topic, _partition_of(path))
            kept = self._topics.get(topic, _Topic()).files.get(path)
            if kept is None:
                raise FileNotFoundError(f"{self.unstrip_protocol(path)} is not there")
            return self._data(topic, kept)[start:end]

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        """Store a file in place of the one that has the path."""
        path = self._strip_protocol(path)
        with self._asking():
            topic, partition = self._topic_of(path), _partition_of(path)
            self._make_topic(topic, partition)
            before = self._read(topic, partition).files.get(path)
            if len(value) <= _PIECE_BYTES:
                self._send(topic, partition, {path: _WHOLE + value})
            else:
                self._send_pieces(topic, partition, path, value)
            self._send(topic, partition, dict.fromkeys(_pieces_of(path, before)))

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        """Store a file of this machine."""
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def rm_file(self, path: str) -> None:
        """Remove a file.

        Raises:
            FileNotFoundError: there is none.
        """
        path = self._strip_protocol(path)
        with self._asking():
            topic = self._topic_of(path)
            kept = self._read(topic, _partition_of(path)).files.get(path)
            if kept is None:
                raise FileNotFoundError(f"{self.unstrip_protocol(path)} is not there")
            gone = dict.fromkeys([path, *_pieces_of(path, kept)])
            self._send(topic, kept.partition, gone)

    def rm(self, path: str, recursive: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002 - fsspec's
        """Remove a file, or all that is below a folder."""
        for each in self.find(path):
            self.rm_file(each)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - fsspec's
        """Do nothing: a folder is there when a file is in it."""

    # -- topics ------------------------------------------------------------------------------

    def _topic_of(self, path: str) -> str:
        """Return the topic of a path: prefix, cluster, application, and what is stored of it."""
        prefix, *parts = path.split("/")
        return ".".join([prefix, *parts[: max(0, min(_FOLDERS, len(parts) - 1))]])

    def _below(self, path: str) -> list[str]:
        """Return the topics that may have files below a path, or the file itself."""
        prefix, *parts = path.split("/")
        begin = ".".join([prefix, *parts[:_FOLDERS]])
        there = self._ready[2].list_topics(timeout=_ANSWER_S).topics
        return [
            name
            for name in there
            if name in {begin, self._topic_of(path)} or name.startswith(f"{begin}.")
        ]

    def _make_topic(self, name: str, partition: int) -> None:
        """Make a topic, or more partitions, if they are not there.

        Another process may have made them. The producer is asked itself: it refuses partitions
        that it has not heard of.
        """
        producer, _, admin = self._ready
        known = len(producer.list_topics(name, timeout=_ANSWER_S).topics[name].partitions)
        if not known:
            settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
            topic = NewTopic(name, partition + 1, -1, config=settings)
            futures = admin.create_topics([topic])
        elif partition >= known:
            futures = admin.create_partitions([NewPartitions(name, partition + 1)])
        else:
            return
        try:
            futures[name].result(_ANSWER_S)
        except KafkaException as error:
            if error.args[0].code() not in _MADE_BY_ANOTHER:
                raise
        while known <= partition:
            time.sleep(0.01)
            known = len(producer.list_topics(name, timeout=_ANSWER_S).topics[name].partitions)

    # -- records -----------------------------------------------------------------------------

    def _send_pieces(self, topic: str, partition: int, path: str, value: bytes) -> None:
        mark = uuid4().hex
        starts = range(0, len(value), _PIECE_BYTES)
        pieces: dict[str, bytes | None] = {
            f"{path}\0{mark}{at}": value[start : start + _PIECE_BYTES]
            for at, start in enumerate(starts)
        }
        offsets = self._send(topic, partition, pieces)
        head = json.dumps({"size": len(value), "offsets": offsets, "mark": mark}).encode()
        self._send(topic, partition, {path: _PIECES + head})

    def _send(self, topic: str, partition: int, records: dict[str, bytes | None]) -> list[int]:
        """Store records in order; return their offsets when all brokers in sync have them."""
        if not records:
            return []
        errors: list[KafkaError] = []
        offsets: list[int] = []

        def on_answer(error: KafkaError | None, record: Any) -> None:
            if error is None:
                offsets.append(record.offset())
            else:
                errors.append(error)

        producer = self._ready[0]
        for key, value in records.items():
            producer.produce(topic, value, key, partition=partition, on_delivery=on_answer)
            producer.poll(0)
        left = producer.flush(2 * _STORED_S)
        if errors or left:
            raise KafkaException(errors[0] if errors else KafkaError(KafkaError._MSG_TIMED_OUT))  # noqa: SLF001 - its name
        return offsets

    def _read(self, name: str, only: int | None = None) -> _Topic:
        """Read a topic to its end, or one partition of it."""
        topic = self._topics.get(name)
        if topic is None or time.monotonic() - topic.read_s > _FORGET_S:
            topic = self._topics[name] = _Topic()
        consumer = self._ready[1]  # It is asked itself: it knows no partition by what others know.
        known = consumer.list_topics(name, timeout=_ANSWER_S).topics[name]
        for partition in known.partitions:
            if only not in (None, partition):
                continue
            at = TopicPartition(name, partition)
            ends = consumer.get_watermark_offsets(at, timeout=_ANSWER_S)
            if ends is None:
                raise TimeoutError(f"kafka {self._servers}: topic {name} does not tell its end")
            low, high = ends
            begin = max(low, topic.next.get(partition, 0))
            for record in self._records(name, partition, begin, high):
                _take(topic.files, record)
            topic.next[partition] = max(begin, high)
        if only is None:
            topic.read_s = time.monotonic()
        return topic

    def _records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Any]:
        """Yield the records of a partition; compaction may have taken some, also the last."""
        if begin >= end:
            return
        consumer = self._ready[1]
        consumer.assign([TopicPartition(topic, partition, begin)])
        until_s = time.monotonic() + _ANSWER_S
        while time.monotonic() < until_s:
            record: Any = consumer.poll(0.2)
            if record is None:
                continue
            until_s = time.monotonic() + _ANSWER_S
            error = record.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                raise KafkaException(error)
            if error is None and record.offset() < end:
                yield record
            if error is not None or record.offset() >= end - 1:
                return
        raise TimeoutError(f"kafka {self._servers}: topic {topic} gave nothing for {_ANSWER_S} s")

    def _data(self, topic: str, kept: _Kept) -> bytes:
        if kept.data is not None:
            return kept.data
        newest = (topic, kept.partition, kept.offset)
        if self._loaded[0] != newest:  # A file is read range by range.
            one = partial(self._one, topic, kept.partition)
            data = b"".join(map(one, kept.pieces)) if kept.pieces else one(kept.offset)[1:]
            self._loaded = newest, data
        return self._loaded[1]

    def _one(self, topic: str, partition: int, offset: int) -> bytes:
        for record in self._records(topic, partition, offset, offset + 1):
            data: bytes = record.value()
            return data
        raise FileNotFoundError(f"record {offset} of topic {topic} is gone: its file was replaced")

    # -- clients -----------------------------------------------------------------------------

    @property
    def _ready(self) -> tuple[Producer, Consumer, AdminClient]:
        if self._clients is None:
            producer = {
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "delivery.timeout.ms": int(_STORED_S * 1000),
            }
            consumer = {
                "group.id": f"gearpy-{uuid4().hex}",  # Never used: partitions are assigned.
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 5,  # The end is known: nobody waits for more behind it.
            }
            self._clients = (
                Producer({**self._settings, **producer}),
                Consumer({**self._settings, **consumer}),
                AdminClient(self._settings),
            )
        return self._clients

    def _asking(self) -> "_Asking":
        return _Asking(self._lock, self._servers)


_MADE_BY_ANOTHER: Final = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS)
#: Waiting mends these.
_PASSING: Final = (
    *(KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT),  # noqa: SLF001
    *(KafkaError._MSG_TIMED_OUT, KafkaError._RESOLVE),  # noqa: SLF001 - their names
    *(KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.LEADER_NOT_AVAILABLE),
    KafkaError.NOT_LEADER_FOR_PARTITION,
)


class _Asking:
    """One question at a time; errors of Kafka are those of a store, which may pass or not."""

    def __init__(self, lock: Any, servers: str) -> None:
        self._lock = lock
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
    """Let fsspec know ``kafka://``."""
    fsspec.register_implementation("kafka", KafkaFiles, clobber=True)


def _partition_of(path: str) -> int:
    found = _PARTITION.search(path)
    return int(found[1]) if found else 0


def _pieces_of(path: str, kept: _Kept | None) -> list[str]:
    return [] if kept is None else [f"{path}\0{kept.mark}{at}" for at in range(len(kept.pieces))]


def _take(files: dict[str, _Kept], record: Any) -> None:
    """Note a record of a topic."""
    path, value = record.key().decode(), record.value()
    if "\0" in path:  # A piece, which the record of its file lists.
        return
    if value is None:
        files.pop(path, None)
        return
    place = (record.partition(), record.offset())
    _, changed_ms = record.timestamp()
    if value[:1] == _PIECES:
        head = json.loads(value[1:])
        files[path] = _Kept(
            *place, head["size"], changed_ms, None, tuple(head["offsets"]), head["mark"]
        )
        return
    size = len(value) - 1
    files[path] = _Kept(*place, size, changed_ms, value[1:] if size <= _SMALL_BYTES else None)
