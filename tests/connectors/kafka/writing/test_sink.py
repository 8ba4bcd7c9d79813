"""A sink for topics of a real broker: what readers see after each crash."""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

import gearpy as gp
from gearpy.cluster.embedded.background import BackgroundRun
from gearpy.config.load import from_overrides
from gearpy.connectors.kafka.writing.lane import TransactionLane, TransactionTrouble
from gearpy.connectors.kafka.writing.sink import KafkaSink
from gearpy.core.handover.transactions import EpochMarker
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import AppId
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import PacedWriter, SinkContext, TaskLimits
from tests.bench.process_cluster import free_port
from tests.connectors.kafka.registry_build import FakeRegistry
from tests.connectors.kafka.topic_build import TopicBuild, values_of, wait_for_commits
from tests.connectors.kafka.writing.reading import make_topic, read, values
from tests.eventually import eventually
from tests.servers.kafka import Kafka, KafkaAddress

#: Long before the tests run: no clock of a client or broker says so.
TIME_MS = 1_700_000_000_000
#: Java's murmur2 of a text, made positive, of four partitions.
JAVA_PARTITIONS = {
    "21": (-973932308 & 0x7FFFFFFF) % 4,
    "foobar": (-790332482 & 0x7FFFFFFF) % 4,
    "a-little-bit-long-string": (-985981536 & 0x7FFFFFFF) % 4,
    "a-little-bit-longer-string": (-1486304829 & 0x7FFFFFFF) % 4,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": (-58897971 & 0x7FFFFFFF) % 4,
    "abc": 479470107 % 4,
}


