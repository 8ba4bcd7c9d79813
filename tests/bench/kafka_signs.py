"""What a reader outside sees of topics while they are written: markers of epochs, and stalls."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tests.bench.epoch_signs import ReadSigns

#: The file with the addresses of the brokers, in the folder of results.
SERVERS: Final = "servers"
_MARKERS: Final = "gearpy-markers"
_LOOK_S: Final = 0.1
_ASK_S: Final = 5.0
_SLOW_S: Final = 1.0  # A broker that takes so long to answer is away.
_READ_S: Final = 60.0
_QUICK: Final = {
    "log_level": 0,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "reconnect.backoff.max.ms": 200,
    "fetch.wait.max.ms": 20,
}


class KafkaSigns(ReadSigns):
    """Tells which epochs are shown, by the markers that their transactions leave.

    Args:
        results: has the file with the addresses of the brokers.
    """

    def __init__(self, checkpoints: Path, results: Path) -> None:
        self._servers = (results / SERVERS).read_text()
        super().__init__(checkpoints, results)

    def _read(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "signs", **_QUICK})
        places: Sequence[TopicPartition] = ()
        while not self._is_over.is_set():
            if not places:
                places = _places(consumer, _MARKERS)
                if places:
                    consumer.assign([*places])
            for message in consumer.consume(1000, _LOOK_S) if places else ():
                if message.error() is None:
                    self._take((message.key() or b"").decode(), json.loads(message.value() or b""))
        consumer.close()

    def _take(self, lane_id: str, marker: dict[str, int]) -> None:
        if "-records-" in lane_id:
            self._see(lane_id, marker["committed"])


class Stall(NamedTuple):
    """A time in which readers came no further, by the monotonic clock, and where it was."""

    began_s: float = 0.0
    ended_s: float = 0.0
    place: str = ""

    @property
    def lasted_s(self) -> float:
        return self.ended_s - self.began_s


class StallWatch:
    """Measures for how long readers of whole transactions stand behind records that are there.

    Runs on: a thread of its own. A time in which the broker does not answer does not count: no
    transaction is to blame for that.
    """

    def __init__(self, servers: str, topics: Sequence[str]) -> None:
        self._servers = servers
        self._topics = topics
        self.longest = Stall()
        self._stands: dict[str, tuple[int, float]] = {}  # Where, and since when.
        self._is_over = False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_over = True
        self._thread.join()

    def _watch(self) -> None:
        places: Sequence[TopicPartition] = ()
        admin: AdminClient | None = None
        while not self._is_over:
            time.sleep(_LOOK_S)
            began_s = time.monotonic()
            try:
                admin = admin or AdminClient({"bootstrap.servers": self._servers, "log_level": 0})
                places = places or [p for topic in self._topics for p in _places(admin, topic)]
                self._compare(admin, places)
            except (KafkaException, TimeoutError):
                admin, self._stands = None, {}
            if time.monotonic() > began_s + _SLOW_S:
                self._stands = {}

    def _compare(self, admin: AdminClient, places: Sequence[TopicPartition]) -> None:
        whole = _ends(admin, places, IsolationLevel.READ_COMMITTED)
        every = _ends(admin, places, IsolationLevel.READ_UNCOMMITTED)
        now_s = time.monotonic()
        for place, end in whole.items():
            at, since_s = self._stands.get(place, (-1, now_s))
            self._stands[place] = (end, since_s if at == end < every[place] else now_s)
            stall = Stall(self._stands[place][1], now_s, place)
            self.longest = max(self.longest, stall, key=lambda each: each.lasted_s)


def _ends(admin: AdminClient, places: Sequence[TopicPartition], level: Any) -> dict[str, int]:
    asked = admin.list_offsets(
        {place: OffsetSpec.latest() for place in places},  # type: ignore[no-untyped-call]
        isolation_level=level,
        request_timeout=_ASK_S,
    )
    return {
        f"{place.topic}/{place.partition}": answer.result(_ASK_S).offset
        for place, answer in asked.items()
    }


def _places(client: Consumer | AdminClient, topic: str) -> Sequence[TopicPartition]:
    """Return all partitions of a topic from the beginning; none while it is not there."""
    with suppress(KafkaException):
        found = client.list_topics(topic, timeout=_ASK_S).topics[topic]
        if found.error is None:
            return [TopicPartition(topic, each, 0) for each in found.partitions]
    return ()


def read_all(servers: str, topic: str) -> Iterator[str]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "all", **_QUICK})
    try:
        places = _places(consumer, topic)
        admin = AdminClient({"bootstrap.servers": servers})
        ends = _ends(admin, places, IsolationLevel.READ_UNCOMMITTED)
        consumer.assign([*places])
        until_s = time.monotonic() + _READ_S
        while ends:
            if time.monotonic() > until_s:
                raise TimeoutError(f"readers do not come to the end of {ends}")
            for message in consumer.consume(10_000, _LOOK_S):
                place, offset = f"{topic}/{message.partition()}", message.offset() or 0
                if message.error() is None:
                    yield (message.value() or b"").decode()
                elif offset >= ends.get(place, 0):
                    ends.pop(place, None)
    finally:
        consumer.close()
