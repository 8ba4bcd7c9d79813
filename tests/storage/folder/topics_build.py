"""Brokers in memory, whose clients count how often they ask."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from gearpy.storage.folder.kafka import TopicClient, TopicPlace, TopicRecord


class Brokers:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.records: dict[TopicPlace, list[TopicRecord]] = defaultdict(list)
        self.ends: Counter[TopicPlace] = Counter()

    def compact(self) -> None:
        """Keep the newest record of each key, be it a tombstone: those stay for a day."""
        for place, records in self.records.items():
            newest = {each.key: each for each in records}
            self.records[place] = sorted(newest.values(), key=lambda each: each.offset)

    def remove(self, topic: str) -> None:
        for partition in range(self.counts.pop(topic, 0)):
            self.records.pop(TopicPlace(topic, partition), None)
            self.ends.pop(TopicPlace(topic, partition), None)


class CountingTopics(TopicClient):
    """Client of one process; ``asked`` has each question to the brokers, in order."""

    def __init__(self, brokers: Brokers) -> None:
        super().__init__({})
        self._brokers = brokers
        self.asked: list[str] = []

    def partitions(self, topic: str) -> int:
        self.asked.append("partitions")
        return self._brokers.counts.get(topic, 0)

    def all_partitions(self) -> dict[str, int]:
        self.asked.append("topics")
        return dict(self._brokers.counts)

    def make(self, place: TopicPlace) -> int:
        self.asked.append("make")
        counts = self._brokers.counts
        counts[place.topic] = max(counts.get(place.topic, 0), place.partition + 1)
        return counts[place.topic]

    def send(self, place: TopicPlace, records: Mapping[str, bytes | None]) -> list[TopicRecord]:
        self.asked.append("send")
        assert place.partition < self._brokers.counts[place.topic]
        first = self._brokers.ends[place]
        stored = [
            TopicRecord(first + at, 7, key, value)
            for at, (key, value) in enumerate(records.items())
        ]
        self._brokers.records[place] += stored
        self._brokers.ends[place] += len(stored)
        return stored

    def ends(self, places: Iterable[TopicPlace]) -> dict[TopicPlace, int]:
        self.asked.append("ends")
        return {place: self._brokers.ends[place] for place in places}

    def records(self, place: TopicPlace, begin: int, end: int) -> Iterator[TopicRecord]:
        if begin < end:
            self.asked.append("records")
        of_place = [*self._brokers.records[place]]
        return (each for each in of_place if begin <= each.offset < end)