class Runs:
    """Starts of the sink's task in a run with a name of its own; each goes on as a zombie."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers = servers
        self.topic = topic
        self.run = uuid4().hex
        self.writers: list[PacedWriter] = []

    def sink(self, **more: Any) -> KafkaSink:
        given = {"topic": self.topic, "name": self.topic, "value": "text"} | more
        made = gp.kafka_sink(servers=self.servers, **given)
        assert isinstance(made, KafkaSink)
        return made

    def start(
        self,
        incarnation: int,
        epoch: int = 0,
        prepared: Mapping[int, Any] | None = None,
        *,
        kept: Any = None,
        run: str | None = None,
        task: int = 0,
        **more: Any,
    ) -> PacedWriter:
        writer = self.sink(**more).open(task, task + 1)
        self.writers.append(writer)
        writer.begin(
            SinkContext(
                app_id=AppId(1),
                app_name="test",
                operator="sink",
                limits=TaskLimits(),
                wake=lambda: None,
            )
        )
        writer.restore(kept)
        writer.recover(prepared or {}, epoch=epoch, run=run or self.run, incarnation=incarnation)
        return writer

    def markers(self) -> list[Message]:
        """Return the markers that tasks have left by now: such a one has its id for good."""
        return read(self.servers, "gearpy-markers")

    def seen(self, count: int = 0) -> list[str]:
        """Return what readers see, as soon as it is so much: it comes just behind the answer."""
        eventually(lambda: len(values(self.servers, self.topic)) >= count)
        return values(self.servers, self.topic)


@pytest.fixture
def runs(kafka: KafkaAddress) -> Iterator[Runs]:
    made = Runs(kafka.plain, make_topic(kafka.plain))
    yield made
    for writer in made.writers:
        writer.close(completed=False)


@pytest.fixture
def own_acls(kafka: KafkaAddress) -> TopicBuild:
    return TopicBuild(kafka.plain, kafka.sasl)


def batch(*records: Any) -> Batch:
    return Batch([*records], [1] * len(records))


def begun(writer: PacedWriter) -> PacedWriter:
    """Wait until a writer has its transactional id: who takes that now comes after it."""
    eventually(lambda: writer.has_room or writer.failure is not None)
    return writer


def delivered(writer: PacedWriter) -> PacedWriter:
    eventually(lambda: writer.is_delivered or writer.failure is not None)
    assert writer.failure is None
    return writer


def refused(writer: PacedWriter) -> str:
    eventually(lambda: writer.failure is not None)
    return str(writer.failure)


def test_records_are_shown_when_their_epoch_is_complete(runs: Runs) -> None:
    writer = runs.start(1)
    writer.write_batch(batch("a", "b"))
    prepared = writer.prepare(1)
    writer.write_batch(batch("c"))
    before = runs.seen()

    writer.commit(1, prepared)
    delivered(writer)

    assert (before, runs.seen(2)) == ([], ["a", "b"])


def test_a_successor_shows_what_was_prepared(runs: Runs) -> None:
    """Whether the one before had begun to show it or not; and nothing of a later epoch."""
    first = runs.start(1)
    prepared = {}
    for epoch in (1, 2):
        first.write_batch(batch(f"r{epoch}"))
        prepared[epoch] = first.prepare(epoch)
    first.write_batch(batch("again"))
    first.commit(1, prepared[1])
    delivered(first)

    second = delivered(runs.start(2, 2, prepared, kept=first.snapshot()))
    second.write_batch(batch("again"))
    second.commit(3, second.prepare(3))
    delivered(second)
    third = delivered(runs.start(3, 3, {}, kept=second.snapshot()))

    assert third.failure is None
    assert runs.seen(3) == ["r1", "r2", "again"]


def test_what_a_dead_task_has_left_open_is_settled_by_another_process(runs: Runs) -> None:
    """Readers need not wait for its next start, which finds nothing amiss; nor does a zombie."""
    zombie = begun(runs.start(1))
    zombie.write_batch(batch("a"))
    prepared = zombie.prepare(1)
    lane_id = prepared["lane"]
    eventually(lambda: lane_id.encode() in [each.key() for each in runs.markers()])
    settings = {"bootstrap.servers": runs.servers, "transactional.id": lane_id}
    dead = Producer(settings)
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(runs.topic, b"never")
    dead.flush(30)
    other = Producer({"bootstrap.servers": runs.servers})
    other.produce(runs.topic, b"behind it")
    other.flush(30)
    before = runs.seen()

    runs.sink().settle(0, run=runs.run)

    assert (before, runs.seen(1)) == ([], ["behind it"])
    zombie.commit(1, prepared)
    delivered(zombie)
    assert delivered(runs.start(2, 1, {1: prepared})).failure is None
    assert runs.seen(2) == ["behind it", "a"]


def test_what_is_complete_and_not_shown_is_in_the_next_checkpoint(runs: Runs) -> None:
    """The stage forgets it; the writer does not, while the brokers are away."""
    away = Runs("127.0.0.1:1", runs.topic)
    away.run = runs.run
    # It has begun before: else it does not know what its topic takes.
    writer = runs.start(1)
    writer.write_batch(batch("a"))
    prepared = writer.prepare(1)
    cut_off = away.start(2)
    cut_off.commit(1, prepared)
    kept = cut_off.snapshot()
    eventually(lambda: cut_off.waits_for != "")

    assert "127.0.0.1:1" in cut_off.waits_for
    assert (cut_off.has_room, cut_off.is_delivered, cut_off.failure) == (False, False, None)
    cut_off.close(completed=False)
    delivered(runs.start(3, 2, {}, kept=kept))
    assert runs.seen(1) == ["a"]


def test_a_transaction_of_a_dead_task_is_aborted_when_its_successor_begins(runs: Runs) -> None:
    writer = begun(runs.start(1))
    writer.write_batch(batch("a"))
    prepared = {1: writer.prepare(1)}
    writer.close(completed=False)
    lane_id = prepared[1]["lane"]
    dead = Producer(
        {
            "bootstrap.servers": runs.servers,
            "transactional.id": lane_id,
            "transaction.timeout.ms": 600_000,
        }
    )
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(runs.topic, b"a")
    dead.flush(30)
    before = runs.seen()

    delivered(runs.start(2, 1, prepared))

    assert (before, runs.seen(1)) == ([], ["a"])
    assert len(read(runs.servers, runs.topic, level="read_uncommitted")) == 2


def test_a_zombie_shows_nothing(runs: Runs) -> None:
    zombie = begun(runs.start(1))
    zombie.write_batch(batch("a"))
    prepared = {1: zombie.prepare(1)}
    successor = delivered(runs.start(2, 1, prepared))

    zombie.commit(1, prepared[1])
    said = refused(zombie)
    successor.write_batch(batch("b"))
    successor.commit(2, successor.prepare(2))
    delivered(successor)

    assert "a later start of this task" in said
    assert runs.seen(2) == ["a", "b"]


def test_a_run_goes_on_from_a_checkpoint_of_another(runs: Runs) -> None:
    first = begun(runs.start(1))
    first.write_batch(batch("a"))
    prepared = {1: first.prepare(1)}

    other = delivered(runs.start(1, 1, prepared, run="other-" + runs.run))
    other.write_batch(batch("b"))
    other.commit(2, other.prepare(2))
    delivered(other)
    first.commit(1, prepared[1])

    assert "a later start" in refused(first)
    assert runs.seen(2) == ["a", "b"]


def test_a_run_goes_on_from_one_with_more_tasks(runs: Runs) -> None:
    tasks = [begun(runs.start(1, task=task)) for task in (0, 1)]
    for writer, value in zip(tasks, "ab", strict=True):
        writer.write_batch(batch(value))
    prepared = [{1: writer.prepare(1)} for writer in tasks]
    kept = [writer.snapshot() for writer in tasks]

    run = "other-" + runs.run
    writer = delivered(runs.start(1, 1, prepared[0], kept=kept[0], run=run))
    gone = runs.start(1, 1, prepared[1], kept=kept[1], run=run, task=1)
    gone.leave()
    delivered(gone).close(completed=True)
    writer.write_batch(batch("c"))
    writer.commit(2, writer.prepare(2))
    delivered(writer)
    tasks[1].commit(1, prepared[1][1])

    assert "a later start" in refused(tasks[1])
    assert sorted(runs.seen(3)) == ["a", "b", "c"]


def test_of_a_run_and_a_copy_of_its_checkpoint_the_later_one_goes_on(runs: Runs) -> None:
    """They count starts and epochs alike; neither takes what the other shows for its own."""
    former = runs.start(1)
    former.write_batch(batch("a"))
    former.commit(1, former.prepare(1))
    kept = delivered(former).snapshot()

    later = runs.start(1, 1, kept=kept)
    later.write_batch(batch("b"))
    later.commit(2, later.prepare(2))
    delivered(later)
    former.write_batch(batch("c"))
    former.commit(2, former.prepare(2))

    said = refused(former)
    assert "another run of 'test', writes with the same transactional id gearpy-" in said
    assert "for one of them, give its kafka_sink another name=" in said
    assert runs.seen(2) == ["a", "b"]


def two_shown(runs: Runs) -> dict[int, Any]:
    """Show two epochs of a record each; return what was prepared for each."""
    first = runs.start(1)
    prepared = {}
    for epoch in (1, 2):
        first.write_batch(batch(f"r{epoch}"))
        prepared[epoch] = first.prepare(epoch)
        first.commit(epoch, prepared[epoch])
    delivered(first)
    return prepared


def test_going_back_behind_what_was_shown_is_refused(runs: Runs) -> None:
    """Kafka takes nothing back; a new run may, as it was asked to."""
    prepared = two_shown(runs)

    said = refused(runs.start(2, 1, {1: prepared[1]}))

    assert "has committed epochs up to 2" in said
    assert "give its kafka_sink another name= and resume it; on a cluster" in said
    delivered(runs.start(1, 1, {1: prepared[1]}, run="other-" + runs.run))
    assert runs.seen(2) == ["r1", "r2"]


def test_a_copy_goes_on_under_another_name(runs: Runs) -> None:
    prepared = two_shown(runs)

    copy = delivered(runs.start(2, 1, {1: prepared[1]}, name="other"))
    copy.write_batch(batch("r2"))
    copy.commit(2, copy.prepare(2))

    delivered(copy)
    assert runs.seen(3) == ["r1", "r2", "r2"]


def test_a_lost_marker_is_told(runs: Runs) -> None:
    first = runs.start(1, marker_topic="m-" + runs.run)
    prepared = {}
    for epoch in (1, 2):
        first.write_batch(batch(f"r{epoch}"))
        prepared[epoch] = first.prepare(epoch)
    first.commit(1, prepared[1])
    kept = delivered(first).snapshot()

    second = runs.start(2, 2, {2: prepared[2]}, kept=kept, marker_topic="n-" + runs.run)

    assert "the topic of markers was removed" in refused(second).lower()


# -- at least once -------------------------------------------------------------------------


def test_at_least_once_all_records_are_there_before_the_epoch_ends(runs: Runs) -> None:
    writer = runs.start(1, guarantee="at-least-once")
    eventually(lambda: writer.has_room)
    writer.write_batch(batch("a", "b"))
    assert writer.prepare(1) is None

    assert runs.seen(2) == ["a", "b"]
    assert not runs.sink(guarantee="at-least-once").transactional


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_stop_needs_no_broker_where_nothing_was_read(guarantee: Any) -> None:
    """It ends well, in a task of the source and in one behind a key; what waits is told of."""
    away = f"127.0.0.1:{free_port()}"
    app = gp.StreamApp("nothing-read")
    sink = gp.kafka_sink("t", servers=away, key="key", guarantee=guarantee)
    app.read(gp.collection([{"n": 1}])).write(gp.kafka_sink("t", servers=away, name="own"))
    source = gp.kafka("t", servers=away, value="text")
    app.read(source).key_by(str).window(gp.tumbling("1s")).count().write(sink)

    with gp.start(app) as run:
        eventually(lambda: away in run.summary.progress.waits_for)
        summary = run.stop()

    assert (summary.status, summary.progress.drained) == ("terminated", True)
    assert summary.progress.records_in == 0


@pytest.mark.long
def test_brokers_that_are_away_are_waited_for(own_kafka: Kafka) -> None:
    topic = make_topic(own_kafka.address.plain)
    runs = Runs(own_kafka.address.plain, topic)
    own_kafka.broker.kill()
    once, at_once = runs.start(1), runs.start(2, guarantee="at-least-once")
    both = (once, at_once)
    eventually(lambda: all(own_kafka.address.plain in writer.waits_for for writer in both))
    assert [(writer.has_room, writer.failure) for writer in both] == [(False, None)] * 2
    own_kafka.broker.restart()
    eventually(lambda: all(writer.has_room and not writer.waits_for for writer in both))

    once.write_batch(batch("once"))
    prepared = once.prepare(1)
    own_kafka.broker.kill()
    once.commit(1, prepared)
    at_once.write_batch(batch("at once"))
    eventually(lambda: all(writer.waits_for for writer in both))
    own_kafka.broker.restart()
    at_once.prepare(1)
    delivered(once)

    assert sorted(runs.seen(2)) == ["at once", "once"]
    for writer in runs.writers:
        writer.close(completed=True)


# -- records -------------------------------------------------------------------------------


def test_keys_go_to_the_partitions_of_java_s_clients(kafka: KafkaAddress) -> None:
    topic = make_topic(kafka.plain, partitions=4)
    app = gp.StreamApp("keys")
    keys = app.read(gp.collection([*JAVA_PARTITIONS]))
    keys.write(gp.kafka_sink(topic, servers=kafka.plain, value="text", key=str))
    gp.run(app)

    eventually(lambda: len(values(kafka.plain, topic)) == len(JAVA_PARTITIONS))
    found = read(kafka.plain, topic)
    assert {(each.key() or b"").decode(): each.partition() for each in found} == JAVA_PARTITIONS


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_readers_find_all_that_a_record_has(kafka: KafkaAddress, guarantee: Any) -> None:
    """Each part where Kafka has it; without a function the time is the event time."""
    topic = make_topic(kafka.plain, partitions=4)
    app = gp.StreamApp("whole")
    numbers = app.read(gp.collection([1, 2], timestamp=lambda n: TIME_MS + n))
    options: dict[str, Any] = {"servers": kafka.plain, "key": str, "guarantee": guarantee}
    numbers.write(gp.kafka_sink(topic, **options, name="plain"))
    numbers.write(
        gp.kafka_sink(
            topic,
            **options,
            name="full",
            headers=lambda n: {"n": str(n), "none": None},
            timestamp=lambda n: TIME_MS + 100 * n,
            partition=lambda n: n,
        )
    )
    gp.run(app)

    eventually(lambda: len(values(kafka.plain, topic)) == 4)
    found = [
        (each.value(), each.key(), each.timestamp()[1] - TIME_MS, each.headers())
        for each in read(kafka.plain, topic)
        if not each.headers() or each.partition() == int(each.value() or b"0")
    ]
    assert sorted(found, key=itemgetter(2)) == [
        (b"1", b"1", 1, None),
        (b"2", b"2", 2, None),
        (b"1", b"1", 100, [("n", b"1"), ("none", None)]),
        (b"2", b"2", 200, [("n", b"2"), ("none", None)]),
    ]


def test_a_record_that_is_too_large_is_bad(kafka: KafkaAddress) -> None:
    topic = make_topic(kafka.plain, max_message_bytes="2000")
    app = gp.StreamApp("large")
    records = app.read(gp.collection(["a", "b" * 3000, "c"]))
    records.write(gp.kafka_sink(topic, servers=kafka.plain, value="text"))
    with pytest.raises(GearpyError, match="the record has 3,000 bytes, and topic"):
        gp.run(app)


def test_batches_keep_to_the_limit_of_their_topic(kafka: KafkaAddress) -> None:
    topic = make_topic(kafka.plain, max_message_bytes="2000")
    app = gp.StreamApp("many")
    records = app.read(gp.collection([f"{n:0500}" for n in range(100)]))
    records.write(gp.kafka_sink(topic, servers=kafka.plain, value="text"))
    gp.run(app)

    eventually(lambda: len(values(kafka.plain, topic)) == 100)


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_missing_topic_ends_the_application(kafka: KafkaAddress, guarantee: Any) -> None:
    app = gp.StreamApp("gone")
    records = app.read(gp.collection(["a"]))
    records.write(gp.kafka_sink("no-such-topic", servers=kafka.plain, guarantee=guarantee))

    with pytest.raises(GearpyError, match=r"'no-such-topic' of .* does not exist"):
        gp.run(app)


@pytest.mark.parametrize("by_function", [False, True])
def test_a_topic_that_is_gone_is_told_after_trouble(
    kafka: KafkaAddress,
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
    by_function: bool,  # noqa: FBT001 - a parameter
) -> None:
    """The client itself would wait half a minute for it, again and again."""
    writer = begun(runs.start(1, topic=lambda _: runs.topic) if by_function else runs.start(1))

    def fail(self: TransactionLane, records: Any, marker: EpochMarker) -> None:
        raise TransactionTrouble("no answer")

    writer.write_batch(batch("a"))
    monkeypatch.setattr(TransactionLane, "write", fail)
    admin = AdminClient({"bootstrap.servers": kafka.plain})
    admin.delete_topics([runs.topic])[runs.topic].result(60)
    writer.commit(1, writer.prepare(1))

    assert f"topic '{runs.topic}' of {kafka.plain} does not exist" in refused(writer)


def write(records: list[Any], topic: str, **options: Any) -> None:
    app = gp.StreamApp("writing")
    app.read(gp.collection(records)).write(gp.kafka_sink(topic, **options))
    gp.run(app)


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_wrong_password_ends_the_application(kafka: KafkaAddress, guarantee: Any) -> None:
    cluster = gp.KafkaCluster(kafka.sasl, user="ann", password="wrong-one")
    with pytest.raises(GearpyError, match="the login was refused: correct user=, pass") as told:
        write(["a"], make_topic(kafka.plain), servers=cluster, guarantee=guarantee)
    assert "wrong-one" not in str(told.value)


def test_a_user_without_rights_is_told_which_one_is_missing(own_acls: TopicBuild) -> None:
    """One after the other; with all of those in the docs it works, without any to a group."""
    topic, markers = own_acls.make(), own_acls.make(8)
    cluster = gp.KafkaCluster(own_acls.sasl, user="ann", password="ann-password")
    options: dict[str, Any] = {"servers": cluster, "value": "text", "marker_topic": markers}
    write_right = AclOperation.WRITE

    def lacks(right: str, option: str) -> str:
        grant = f"--allow-principal User:ann --operation {right} {option}"
        return f"user 'ann' lacks the right {right}: have it granted, such as by .* {grant}"

    all_ids = "--transactional-id gearpy- --resource-pattern-type prefixed"
    with pytest.raises(GearpyError, match=f"id 'gearpy-.*' of .*: {lacks('Write', all_ids)}"):
        write(["a"], topic, **options)
    of_topic = f"topic '{topic}' of .*: {lacks('Write', f'--topic {topic}')}"
    with pytest.raises(GearpyError, match=of_topic):
        write(["a"], topic, **options, guarantee="at-least-once")
    id_kind = ResourceType.TRANSACTIONAL_ID
    own_acls.allow(
        "ann", "gearpy-", write_right, kind=id_kind, pattern=ResourcePatternType.PREFIXED
    )
    own_acls.allow("ann", topic, AclOperation.DESCRIBE)
    with pytest.raises(GearpyError, match=of_topic):
        write(["a"], topic, **options)
    own_acls.allow("ann", topic, write_right)
    no_markers = options | {"marker_topic": f"{markers}-not-there"}
    own_acls.allow("ann", no_markers["marker_topic"], AclOperation.DESCRIBE)
    with pytest.raises(GearpyError, match=lacks("Create", f"--topic {markers}-not-there")):
        write(["a"], topic, **no_markers)
    with pytest.raises(GearpyError, match=lacks("Read", f"--topic {markers}")):
        write(["a"], topic, **options)
    own_acls.allow("ann", markers, AclOperation.READ)
    or_one = f"topic '{markers}', or one of the records, of .*: "
    with pytest.raises(GearpyError, match=or_one + lacks("Write", f"--topic {markers}")):
        write(["a"], topic, **options)
    own_acls.allow("ann", markers, write_right)
    write(["a"], topic, **options)

    wait_for_commits(own_acls.servers, topic)
    assert values_of(topic, servers=own_acls.servers, value="text") == ["a"]


# -- a schema registry ---------------------------------------------------------------------


def test_a_registry_that_is_away_is_waited_for(kafka: KafkaAddress) -> None:
    topic, port = make_topic(kafka.plain), free_port()
    form = gp.avro(registry=FakeRegistry.client_at(port), schema='"string"')
    app, found = gp.StreamApp("away"), list[str]()
    records = app.read(gp.collection(["a", "b"]))
    records.write(gp.kafka_sink(topic, servers=kafka.plain, value=form))
    with gp.start(app) as run:
        away = f"schema registry http://127.0.0.1:{port} does not answer"
        eventually(lambda: away in run.summary.progress.waits_for)
        with FakeRegistry(port) as fake:
            run.wait(60)
    assert run.summary.status == "succeeded"

    wait_for_commits(kafka.plain, topic)
    app = gp.StreamApp("reading")
    source = gp.kafka(topic, servers=kafka.plain, value=form, until="now")
    app.read(source).write(gp.to_list(found))
    with gp.start(app) as run:
        eventually(lambda: away in run.summary.progress.waits_for)
        with FakeRegistry(port, schemas=fake.schemas):
            run.wait(60)
    assert found == ["a", "b"]


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_registry_that_is_away_when_a_topic_is_first_written_holds_no_task(
    kafka: KafkaAddress, guarantee: Any
) -> None:
    """The topic is a function's: the task says what it waits for, and can be stopped."""
    topic, port = make_topic(kafka.plain), free_port()
    away = f"schema registry http://127.0.0.1:{port} does not answer"

    def started() -> BackgroundRun:
        app = gp.StreamApp("away")
        form = gp.avro(registry=FakeRegistry.client_at(port), schema='"string"')
        sink = gp.kafka_sink(
            lambda _: topic, name=topic, servers=kafka.plain, value=form, guarantee=guarantee
        )
        app.read(gp.collection(["a", "b"])).write(sink)
        return gp.start(app, config=from_overrides({"application.drain-timeout-seconds": "1"}))

    with pytest.raises(GearpyError, match=f"it waits for {away}"), started() as run:
        eventually(lambda: away in run.summary.progress.waits_for)
    with started() as run:
        eventually(lambda: away in run.summary.progress.waits_for)
        with FakeRegistry(port):
            run.wait(60)

    wait_for_commits(kafka.plain, topic)
    assert len(values(kafka.plain, topic)) == 2


