"""Topics of a real broker as a source."""

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Producer
from google.protobuf.struct_pb2 import Struct

import gearpy as gp
from gearpy.errors import ConfigError, OperatorError
from tests.connectors.kafka.topic_build import TopicBuild, read, values_of, wait_for_commits
from tests.eventually import eventually
from tests.servers.kafka import Kafka, KafkaAddress

LIST = {
    "type": "record",
    "name": "L",
    "fields": [{"name": "n", "type": "long"}, {"name": "next", "type": ["null", "L"]}],
}


@pytest.fixture(scope="module")
def topics(kafka: KafkaAddress) -> TopicBuild:
    return TopicBuild(kafka.plain)


# -- values, times, fields of Kafka ----------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "body", "value"),
    [
        ("bytes", b"\xff", b"\xff"),
        ("text", b"caf\xc3\xa9", "café"),
        ("json", b'{"n": 1}', {"n": 1}),
        ("msgpack", b"\x81\xa1n\x01", {"n": 1}),
        (gp.avro(schema='"long"'), b"\x06", 3),
    ],
)
def test_values_are_read_as_they_were_written(
    topics: TopicBuild, form: Any, body: bytes, value: Any
) -> None:
    topic = topics.make()
    topics.send(topic, [body, None, body])
    assert read(topic, servers=topics.servers, value=form) == [
        gp.Message(value, 1),
        gp.Message(None, 2),
        gp.Message(value, 3),
    ]


def test_a_record_has_all_that_kafka_knows_of_it(topics: TopicBuild) -> None:
    topic = topics.make(2)
    topics.send(topic, ["a"], 1, key=b"k", headers=[("h", b"x"), ("h", None)])
    (record,) = values_of(topic, servers=topics.servers, value="text", key="text", records=True)
    assert record == gp.KafkaRecord("a", "k", 1, topic, 1, 0, (("h", b"x"), ("h", None)))


def test_tables_have_the_columns_of_the_schema_and_those_of_kafka(topics: TopicBuild) -> None:
    topic = topics.make()
    topics.send(topic, ['{"n": 1, "other": 2}', '{\n"n": null}'], key=b"k", headers=[("h", b"x")])
    schema = pa.schema([("n", pa.int32())])
    assert values_of(topic, servers=topics.servers, value="json", schema=schema) == [
        {"n": 1},
        {"n": None},
    ]
    first, _ = values_of(topic, servers=topics.servers, value="json", schema=schema, records=True)
    assert first == {
        "n": 1,
        "kafka_key": b"k",
        "kafka_timestamp": 1,
        "kafka_topic": topic,
        "kafka_partition": 0,
        "kafka_offset": 0,
        "kafka_headers": [{"name": "h", "value": b"x"}],
    }


@pytest.mark.parametrize("schema", [None, {"at": int, "n": int}], ids=["rows", "table"])
@pytest.mark.parametrize("time", ["at", lambda value: value["at"] * 1000], ids=["field", "call"])
def test_event_times_are_those_of_the_values(topics: TopicBuild, schema: Any, time: Any) -> None:
    topic = topics.make()
    topics.send(topic, [json.dumps({"at": at, "n": 0}) for at in (5, 7)])
    found = read(
        topic, servers=topics.servers, value="json", schema=schema, time=time, time_unit="s"
    )
    assert [message.timestamp for message in found] == [5000, 7000]


@pytest.mark.parametrize("schema", [None, {"n": int}], ids=["rows", "table"])
def test_bad_records_end_the_application_or_are_left_out(topics: TopicBuild, schema: Any) -> None:
    topic = topics.make()
    topics.send(topic, ['{"n": 1}', "{", '{"n": 3}', '{"n": 4}{"n": 5}', '{"n": 6}'])
    options = {"servers": topics.servers, "value": "json", "schema": schema}
    with pytest.raises(OperatorError, match=f"{topic}/0, offset 1: .*correct the row"):
        read(topic, **options)
    found = read(topic, **options, on_bad="skip")
    assert [(each.value["n"], each.timestamp) for each in found] == [(1, 1), (3, 3), (6, 5)]


