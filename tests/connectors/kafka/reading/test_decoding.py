"""Batches of records: event times, bad records, what is older than the start. No broker here."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgpack
import pytest
from confluent_kafka import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from gearpy.columns.row_schema import row_schema_of
from gearpy.connectors.files.tables import Fit
from gearpy.connectors.kafka.avro import avro
from gearpy.connectors.kafka.protobuf import protobuf
from gearpy.connectors.kafka.reading.decoding import Reading, RecordDecoder
from gearpy.connectors.kafka.reading.raw import Raw, RawColumns
from gearpy.connectors.kafka.registry import RegistryAway
from gearpy.connectors.kafka.values import form_of
from gearpy.errors import OperatorError
from gearpy.ids import MIN_MS
from gearpy.messages.data import Batch
from tests.connectors.kafka.registry_build import FakeRegistry

SCHEMA = row_schema_of({"at": int})
GOOD_PACKED: Final = msgpack.packb({"at": 1})
AVRO: Final = {"type": "record", "name": "R", "fields": [{"name": "at", "type": "long"}]}
#: A good body of each form.
FORMS: Final[dict[str, tuple[bytes, Callable[[], Any]]]] = {
    "json": (b'{"at": 1}', lambda: "json"),
    "msgpack": (GOOD_PACKED, lambda: "msgpack"),
    "avro": (b"\x02", lambda: avro(schema=AVRO)),
    "protobuf": (Timestamp(seconds=1).SerializeToString(), lambda: protobuf(Timestamp)),
}


def a_decoder(
    *,
    form: Any = "json",
    is_table: bool = False,
    time: Any = None,
    on_bad: Any = "skip",
    bound_ms: int = 0,
    starts_ms: int = MIN_MS,
) -> RecordDecoder:
    reading = Reading(
        operator="kafka(t)",
        form=form_of("kafka(t)", "value", form),
        key_form=form_of("kafka(t)", "key", "bytes"),
        schema=SCHEMA if is_table else None,
        fit=Fit(SCHEMA.arrow if is_table else None, None, time),
        has_time=time is not None,
        records=False,
        on_bad=on_bad,
        bound_ms=bound_ms,
        starts_ms=starts_ms,
    )
    return RecordDecoder(reading, "t", 3)


def a_raw(bodies: Sequence[bytes | None], *, joins: bool = False) -> Raw:
    """Return records with offsets from 10 on, and Kafka's times from 100 on."""
    messages = [
        Message(topic="t", partition=3, offset=10 + at, value=body, timestamp=(1, 100 + at))
        for at, body in enumerate(bodies)
    ]
    return Raw.of(messages, RawColumns(times=True, rest=False, joins=joins))


def told(batch: Batch | None) -> list[Any]:
    if batch is None:
        return []
    return list(zip(list(batch.values), list(batch.timestamps), strict=True))


GOOD = st.integers(0, 500).map(lambda at: b'{"at": %d}' % at)
#: As people write it.
SPACED = st.integers(0, 500).map(lambda at: b'{\n "at": %d\n}\n' % at)
BAD = st.sampled_from(
    [
        b"",
        b" ",
        b"{",
        b'{"at":',
        b"1}",
        b"[]",
        b'{"at": 1}\n{"at": 2}',
        b'{"at": 1}{"at": 2}',
        b'{"at": 1} {"at":',
        b"2}",
        b'{"at": "x"}',
        b'{"at": "\r\n"}',
        b"\xff",
    ]
)


@given(
    first=st.lists(GOOD | SPACED | BAD, min_size=1, max_size=12),
    second=st.lists(GOOD, min_size=1, max_size=3),
    joins=st.booleans(),
)
def test_a_table_has_the_good_records_with_their_times(
    *, first: list[bytes], second: list[bytes], joins: bool
) -> None:
    """However many are bad, and wherever; a bad one never takes the place of a good one."""
    decoder, bodies = a_decoder(is_table=True), [*first, *second]
    pieces = (a_raw(first, joins=joins), a_raw(second, joins=joins))
    raw = pieces[0].joined(pieces[1])
    raw.offsets, raw.times = range(10, 10 + len(raw)), list(range(100, 100 + len(raw)))
    found = told(decoder.batch(raw))
    alone = []
    for at, body in enumerate(bodies):
        single = a_decoder(is_table=True)
        alone += [(value, 100 + at) for value, _ in told(single.batch(a_raw([body])))]
    assert found == alone
    assert decoder.skipped == len(bodies) - len(alone)