def test_a_schema_that_is_refused_ends_the_application(kafka: KafkaAddress) -> None:
    app = gp.StreamApp("refused")
    records = app.read(gp.collection(["a", "b"]))
    with FakeRegistry(answers=[409]) as fake:
        form = gp.avro(registry=fake.client, schema='"string"')
        topic = make_topic(kafka.plain)
        records.write(gp.kafka_sink(topic, servers=kafka.plain, value=form))
        with pytest.raises(GearpyError, match=f"'{topic}': .* does not fit those before it"):
            gp.run(app, config=from_overrides({"application.on-error": "skip"}))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"guarantee": "once"}, "guarantee is 'once', must be one of exactly-once, at-least-once"),
        ({"compression": "rar"}, "compression is 'rar', must be one of none, gzip"),
        ({"value": "xml"}, "value is 'xml', must be one of bytes, text, json"),
        ({"topic": ""}, "topic is '', need a name"),
        ({"topic": len}, "give name="),
    ],
    ids=str,
)
def test_a_mistake_is_told_before_anything_runs(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        gp.kafka_sink(**{"topic": "t", "servers": "a:1", **more})


def test_the_promise_of_a_path_is_that_of_its_sink() -> None:
    assert gp.kafka_sink("t", servers="a:1").transactional
    assert not gp.kafka_sink("t", servers="a:1", guarantee="at-least-once").transactional