# -- where reading begins and ends -----------------------------------------------------------


DEEP = b"[" * 20_000 + b"]" * 20_000
STRUCTS = [Struct(fields={"n": {"number_value": n}}).SerializeToString() for n in (1, 2)]


@pytest.mark.parametrize(
    ("options", "good", "bad", "values"),
    [
        *(
            ({"value": "json", "schema": {"n": int}}, [b'{"n": 1}', b'{"n": 2}'], bad, None)
            for bad in (b"null", b"\x00", b'{"n": %s}' % DEEP, b'{"n": %s}' % (b"9" * 5000))
        ),
        ({"value": "json"}, [b'{"n": 1}', b'{"n": 2}'], b'{"n": %s}' % DEEP, None),
        ({"value": gp.avro(schema=LIST)}, [b"\x02\x00", b"\x04\x00"], b"\x02\x02" * 99_999, "next"),
        ({"value": gp.protobuf(Struct)}, STRUCTS, b"\x0a\xff\xff", None),
    ],
    ids=["null", "nul", "deep column", "digits", "deep", "avro", "protobuf"],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_records_that_would_end_a_process_are_named_or_left_out(
    topics: TopicBuild, options: Any, good: list[bytes], bad: bytes, *, values: Any, at: int
) -> None:
    topic = topics.make()
    topics.send(topic, [*good[:at], bad, *good[at:]])
    expected = [{"n": n} | ({values: None} if values else {}) for n in (1, 2)]
    found = values_of(topic, servers=topics.servers, on_bad="skip", **options)
    assert found == expected
    with pytest.raises(OperatorError, match=rf"{topic}/0, offset {at}: .*on_bad=\"skip\""):
        read(topic, servers=topics.servers, **options)
    if at == 1:
        app, results, aside = gp.StreamApp("aside"), list[Any](), list[gp.BadRecord]()
        source = gp.kafka(topic, servers=topics.servers, on_bad="side", until="now", **options)
        stream = app.read(source, name="orders")
        stream.write(gp.to_list(results))
        stream.errors.write(gp.to_list(aside))
        gp.run(app)
        assert results == expected
        assert [(each.step, each.where) for each in aside] == [("orders", f"{topic}/0, offset 1")]
        assert aside[0].record == bad.decode("utf-8", "backslashreplace")


def test_records_that_are_parsed_ahead_come_behind_each_snapshot(topics: TopicBuild) -> None:
    topic, bad = topics.make(), 30_000
    bodies = [b'{"n": %d}' % number for number in range(60_000)]
    topics.send(topic, [*bodies[:bad], b"{", *bodies[bad + 1 :]])
    settings: Any = {"value": "json", "schema": {"n": int}, "on_bad": "skip", "until": "now"}
    steps = _read_by_hand(gp.kafka(topic, servers=topics.servers, **settings), None)
    given = [number for numbers, _ in steps for number in numbers]
    assert given == [number for number in range(60_000) if number != bad]
    for until in (1, len(steps) // 2, len(steps) - 1):
        before = sum(len(numbers) for numbers, _ in steps[:until])
        resumed = gp.kafka(topic, servers=topics.servers, **settings)
        behind = _read_by_hand(resumed, steps[until - 1][1])
        assert [number for numbers, _ in behind for number in numbers] == given[before:]


def _read_by_hand(source: Any, place: Any) -> list[tuple[list[int], Any]]:
    """Return the batches of the only partition, and the snapshot behind each."""
    finder, found, steps = source.discover(0, 1, ()), dict[str, Any](), list[Any]()
    try:

        def is_found() -> bool:
            found.update(finder.find())
            return bool(found)

        eventually(is_found, "the partition")
        ((name, first),) = found.items()
        reader = finder.open(name, first if place is None else place)

        def is_read() -> bool:
            batch = reader.read_batch(10_000)
            if batch is not None:
                numbers = [row["n"] for row in batch.values]
                steps.append((numbers, reader.snapshot()))
            return bool(reader.finished)

        eventually(is_read, "the end of the partition", every_s=0)
    finally:
        finder.close()
    return steps


def test_reading_begins_at_an_event_time(topics: TopicBuild) -> None:
    topic = topics.make(2)
    for partition in (0, 1):
        bodies = [json.dumps({"at": at}) for at in (100, 300, 200, 400)]
        topics.send(topic, bodies, partition, timestamp=1000)
    found = read(topic, servers=topics.servers, value="json", time="at", start=250)
    assert sorted(each.timestamp for each in found) == [300, 300, 400, 400]
    assert len(read(topic, servers=topics.servers, start=1002)) == 4
    assert read(topic, servers=topics.servers, start=2000) == []


def test_reading_begins_and_ends_at_offsets(topics: TopicBuild) -> None:
    topic = topics.make(2)
    topics.send(topic, "abcde", 0)
    topics.send(topic, "vwxyz", 1)
    options: dict[str, Any] = {"servers": topics.servers, "value": "text"}
    bounds = {"start": {f"{topic}/0": 1}, "until": {f"{topic}/0": 3, f"{topic}/1": 2}}
    assert sorted(values_of(topic, **options, **bounds)) == ["b", "c", "v", "w"]
    assert sorted(values_of(topic, **options, until=3)) == ["a", "b", "v", "w"]
    with pytest.raises(OperatorError, match=f"partition {topic}/2, which is not read: topic"):
        values_of(topic, **options, start={f"{topic}/2": 0})


def test_offsets_are_committed_to_the_group_and_can_be_begun_at(topics: TopicBuild) -> None:
    topic = topics.make()
    topics.send(topic, "abc")
    options: dict[str, Any] = {"servers": topics.servers, "value": "text", "group": f"g-{topic}"}
    assert values_of(topic, **options, start="committed") == ["a", "b", "c"]
    eventually(lambda: topics.committed(f"g-{topic}", topic) == [3])
    topics.send(topic, "de")
    assert values_of(topic, **options, start="committed") == ["d", "e"]


def test_an_open_or_aborted_transaction_is_not_read(topics: TopicBuild) -> None:
    topic = topics.make()
    producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": topic})
    producer.init_transactions(60)
    for value, is_kept in (("a", True), ("b", False), ("c", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        (producer.commit_transaction if is_kept else producer.abort_transaction)(60)
    wait_for_commits(topics.servers, topic)
    assert values_of(topic, servers=topics.servers, value="text") == ["a", "c"]
    producer.begin_transaction()
    producer.produce(topic, "d")
    producer.flush()
    assert values_of(topic, servers=topics.servers, value="text") == ["a", "c"]
    producer.abort_transaction(60)


# -- topics and partitions -------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 3])
def test_all_partitions_of_all_topics_are_read(topics: TopicBuild, parallelism: int) -> None:
    names = [topics.make(3, name=f"many{parallelism}") for _ in range(2)]
    sent = set()
    for topic in names:
        for partition in range(3):
            values = [f"{topic}/{partition}/{n}" for n in range(50)]
            topics.send(topic, values, partition)
            sent |= set(values)
    app, found = gp.StreamApp("many"), list[str]()
    source = gp.kafka(
        pattern=f"many{parallelism}-.*", servers=topics.servers, value="text", until="now"
    )
    app.read(source, parallelism=parallelism).write(gp.to_list(found))
    gp.run(app)
    assert len(found) == 300
    assert set(found) == sent


@pytest.fixture
def live(topics: TopicBuild) -> Iterator[Any]:
    runs = []

    def start(*names: str, **options: Any) -> tuple[Any, list[Any]]:
        app, found = gp.StreamApp("live"), list[Any]()
        options = {"servers": topics.servers, "value": "text", "poll": "100ms"} | options
        app.read(gp.kafka(*names, **options)).write(gp.to_list(found))
        runs.append(gp.start(app))
        return runs[-1], found

    yield start
    for run in runs:
        run.stop()


def test_a_partition_that_comes_later_is_read_from_its_first_record(
    topics: TopicBuild, live: Any
) -> None:
    topic = topics.make()
    topics.send(topic, ["old"])
    _, found = live(topic, start="latest")

    def heard() -> bool:  # It has begun when it hears what is sent.
        topics.send(topic, ["a"])
        return "a" in found

    eventually(heard)
    topics.grow(topic, 2)
    topics.send(topic, ["b"], 1)
    eventually(lambda: "b" in found)
    assert "old" not in found
    assert found.count("b") == 1


# -- what goes wrong -------------------------------------------------------------------------


def test_a_missing_topic_ends_the_application(topics: TopicBuild) -> None:
    with pytest.raises(OperatorError, match=r"topic 'nowhere' of .*: there is no such topic"):
        read("nowhere", servers=topics.servers)


def test_a_pattern_that_no_topic_fits_is_told(topics: TopicBuild, live: Any) -> None:
    name = f"later-{os.getpid()}"
    run, found = live(pattern=f"{name}.*")
    told = f"a topic that fits pattern {name}"
    eventually(lambda: told in run.summary.progress.waits_for)
    topics.send(topics.make(name=name), ["a"])
    eventually(lambda: found == ["a"])
    eventually(lambda: run.summary.progress.waits_for == "")


def test_a_wrong_password_ends_the_application(topics: TopicBuild, kafka: KafkaAddress) -> None:
    cluster = gp.KafkaCluster(kafka.sasl, user="ann", password="wrong")
    with pytest.raises(OperatorError, match="the login was refused: correct user=, password="):
        read(topics.make(), servers=cluster)


def test_a_user_without_rights_ends_the_application(
    topics: TopicBuild, kafka: KafkaAddress
) -> None:
    topic = topics.make()
    cluster = gp.KafkaCluster(kafka.sasl, user="ann", password="ann-password")
    lacks = "user 'ann' lacks the right Read: .* --allow-principal User:ann --operation Read"
    with pytest.raises(OperatorError, match=f"'{topic}' of .*: {lacks} --topic {topic}: "):
        read(topic, servers=cluster)
    topics.allow("ann", topic)
    topics.send(topic, ["a"])
    assert values_of(topic, servers=cluster, value="text") == ["a"]
    with pytest.raises(OperatorError, match=f"{lacks} --group mine: "):
        read(topic, servers=cluster, group="mine", start="committed")


@pytest.mark.parametrize(("policy", "values"), [("earliest", ["d", "e"]), ("latest", [])])
def test_records_that_are_gone_are_stepped_over_if_that_is_asked_for(
    topics: TopicBuild, policy: str, values: list[str]
) -> None:
    topic = topics.make()
    topics.send(topic, "abcde")
    topics.forget(topic, 3)
    options: dict[str, Any] = {"servers": topics.servers, "start": {f"{topic}/0": 1}}
    options["value"] = "text"
    with pytest.raises(OperatorError, match=r"offset 1 is not there any more: its records are"):
        read(topic, **options)
    assert values_of(topic, **options, out_of_range=policy) == values


@pytest.mark.parametrize(
    ("policy", "values"), [("fail", []), ("earliest", ["n0", "n1", "n2", "n3"]), ("latest", [])]
)
@pytest.mark.parametrize("is_anew", [True, False], ids=["made-again", "retention"])
def test_a_run_that_goes_on_tells_of_records_that_are_gone(
    topics: TopicBuild,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    is_anew: bool,
    policy: Any,
    values: list[str],
) -> None:
    topic = topics.make()
    topics.send(topic, ["a", "b"])

    def start() -> tuple[Any, list[Any]]:
        app, found = gp.StreamApp("gone"), list[Any]()
        source = gp.kafka(topic, servers=topics.servers, value="text", out_of_range=policy)
        app.read(source).write(gp.to_list(found))
        return gp.start(app, checkpoint=tmp_path), found

    run, found = start()
    with run:
        eventually(lambda: found == ["a", "b"])
    new = [f"n{at}" for at in range(4)]
    if is_anew:
        topics.make_again(topic)
        topics.send(topic, new)
    else:
        topics.send(topic, ["c", *new])
        topics.forget(topic, 3)
    run, found = start()
    what = "its topic was deleted and made again since offset 2" if is_anew else "1 were removed"
    if policy == "fail":
        with pytest.raises(OperatorError, match=f"{topic}/0: .*{what}.* give out_of_range="):
            run.wait(60)
        return
    lost = (0 if policy == "earliest" else 4) + (not is_anew)
    with run:
        eventually(lambda: f"; {lost} records are left out" in caplog.text)
        topics.send(topic, ["z"])
        eventually(lambda: found == [*values, "z"])
    assert what in caplog.text


def test_a_table_cannot_be_read_of_topics(topics: TopicBuild) -> None:
    app = gp.StreamApp("join")
    left = app.read(gp.collection([{"n": 1}]))
    table = gp.kafka("a", servers="a:1", value="json", until="now")
    joined = left.join_table(table, on="n")
    joined.write(gp.to_list([]))
    with pytest.raises(ConfigError, match=r"kafka\(a\) cannot be a table"):
        gp.run(app)


def test_mistakes_of_arguments_are_told() -> None:
    with pytest.raises(ConfigError, match="schema= needs values that are objects"):
        gp.kafka("a", servers="a:1", value="text", schema={"n": int})
    with pytest.raises(ConfigError, match="time='at' needs values with fields"):
        gp.kafka("a", servers="a:1", time="at")
    with pytest.raises(ConfigError, match="time='at' is no column: there are n"):
        gp.kafka("a", servers="a:1", value="json", time="at", schema={"n": int})
    with pytest.raises(ConfigError, match="schema has 'kafka_key', which records=True adds"):
        gp.kafka("a", servers="a:1", value="json", records=True, schema={"kafka_key": bytes})


@pytest.mark.long
def test_a_broker_that_is_away_is_waited_for(own_kafka: Kafka, live: Any) -> None:
    topics, broker = TopicBuild(own_kafka.address.plain), own_kafka.broker
    topic = topics.make(2)
    topics.send(topic, ["a"])
    broker.kill()
    run, found = live(topic, servers=topics.servers)

    def waits_for() -> str:
        return str(run.summary.progress.waits_for)

    eventually(lambda: topics.servers in waits_for(), "it says what it waits for")
    broker.restart()
    eventually(lambda: found == ["a"], "it reads")
    eventually(lambda: waits_for() == "", "it waits no more")

    broker.kill()
    eventually(lambda: topics.servers in waits_for(), "it says so again")
    broker.restart()
    TopicBuild(topics.servers).send(topic, ["b"], 1)
    eventually(lambda: found == ["a", "b"], "it reads on")
    eventually(lambda: waits_for() == "", "it waits no more")


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_run_goes_on_where_its_last_epoch_ended(
    topics: TopicBuild, tmp_path: Path, start: Any
) -> None:
    topic = topics.make(2)
    topics.send(topic, ["before"])
    output = tmp_path / "output"

    def run() -> Any:
        app = gp.StreamApp("again")
        source = gp.kafka(
            topic, servers=topics.servers, value="text", start=start, poll="100ms", group=topic
        )
        app.read(source).map(lambda text: {"text": text}).write(gp.jsonl_folder(output))
        return gp.start(app, checkpoint=tmp_path / "checkpoint")

    def shown() -> list[str]:
        lines = [line for file in output.glob("*.jsonl") for line in file.read_text().splitlines()]
        return sorted(json.loads(line)["text"] for line in lines)

    with run():
        number = itertools.count()

        def heard() -> bool:
            topics.send(topic, [f"a{next(number)}"], 1)
            return topics.committed(topic, topic, 2)[1] > 0

        eventually(heard)
    topics.grow(topic, 3)
    topics.send(topic, ["b"], 1)
    topics.send(topic, ["c"], 2)
    with run():
        eventually(lambda: {"b", "c"} <= set(shown()))
    found = shown()
    assert len(found) == len(set(found))
    sent = {f"a{at}" for at in range(next(number))}
    assert {text for text in found if text.startswith("a")} <= sent
    assert ("before" in found) == (start == "earliest")
    if start == "earliest":
        assert set(found) == sent | {"before", "b", "c"}