@given(bodies=st.lists(GOOD | st.sampled_from([b"{", b"", b"\xff"]), min_size=1, max_size=12))
def test_rows_are_the_good_records_with_their_times(bodies: list[bytes]) -> None:
    decoder = a_decoder()
    good = [(body, 100 + at) for at, body in enumerate(bodies) if body.startswith(b'{"')]
    found = told(decoder.batch(a_raw(bodies)))
    assert [(b'{"at": %d}' % value["at"], time) for value, time in found] == good
    assert decoder.skipped == len(bodies) - len(good)


@pytest.mark.parametrize(("is_table", "joins"), [(False, False), (True, False), (True, True)])
def test_a_bad_record_is_named_by_its_offset(*, is_table: bool, joins: bool) -> None:
    decoder = a_decoder(is_table=is_table, on_bad="fail")
    with pytest.raises(OperatorError, match=r"'kafka\(t\)': t/3, offset 12: "):
        decoder.batch(a_raw([b'{"at": 1}', b'{"at": 2}', b'{"at": }'], joins=joins))


def test_a_record_without_a_value_is_bad_in_a_table_only() -> None:
    """It has no columns; as a row it says that its key was deleted."""
    decoder = a_decoder(is_table=True)
    assert told(decoder.batch(a_raw([None, b'{"at": 1}']))) == [({"at": 1}, 101)]
    decoder = a_decoder()
    assert told(decoder.batch(a_raw([None]))) == [(None, 100)]


@pytest.mark.parametrize("is_table", [False, True])
@given(times=st.lists(st.integers(0, 300), min_size=1), starts_ms=st.integers(0, 300))
def test_what_is_older_than_the_start_is_left_out(
    *, is_table: bool, times: list[int], starts_ms: int
) -> None:
    decoder = a_decoder(is_table=is_table, time="at", starts_ms=starts_ms, bound_ms=20)
    found = told(decoder.batch(a_raw([b'{"at": %d}' % time for time in times])))
    kept = [time for time in times if time >= starts_ms]
    assert [time for _, time in found] == kept
    assert decoder.watermark_ms == (max(kept) - 20 if kept else MIN_MS)


def test_a_time_that_is_missing_makes_a_record_bad() -> None:
    decoder = a_decoder(time="at")
    found = told(decoder.batch(a_raw([b'{"at": 5}', b'{"other": 6}', b'{"at": null}'])))
    assert (found, decoder.skipped) == ([({"at": 5}, 5)], 2)


@pytest.mark.parametrize("body", [b'{"n": 1}', b"[1]", b'"at"'])
def test_a_value_without_the_field_of_event_times_says_which_field(body: bytes) -> None:
    decoder = a_decoder(time="at", on_bad="fail")

    with pytest.raises(OperatorError, match="t/3, offset 10: there is no 'at', which has the ev"):
        decoder.batch(a_raw([body]))


def test_a_record_of_an_unknown_schema_is_a_bad_one() -> None:
    with FakeRegistry() as fake:
        form = avro(registry=fake.client, schema='"string"')
        form.begin("kafka(t)")
        (good,) = form.encode("t", ["a"])
        raw = a_raw([good, b"\x00\x00\x00\x00\x63\x02a", good])
        with pytest.raises(
            OperatorError, match=r"t/3, offset 11: schema registry .*/99: it has no"
        ):
            a_decoder(form=form, on_bad="fail").batch(raw)
        decoder = a_decoder(form=form)
        assert told(decoder.batch(raw)) == [("a", 100), ("a", 102)]
    assert decoder.skipped == 1


LIST = {
    "type": "record",
    "name": "L",
    "fields": [{"name": "at", "type": "long"}, {"name": "next", "type": ["null", "L"]}],
}


def test_avro_of_any_depth_ends_no_process() -> None:
    """Such a schema has itself in it; the reader in C would need a stack without end."""
    bodies = [b"\x02\x00", b"\x02\x02" * 100_000 + b"\x02\x00"]

    decoder = a_decoder(form=avro(schema=LIST))
    decoder._reading.begin()  # noqa: SLF001 - as the source does

    assert told(decoder.batch(a_raw(bodies))) == [({"at": 1, "next": None}, 100)]
    assert decoder.skipped == 1


