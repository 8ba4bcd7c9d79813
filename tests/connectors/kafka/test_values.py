"""Forms of values in topics: what is written is read, and what is none is refused."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileOptions,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from gearpy.cluster.programs.compared import ComparedPrograms
from gearpy.connectors.kafka.avro import avro
from gearpy.connectors.kafka.protobuf import protobuf
from gearpy.connectors.kafka.registry import (
    RegistryAway,
    RegistryRefused,
    RegistrySchema,
    SchemaRegistry,
)
from gearpy.connectors.kafka.values import ValueForm, form_of
from gearpy.errors import ConfigError, GearpyError
from gearpy.ids import ProcessorId
from gearpy.task.api.application import Graph, Processor, StreamApplication
from gearpy.task.api.failure import is_final
from gearpy.task.api.interfaces import Task
from tests.connectors.kafka.registry_build import FakeRegistry, server_that_says

CLICK = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": "page", "type": "string"}, {"name": "n", "type": "int"}],
}
#: A later version of it.
CLICK_2 = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "page", "type": "string"},
        {"name": "user", "type": "string", "default": "nobody"},
    ],
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def begun(given_form: Any) -> ValueForm:
    form = form_of("kafka(a)", "value", given_form)
    form.begin("kafka(a)")
    return form


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with FakeRegistry() as fake:
        yield fake.client


# -- plain forms -----------------------------------------------------------------------------


@given(values=st.lists(JSON))
@pytest.mark.parametrize("name", ["json", "msgpack"])
def test_plain_data_is_read_as_it_was_written(name: str, values: list[Any]) -> None:
    form = begun(name)
    assert form.decode(form.encode("t", values)) == values


@given(values=st.lists(st.text(st.characters(codec="utf-8"))))
def test_text_is_read_as_it_was_written(values: list[str]) -> None:
    form = begun("text")
    assert form.decode(form.encode("t", values)) == values


def test_bytes_are_as_they_are() -> None:
    assert begun("bytes").decode([b"\xff", b""]) == [b"\xff", b""]
    assert begun("bytes").encode("t", [b"\xff"]) == [b"\xff"]


@pytest.mark.parametrize(
    "form",
    ["bytes", "text", "json", "msgpack", avro(schema=CLICK), protobuf(Duration)],
    ids=lambda form: form if isinstance(form, str) else form.name,
)
def test_a_record_that_deletes_its_key_is_none(form: Any) -> None:
    assert begun(form).decode([None]) == [None]


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("text", b"\xff"),
        ("json", b"{"),
        ("json", b""),
        ("msgpack", b"\xc1"),
        ("msgpack", b"\x01\x02"),
        (avro(schema=CLICK), b"\x04a"),
        (avro(schema=CLICK), b"\x02a\x02\x02"),
        (protobuf(Duration), b"\xff"),
    ],
)
def test_bytes_of_another_form_are_refused(form: Any, body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are of the libraries
        begun(form).decode([body])


def test_a_value_of_another_form_is_refused() -> None:
    with pytest.raises(TypeError, match="the value is str, not bytes: choose value='text'"):
        begun("bytes").encode("t", ["a"])
    with pytest.raises(TypeError, match="a value is no text: choose value='json'"):
        begun("text").encode("t", [1])
    with pytest.raises(TypeError, match="JSON has no form for object"):
        begun("json").encode("t", [object()])


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"kafka\(a\): value is 'xml', must be one of bytes, "):
        form_of("kafka(a)", "value", "xml")


# -- Avro ------------------------------------------------------------------------------------


def test_avro_without_a_registry_has_nothing_before_it() -> None:
    form = begun(avro(schema=CLICK))
    assert form.encode("t", [{"page": "a", "n": 3}]) == [b"\x02a\x06"]
    assert form.decode([b"\x02a\x06"]) == [{"page": "a", "n": 3}]


def test_avro_is_read_by_the_schema_that_a_record_names(registry: SchemaRegistry) -> None:
    (body,) = begun(avro(registry=registry, schema=json.dumps(CLICK))).encode(
        "t", [{"page": "a", "n": 3}]
    )
    assert body == b"\x00\x00\x00\x00\x01\x02a\x06"
    assert begun(avro(registry=registry.url)).decode([body]) == [{"page": "a", "n": 3}]


def test_avro_of_an_older_writer_is_read_by_the_schema_that_is_given(
    registry: SchemaRegistry,
) -> None:
    bodies = begun(avro(registry=registry, schema=CLICK)).encode("t", [{"page": "a", "n": 3}])
    form = begun(avro(registry=registry, schema=CLICK_2))
    assert form.decode(bodies) == [{"page": "a", "user": "nobody"}]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"page": 5, "n": 1}, "Click.page is <5> of type <class 'int'> expected string"),
        ({"page": "a", "n": 2**40}, "Click.n is <1099511627776> .* expected int"),
        ({"page": "a", "n": 1.5}, "Click.n is <1.5> .* expected int"),
        ({"page": "a"}, "Click.n"),
        ({"page": "a", "n": 1, "m": 2}, "Click has no field 'm'; it has page, n: add it"),
        ("a", "Click"),
    ],
)
def test_a_value_that_is_none_of_the_avro_schema_is_refused(value: Any, told: str) -> None:
    """Its field is named; a number that would be another one for readers is not written."""
    with pytest.raises(ValueError, match=f"the value does not fit the Avro schema: .*{told}"):
        begun(avro(schema=CLICK)).encode("t", [value])


INNER = {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]}
WIDE = {**INNER, "name": "Wide", "fields": [*INNER["fields"], {"name": "b", "type": "int"}]}
OUTER = {
    "type": "record",
    "name": "Outer",
    "namespace": "of",
    "fields": [
        {"name": "one", "type": ["null", INNER, WIDE]},
        {"name": "list", "type": ["null", {"type": "array", "items": "Inner"}]},
        {"name": "by", "type": {"type": "map", "values": ["null", "Wide"]}, "default": {}},
        {"name": "note", "type": ["string", "null"]},
    ],
}


def test_a_field_that_may_be_null_may_be_left_out() -> None:
    form = begun(avro(schema=OUTER))
    value = {"one": {"a": 1, "b": 2}, "list": [{"a": 1}], "by": {"x": {"a": 1, "b": 2}, "y": None}}
    named = {"one": ("of.Inner", {"a": 1})}

    found = form.decode(form.encode("t", [value, named, {}]))

    assert found == [
        {**value, "note": None},
        {"one": {"a": 1}, "list": None, "by": {}, "note": None},
        {"one": None, "list": None, "by": {}, "note": None},
    ]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"one": {"a": 1, "b": 2, "c": 3}}, "of.Wide has no field 'c'; it has a, b: "),
        ({"one": ("of.Inner", {"a": 1, "c": 2})}, "of.Inner has no field 'c'; it has a: "),
        ({"list": [{"a": 1}, {"a": 1, "b": 2}]}, "of.Inner has no field 'b'; it has a: "),
        ({"by": {"x": {"a": 1, "b": 2, "c": 3}}}, "of.Wide has no field 'c'; it has a, b: "),
        ({"one": {"a": 1, "b": 2}, "more": 1}, "of.Outer has no field 'more'; it has one, "),
    ],
)
def test_a_field_that_an_avro_schema_does_not_have_is_named(value: Any, told: str) -> None:
    """Nothing is left out without a word, however deep it is."""
    with pytest.raises(ValueError, match=f"the value does not fit the Avro schema: {told}"):
        begun(avro(schema=OUTER)).encode("t", [value])


def test_avro_of_many_types_is_read_as_it_was_written() -> None:
    kinds: dict[str, Any] = {
        "at": {"type": "long", "logicalType": "timestamp-millis"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        "kind": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
        "tags": {"type": "array", "items": "string"},
        "by": {"type": "map", "values": "double"},
        "next": ["null", "All"],
    }
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    form = begun(avro(schema={"type": "record", "name": "All", "fields": fields}))
    last = {
        "at": datetime(2026, 11, 22, tzinfo=UTC),
        "price": Decimal("1.50"),
        "kind": "B",
        "tags": ["a"],
        "by": {"x": 1.5},
        "next": None,
    }
    first = {**last, "next": last}
    assert form.decode(form.encode("t", [first])) == [first]


def test_avro_that_does_not_fit_is_refused(registry: SchemaRegistry) -> None:
    with pytest.raises(ValueError, match="does not name a schema of the registry"):
        begun(avro(registry=registry)).decode([b"\x02a\x06"])
    with pytest.raises(GearpyError, match="it has no such schema: is it the registry"):
        begun(avro(registry=registry)).decode([b"\x00\x00\x00\x00\x09\x02a\x06"])
    bodies = begun(avro(registry=registry, schema='"string"')).encode("t", ["a"])
    with pytest.raises(ValueError, match="is no Avro of its schema: SchemaResolutionError"):
        begun(avro(registry=registry, schema=CLICK)).decode(bodies)
    with pytest.raises(ConfigError, match="the Avro schema is none"):
        begun(avro(schema={"type": "nothing"}))
    with pytest.raises(ConfigError, match="avro: schema is no JSON"):
        avro(schema="{")
    with pytest.raises(ConfigError, match="avro: give registry= or schema="):
        avro()
    with pytest.raises(ConfigError, match="a sink needs the schema to write by"):
        begun(avro(registry=registry)).encode("t", [1])


# -- Protobuf --------------------------------------------------------------------------------


def message_of(**fields: Any) -> Any:
    """Return the class of a message with fields of these types; in brackets, lists; "map", maps."""
    pool, made = DescriptorPool(), FileDescriptorProto(name="all.proto", package="all")
    made.syntax = "proto3"
    for each in (timestamp_pb2, duration_pb2, struct_pb2, wrappers_pb2, any_pb2):
        pool.AddSerializedFile(each.DESCRIPTOR.serialized_pb)
        made.dependency.append(each.DESCRIPTOR.name)
    of = made.message_type.add(name="All")
    for number, (name, given_kind) in enumerate(fields.items(), start=1):
        is_list = isinstance(given_kind, list)
        kind = given_kind[0] if is_list else given_kind
        label = FieldDescriptorProto.LABEL_REPEATED if is_list else 1
        field = of.field.add(name=name, number=number, label=label)
        if isinstance(kind, str):
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{kind}"
        else:
            field.type = kind
    inner = of.nested_type.add(name="ByNameEntry")
    inner.options.map_entry = True
    inner.field.add(name="key", number=1, type=TEXT, label=1)
    inner.field.add(name="value", number=2, type=MESSAGE, label=1, type_name=f".{WELL}.Timestamp")
    by_name = of.field.add(name="by_name", number=99, type=MESSAGE, label=3)
    by_name.type_name = ".all.All.ByNameEntry"
    pool.AddSerializedFile(made.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("all.All"))


WELL = "google.protobuf"
TEXT, MESSAGE = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_MESSAGE
ALL = message_of(
    at=f"{WELL}.Timestamp",
    ats=[f"{WELL}.Timestamp"],
    lasted=f"{WELL}.Duration",
    name=f"{WELL}.StringValue",
    raw=f"{WELL}.BytesValue",
    count=f"{WELL}.Int64Value",
    yes=f"{WELL}.BoolValue",
    more=f"{WELL}.Struct",
    values=f"{WELL}.ListValue",
    any=f"{WELL}.Any",
    number=FieldDescriptorProto.TYPE_INT64,
    data=FieldDescriptorProto.TYPE_BYTES,
    inner="all.All",
)
_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_TIMES = st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001 - see there
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "at": st.none() | _TIMES,
    "ats": st.lists(_TIMES, max_size=2),
    "lasted": st.none() | st.timedeltas(timedelta(days=-3_000_000), timedelta(days=3_000_000)),
    "name": st.none() | st.text(),
    "raw": st.none() | st.binary(),
    "count": st.none() | st.integers(-(2**63), 2**63 - 1),
    "yes": st.none() | st.booleans(),
    "more": st.none() | st.dictionaries(st.text(), _JSON_VALUES, max_size=3),
    "values": st.none() | st.lists(_JSON_VALUES, max_size=3),
    "any": st.none() | st.fixed_dictionaries({"type_url": st.text(), "value": st.binary()}),
    "number": st.integers(-(2**63), 2**63 - 1),
    "data": st.binary(),
    "by_name": st.dictionaries(st.text(), _TIMES, max_size=2),
}


@given(st.fixed_dictionaries({**_FIELDS, "inner": st.none()}), st.booleans())
def test_protobuf_is_read_as_it_was_written(value: dict[str, Any], is_nested: bool) -> None:  # noqa: FBT001 - drawn
    """Times, durations, wrappers and JSON are values of Python; bytes are bytes, both ways."""
    form = begun(protobuf(ALL))
    if is_nested:
        value = {**value, "inner": value}

    assert form.decode(form.encode("t", [value])) == [value]


def test_well_known_types_of_protobuf_are_values_of_their_own() -> None:
    at = datetime(2026, 11, 22, 12, 0, 0, 250_000, tzinfo=UTC)
    east = at.astimezone(timezone(timedelta(hours=2)))
    for kind, value in (
        (Timestamp, at),
        (Duration, timedelta(days=-1, microseconds=1)),
        (Struct, {"a": [1.5, None, {"b": True}]}),
    ):
        form = begun(protobuf(kind))
        assert form.decode(form.encode("t", [value, kind()]))[0] == value
    form = begun(protobuf(Timestamp))
    assert form.encode("t", [east, "2026-11-22T12:00:00.25Z"]) == form.encode("t", [at, at])
    assert form.decode(form.encode("t", [Timestamp(seconds=1, nanos=1_999)])) == [
        datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC)
    ]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"ats": [5]}, "ats: 5 is no datetime"),
        ({"at": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001 - that is the mistake
        ({"lasted": 5}, "5 is no timedelta"),
        ({"more": [1]}, "is no dict"),
        ({"more": {"a": {1}}}, "is no value of JSON"),
        ({"values": {}}, "is no list"),
        ({"inner": {"number": "1"}}, "inner: number: 'str' object"),
        ({"nothing": 1}, "all.All has no field 'nothing'; it has at, ats, "),
        (5, "5 is no dict of the fields of all.All"),
    ],
)
def test_what_protobuf_cannot_have_is_refused(value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=f"the value is no All: .*{told}"):
        begun(protobuf(ALL)).encode("t", [value])


def test_protobuf_with_all_kinds_of_fields() -> None:
    field = FieldDescriptorProto(name="f", number=3, type=FieldDescriptorProto.TYPE_INT64)
    form = begun(protobuf(DescriptorProto))
    (found,) = form.decode(form.encode("t", [DescriptorProto(name="m", field=[field])]))
    (of,) = found["field"]
    assert (found["name"], of["name"], of["number"], of["type"], of["label"], of["options"]) == (
        ("m", "f", 3, "TYPE_INT64", None, None)
    )
    form, struct = begun(protobuf(Struct)), Struct()
    struct["a"] = 1.5
    (found,) = form.decode(form.encode("t", [struct]))
    assert found == {"a": 1.5}


def test_protobuf_is_written_from_dicts() -> None:
    form = begun(protobuf(FileOptions))
    assert form.encode("t", [{"go_package": "g"}]) == form.encode(
        "t", [FileOptions(go_package="g")]
    )
    with pytest.raises(ValueError, match="the value is no FileOptions: "):
        form.encode("t", [{"nothing": 1}])


@pytest.mark.parametrize(
    ("message", "head"),
    [
        (Duration, b"\x00"),  # The first of its file.
        (DescriptorProto.ExtensionRange, b"\x04\x04\x00"),  # The first in the third.
    ],
)
def test_protobuf_of_a_registry_names_its_place(
    registry: SchemaRegistry, message: Any, head: bytes
) -> None:
    form = begun(protobuf(message, registry=registry))
    (body,) = form.encode("t", [message()])
    assert body == b"\x00\x00\x00\x00\x01" + head
    assert form.decode([body]) == begun(protobuf(message)).decode([b""])
    for cut in range(1, len(body)):
        with pytest.raises(ValueError, match=r"does not name a schema|is cut off"):
            form.decode([body[:cut]])


def test_protobuf_of_no_class_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no class that protoc has made"):
        protobuf(int)


# -- registry --------------------------------------------------------------------------------


def test_a_registry_that_refuses_or_is_away_is_named(registry: SchemaRegistry) -> None:
    with pytest.raises(GearpyError, match="the login was refused: correct user= and pass") as told:
        SchemaRegistry(registry.url, user="ann", password="wrong").register(
            "s", RegistrySchema("{}")
        )
    assert is_final(told.value)
    with pytest.raises(RegistryAway, match=r"registry http://127\.0\.0\.1:1 does not answer"):
        SchemaRegistry("http://127.0.0.1:1").schema(1)
    assert "secret" not in repr(registry)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (409, r"the schema does not fit those before it: .* \(status 409: no such luck\)"),
        (422, r"it refuses the schema: correct it \(status 422: no such luck\)"),
    ],
)
def test_a_schema_that_is_refused_is_told_with_the_reason(status: int, said: str) -> None:
    with FakeRegistry(answers=[status]) as fake:
        with pytest.raises(GearpyError, match=said) as told:
            begun(avro(registry=fake.client, schema=CLICK)).prepare("t")
        assert is_final(told.value)


def test_a_registry_that_has_trouble_is_as_if_it_were_away() -> None:
    with FakeRegistry(answers=[503]) as fake:
        form = begun(avro(registry=fake.client, schema=CLICK))
        with pytest.raises(RegistryAway, match="status 503: no such luck"):
            form.prepare("t")
        form.prepare("t")
    form.prepare("t")


@pytest.mark.parametrize(
    "url",
    ["registry:8081", "http://", "http://a:port", "http://a:8081,http://b:8081", "http://a b", ""],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """At once: to wait for it would be in vain."""
    with pytest.raises(ConfigError, match=f"'{url}' is no address: write http://host:port"):
        SchemaRegistry(url)


def test_a_login_that_is_half_given_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave it out, and give user= and pass") as told:
        SchemaRegistry("http://ann:secret@registry:8081")
    assert "secret" not in str(told.value)
    with pytest.raises(ConfigError, match="user= is missing"):
        SchemaRegistry("http://registry:8081", password="secret")


@pytest.mark.parametrize(
    ("status", "user", "said"),
    [
        (401, None, r"/schemas/ids/1: it wants a login: give registry=gp\.SchemaRegistry\("),
        (401, "ann", "the login was refused: correct user= and password="),
        (403, "ann", "the user has no right to this: have it granted"),
        (404, None, r"is no schema registry: it has no /schemas/ids/1 .*: correct the address"),
        (405, None, "is no schema registry: "),
        (200, None, "is no schema registry: its answer is not that of one: correct the address"),
    ],
)
def test_a_reader_is_told_what_the_registry_refuses(
    status: int, user: str | None, said: str
) -> None:
    with FakeRegistry(answers=[status]) as fake:
        form = avro(registry=SchemaRegistry(fake.client.url, user=user, password=user))
        with pytest.raises(RegistryRefused, match=said) as told:
            begun(form).decode([b"\x00\x00\x00\x00\x01\x02a\x06"])
    assert is_final(told.value)
    assert not isinstance(told.value, ValueError)


def test_a_schema_that_the_registry_does_not_have_is_the_record_s_fault() -> None:
    """It may be left out as any bad record; or the registry may know it in a moment."""
    with FakeRegistry() as fake, pytest.raises(ValueError, match="no such schema") as told:
        begun(protobuf(Duration, registry=fake.client)).decode([b"\x00\x00\x00\x00\x09\x00"])
    assert not is_final(told.value)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (b"", RegistryAway, "does not answer: "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", RegistryAway, "does not answer: "),
        (b"\x15\x03\x03\x00\x02\x02\x50\n", RegistryRefused, "its answer is no HTTP; with TLS"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", RegistryRefused, "its answer is not that of one"),
    ],
)
def test_an_answer_that_is_cut_off_or_of_another_server_is_told(
    answer: bytes, kind: type[GearpyError], said: str
) -> None:
    """The first comes from a registry that goes away meanwhile: that is waited for."""
    with server_that_says(answer) as url, pytest.raises(kind, match=said):
        SchemaRegistry(url).schema(1)


def test_a_schema_of_another_kind_is_named() -> None:
    with FakeRegistry() as fake:
        (body,) = begun(avro(registry=fake.client, schema='"string"')).encode("t", ["a"])
        with pytest.raises(ValueError, match="its schema, 1 of the registry, is AVRO and none of"):
            begun(protobuf(Duration, registry=fake.client)).decode([body])
    with FakeRegistry() as fake:
        (body,) = begun(protobuf(Duration, registry=fake.client)).encode("t", [Duration()])
        with pytest.raises(ValueError, match="its schema, 1 of the registry, is PROTOBUF"):
            begun(avro(registry=fake.client)).decode([body])


@pytest.mark.parametrize("name", ["bytes", "text", "json", "msgpack"])
def test_a_form_is_the_same_in_the_next_version_of_a_program(name: str) -> None:
    old, new = (
        StreamApplication(
            "app", Graph().add(Processor(Task, config={"form": form_of("kafka", "value", name)}))
        )
        for _ in range(2)
    )
    assert ComparedPrograms(old, new).difference(ProcessorId(0), ProcessorId(0)) == ""
