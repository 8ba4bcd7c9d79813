"""Schemas in a real registry, Apicurio: forms that change, and schemas that do not fit."""

import json
import urllib.request
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

import gearpy as gp
from gearpy.connectors.kafka.registry import Reference, RegistrySchema, SchemaRegistry
from gearpy.errors import GearpyError
from tests.connectors.kafka.topic_build import TopicBuild, values_of, wait_for_commits
from tests.servers.kafka import KafkaAddress

pytestmark = pytest.mark.long

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}
#: A later version of it: a field has gone, and one has come that has a default.
ORDER_2: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": "double", "default": 1.0},
    ],
}
#: None of the versions before can be read by it.
ORDER_X: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}],
}
TEXT, NUMBER, MESSAGE = (
    FieldDescriptorProto.TYPE_STRING,
    FieldDescriptorProto.TYPE_INT64,
    FieldDescriptorProto.TYPE_MESSAGE,
)


@pytest.fixture
def topic(kafka: KafkaAddress) -> str:
    return TopicBuild(kafka.plain).make(name=uuid4().hex)


def demand(url: str, subject: str, compatibility: str) -> None:
    """Let a registry refuse schemas that are not compatible with those before them."""
    request = urllib.request.Request(  # noqa: S310 - of this machine
        f"{url}/config/{subject}",
        data=json.dumps({"compatibility": compatibility}).encode(),
        method="PUT",
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60):  # noqa: S310 - of this machine
        pass


def write(records: list[Any], topic: str, kafka: KafkaAddress, form: Any) -> None:
    app = gp.StreamApp("writing")
    app.read(gp.collection(records)).write(gp.kafka_sink(topic, servers=kafka.plain, value=form))
    gp.run(app)
    wait_for_commits(kafka.plain, topic)


def message(
    pool: DescriptorPool, file: str, name: str, fields: Mapping[str, Any], *imports: str
) -> type[Any]:
    """Return the class of a message, as protoc would have made it of a file."""
    made = FileDescriptorProto(name=file, package="shop", syntax="proto3", dependency=imports)
    of = made.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), start=1):
        label = FieldDescriptorProto.LABEL_OPTIONAL
        if isinstance(kind, str):
            of.field.add(name=field, number=number, type=MESSAGE, label=label, type_name=kind)
        else:
            of.field.add(name=field, number=number, type=kind, label=label)
    pool.AddSerializedFile(made.SerializeToString())
    found: type[Any] = GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))
    return found


def test_avro_of_two_versions_is_read_by_one(
    kafka: KafkaAddress, schema_registry: str, topic: str
) -> None:
    demand(schema_registry, f"{topic}-value", "BACKWARD")
    write([{"id": 1, "item": "a"}], topic, kafka, gp.avro(registry=schema_registry, schema=ORDER))
    write(
        [{"id": 2, "amount": 5.0}], topic, kafka, gp.avro(registry=schema_registry, schema=ORDER_2)
    )

    by_one = gp.avro(registry=schema_registry, schema=ORDER_2)
    assert values_of(topic, servers=kafka.plain, value=by_one) == [
        {"id": 1, "amount": 1.0},
        {"id": 2, "amount": 5.0},
    ]
    as_written = gp.avro(registry=schema_registry)
    assert values_of(topic, servers=kafka.plain, value=as_written) == [
        {"id": 1, "item": "a"},
        {"id": 2, "amount": 5.0},
    ]


def test_a_schema_that_does_not_fit_ends_the_application(
    kafka: KafkaAddress, schema_registry: str, topic: str
) -> None:
    """The error has the reason of the registry; nothing was written."""
    demand(schema_registry, f"{topic}-value", "BACKWARD")
    write([{"id": 1, "item": "a"}], topic, kafka, gp.avro(registry=schema_registry, schema=ORDER))
    form = gp.avro(registry=schema_registry, schema=ORDER_X)

    with pytest.raises(
        GearpyError, match=f"topic '{topic}': .*does not fit those before it: .*fields/0"
    ):
        write([{"id": "2"}], topic, kafka, form)
    with pytest.raises(GearpyError, match="offset 0: is no Avro of its schema: SchemaResolution"):
        values_of(topic, servers=kafka.plain, value=form)
    assert len(values_of(topic, servers=kafka.plain)) == 1


def test_avro_that_refers_to_other_schemas_is_read(
    kafka: KafkaAddress, schema_registry: str, topic: str
) -> None:
    registry = SchemaRegistry(schema_registry)
    user = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
    order = {"type": "record", "name": "Order", "fields": [{"name": "by", "type": "User"}]}
    registry.register(f"{topic}-user", RegistrySchema(json.dumps(user)))
    references = [Reference("User", f"{topic}-user", 1)]
    number = registry.register(
        f"{topic}-value", RegistrySchema(json.dumps(order), "AVRO", references)
    )
    body = b"\x00" + number.to_bytes(4, "big") + b"\x06ann"
    TopicBuild(kafka.plain).send(topic, [body])

    form = gp.avro(registry=schema_registry)
    assert values_of(topic, servers=kafka.plain, value=form) == [{"by": {"name": "ann"}}]


def test_protobuf_with_imports_goes_through_a_topic(
    kafka: KafkaAddress, schema_registry: str, topic: str
) -> None:
    """Imported files are registered before those that import them; a later version may add."""
    user_file, order_file = f"{topic}/user.proto", f"{topic}/order.proto"
    first, later, other = DescriptorPool(), DescriptorPool(), DescriptorPool()
    for pool in (first, later):
        message(pool, user_file, "User", {"name": TEXT})
    fields = {"id": NUMBER, "by": ".shop.User"}
    old = message(first, order_file, "Order", fields, user_file)
    new = message(later, order_file, "Order", {**fields, "item": TEXT}, user_file)
    wrong = message(other, order_file, "Order", {"id": NUMBER, "by": TEXT})
    demand(schema_registry, f"{topic}-value", "BACKWARD")

    ann = {"name": "ann"}
    write([{"id": 1, "by": ann}], topic, kafka, gp.protobuf(old, registry=schema_registry))
    by_new = gp.protobuf(new, registry=schema_registry)
    write([{"id": 2, "by": ann, "item": "a"}], topic, kafka, by_new)

    assert values_of(topic, servers=kafka.plain, value=by_new) == [
        {"id": 1, "by": ann, "item": ""},
        {"id": 2, "by": ann, "item": "a"},
    ]
    with pytest.raises(
        GearpyError, match=rf"topic '{topic}': .*does not fit those before it: .*\.shop\.User"
    ):
        write([{"id": 3}], topic, kafka, gp.protobuf(wrong, registry=schema_registry))


def test_records_of_no_known_schema_are_told(
    kafka: KafkaAddress, schema_registry: str, topic: str
) -> None:
    """Their producer uses another registry; or they are of Protobuf."""
    topics = TopicBuild(kafka.plain)
    topics.send(topic, [b"\x00\x00\x0f\x42\x40\x02"])
    form = gp.avro(registry=schema_registry)
    with pytest.raises(GearpyError, match="/schemas/ids/1000000: it has no such schema: is it the"):
        values_of(topic, servers=kafka.plain, value=form)

    order = message(DescriptorPool(), f"{topic}.proto", "Order", {"id": NUMBER})
    topic = topics.make(name=uuid4().hex)
    write([{"id": 1}], topic, kafka, gp.protobuf(order, registry=schema_registry))
    with pytest.raises(GearpyError, match=r"offset 0: its schema, .* is PROTOBUF and none of"):
        values_of(topic, servers=kafka.plain, value=form)