@pytest.mark.parametrize("joins", [True, False])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_null_is_no_object(at: int, *, joins: bool) -> None:
    """Alone or among others; Arrow's parser would end the process, or make a row of it."""
    bodies = [b'{"at": 1}', b'{"at": 2}']
    bodies.insert(at, b"null")

    decoder = a_decoder(is_table=True)

    found = told(decoder.batch(a_raw(bodies, joins=joins)))

    assert [value for value, _ in found] == [{"at": 1}, {"at": 2}]
    assert decoder.skipped == 1


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"at": 1}, {"at": "x"}),
        ({"at": 1}, {"at": 1.5}),
        ({"at": 1}, {"at": 1, "more": 2}),
        ({"at": 1}, [1]),
    ],
)
def test_a_value_that_does_not_fit_the_schema_is_a_bad_record(good: Any, bad: Any) -> None:
    bodies = [msgpack.packb(good), msgpack.packb(bad), msgpack.packb(good)]
    decoder = a_decoder(form="msgpack", is_table=True)
    assert [value for value, _ in told(decoder.batch(a_raw(bodies)))] == [{"at": 1}, {"at": 1}]
    assert decoder.skipped == 1
    with pytest.raises(OperatorError, match=r"t/3, offset 11: .*on_bad=\"skip\""):
        a_decoder(form="msgpack", is_table=True, on_bad="fail").batch(a_raw(bodies))


@pytest.mark.parametrize("is_table", [True, False])
@pytest.mark.parametrize("form", ["json", "msgpack", "avro", "protobuf"])
@pytest.mark.parametrize("places", [{0}, {3}, {9}, {2, 3, 7}, set(range(10))])
def test_bad_records_are_set_aside(form: str, places: set[int], *, is_table: bool) -> None:
    good, made = FORMS[form]
    bodies = [b"\xff\xff\xff" if at in places else good for at in range(10)]
    decoder = a_decoder(form=made(), is_table=is_table and form != "protobuf", on_bad="side")
    decoder._reading.begin()  # noqa: SLF001 - as the source does

    found = told(decoder.batch(a_raw(bodies, joins=form == "json" and is_table)))

    assert [time for _, time in found] == [100 + at for at in range(10) if at not in places]
    bad = decoder.take_bad()
    assert [each.where for each in bad] == [f"t/3, offset {10 + at}" for at in sorted(places)]
    assert [each.time for each in bad] == [100 + at for at in sorted(places)]
    assert {each.record for each in bad} == {"\\xff\\xff\\xff"}
    assert decoder.skipped == len(places)
    assert not decoder.take_bad()


def test_records_that_are_decoded_again_are_set_aside_once() -> None:
    decoder = a_decoder(form="msgpack", is_table=True, on_bad="side")
    away, decode = [True], decoder._reading.form.decode  # noqa: SLF001 - of its own

    def fails_once(bodies: Any) -> Any:
        if len(bodies) == 1 and bodies[0] == GOOD_PACKED and away and away.pop():
            raise RegistryAway("it is away")
        return decode(bodies)

    bodies = [b"\xc1", GOOD_PACKED]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder._reading.form, "decode", fails_once)  # noqa: SLF001 - the same
        with pytest.raises(RegistryAway):
            decoder.batch(a_raw(bodies))
        decoder.batch(a_raw(bodies))

    assert [each.where for each in decoder.take_bad()] == ["t/3, offset 10"]
    assert decoder.skipped == 1


def test_a_time_that_python_does_not_have_is_a_bad_record() -> None:
    bodies = [Timestamp(seconds=second).SerializeToString() for second in (0, 10**14)]
    decoder = a_decoder(form=protobuf(Timestamp), on_bad="fail")
    decoder._reading.begin()  # noqa: SLF001 - as the source does
    with pytest.raises(OperatorError, match="offset 11: is a Timestamp with a value that Python"):
        decoder.batch(a_raw(bodies))


def test_a_head_without_end_is_refused_at_once() -> None:
    """A number of a million bytes would be computed for minutes."""
    with FakeRegistry() as fake:
        form = protobuf(Timestamp, registry=fake.client)
        form._known.add(1)  # noqa: SLF001 - a schema of Protobuf
        form.begin("kafka(t)")
        with pytest.raises(ValueError, match="never ends"):
            form.decode([b"\x00\x00\x00\x00\x01" + b"\xff" * 1_000_000])


@pytest.mark.parametrize("body", [b"", b" ", b'{"at": "x"}\n{"at": 2}'])
def test_what_is_no_object_or_several_is_told_so(body: bytes) -> None:
    with pytest.raises(OperatorError, match="offset 10: is not one object of JSON"):
        a_decoder(is_table=True, on_bad="fail").batch(a_raw([body]))
