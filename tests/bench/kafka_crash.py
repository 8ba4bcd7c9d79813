"""A topic through state and windows into topics, while gearpy's processes and a broker are killed.

A reader outside, of whole transactions only, must see each result once and in the order of its
key, and never stand behind a transaction that hangs.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.bench import kafka_numbered, numbered
from tests.bench.crash import Blow, CrashRun, Phase, Target
from tests.bench.faults import ANY_KIND, chosen
from tests.bench.kafka_signs import SERVERS, KafkaSigns, Stall, StallWatch, read_all
from tests.bench.process_cluster import ProcessCluster
from tests.servers.kafka import Kafka
from tests.servers.process import Server

#: Readers may stand for so long behind records of a task that was killed or frozen.
STALL_MAX_S: Final = 5.0
_MAKE_S: Final = 60.0
_KINDS: Final[Mapping[str, int]] = {**ANY_KIND, "broker SIGKILL": 3, "broker SIGSTOP": 2}
_IN_EPOCH: Final[Mapping[str, int]] = {
    "executor SIGKILL": 6,
    "executor SIGSTOP": 3,
    "app master SIGKILL": 3,
    "app master SIGSTOP": 1,
    "broker SIGKILL": 3,
    "broker SIGSTOP": 1,
}
_PHASES: Final[tuple[Phase, ...]] = ("running", "recovery", "snapshot", "commit", "commit")


def kafka_plan(rng: random.Random) -> Iterator[Blow]:
    """Yield blows without end, in all phases, most of them while transactions are committed."""
    phases: list[Phase] = ["running"]
    while True:
        phases = phases or rng.sample(_PHASES * 4, 20)
        phase = phases.pop()
        kinds = _IN_EPOCH if phase in {"snapshot", "commit"} else _KINDS
        yield Blow(chosen(kinds, rng), phase)


class _AnyBroker:
    """One of several brokers, as an outsider: another each time, and never two at once."""

    def __init__(self, brokers: Sequence[Server], rng: random.Random) -> None:
        self._brokers = brokers
        self._rng = rng

    @property
    def pid(self) -> int | None:
        pids = [each.pid for each in self._brokers]
        return None if None in pids else pids[0]

    def begin(self) -> None:
        for each in self._brokers:
            if each.pid is None:
                each.begin()

    def kill(self) -> None:
        self._rng.choice(self._brokers).kill()

    def freeze(self) -> None:
        self._rng.choice(self._brokers).freeze()

    def thaw(self) -> None:
        for each in self._brokers:
            each.thaw()


class _KafkaRun(CrashRun):
    brokers: ClassVar[int] = 1

    def __init__(
        self,
        target: Target,
        cluster: ProcessCluster,
        results: Path,
        *,
        rng: random.Random,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._kafka = Kafka(results.parent / "kafka", self.brokers)
        self._kafka.start()
        servers = self._servers = self._kafka.address.plain
        admin = AdminClient({"bootstrap.servers": servers})
        names = (kafka_numbered.NUMBERS, *numbered.OUTPUTS)
        settings = {"retention.ms": "-1"}  # Its event times are long past.
        topics = [NewTopic(name, numbered.PARTITIONS, config=settings) for name in names]
        for made in admin.create_topics(topics).values():
            made.result(_MAKE_S)
        (results / SERVERS).write_text(servers)
        super().__init__(target, cluster, results, rng=rng, say=say)
        self._faults.outsiders["broker"] = _AnyBroker(self._kafka.brokers, rng)
        self._stalls = StallWatch(servers, numbered.OUTPUTS)

    def start(self, rate: float, *more: str) -> None:
        """Submit the program; it is told of the broker, too."""
        self._feeder = kafka_numbered.Feeder(self._servers, rate)
        super().start(rate, self._servers, *more)

    def end_stream(self, records: float) -> None:
        """Let the rest of the records come; wait until all of them are read."""
        self.report.end = kafka_numbered.END
        self._feeder.hurry()
        self.await_end()

    def finish(self, rate: float) -> None:
        """Write down what the reader outside sees, as if it were files."""
        super().finish(rate)
        for each in self._kafka.brokers:
            each.wait_ready()
        self._feeder.close()
        self._stalls.close()
        for name in numbered.OUTPUTS:
            (self.results / name).mkdir()
            with (self.results / name / "part.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in read_all(self._servers, name))
        longest = self._stalls.longest
        self.report.notes.append(
            f"readers stood behind transactions for {longest.lasted_s:.1f} s"
            f"{self._blows_of(longest)}"
        )
        if longest.lasted_s > STALL_MAX_S:
            self.report.problems.append(f"that is more than {STALL_MAX_S:.0f} s")

    def _blows_of(self, stall: Stall) -> str:
        """Tell where and when a stall was, the blow before it, and those in the midst of it."""
        began_s = stall.began_s - self._began_s
        blows = [each for each in self.report.struck if each.at_s < began_s + stall.lasted_s]
        before = [each for each in blows if each.at_s < began_s][-1:]
        told = ", ".join(
            f"{each.at_s:.2f} s {each.kind} ({each.phase})"
            for each in (*before, *(each for each in blows if each.at_s >= began_s))
        )
        return f", from {began_s:.2f} s on in {stall.place}; blows: {told}" if told else ""

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        for each in self._kafka.brokers:
            each.stop()


KAFKA: Final = Target(
    program=kafka_numbered.__file__,
    check=numbered.check,
    settings={
        "cluster.heartbeat-timeout-ms": "2000",
        "checkpoint.interval-ms": "200",
        "checkpoint.timeout-ms": "20000",
    },
    signs=KafkaSigns,
    run=_KafkaRun,
    healthy_s=120.0,
    end_s=180.0,
)


class _ThreeBrokersRun(_KafkaRun):
    brokers = 3


#: The same with three brokers. One that was killed stays away, as the other two are to do.
KAFKA_3: Final = replace(KAFKA, run=_ThreeBrokersRun, away_s=(15.0, 30.0))
