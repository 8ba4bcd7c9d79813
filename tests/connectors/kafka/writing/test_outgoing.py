"""Results become records for topics; one that brokers would refuse is found before."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearpy.connectors.kafka.writing.outgoing import Outgoing, OutgoingEpoch, RecordForm, TopicFacts
from gearpy.connectors.kafka.writing.values import RecordValues
from gearpy.errors import OperatorError
from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.table import Table
from gearpy.wire.values.payload import decode_value

NOW_MS = 1_000_000
FACTS = TopicFacts(partitions=4, record_bytes_max=1_000, ahead_ms_max=500)


class Page(NamedTuple):
    name: str
    size: int


def form(
    topic: str | Callable[[Any], str] = "t",
    value: Any = lambda result: str(result).encode(),
    **more: Any,
) -> RecordForm:
    values = RecordValues("sink", value).begun()
    return RecordForm(operator="sink", topic=topic, values=values, **more)


def made(a_form: RecordForm, results: Sequence[Any], times: list[int] | None = None) -> Outgoing:
    return a_form.outgoing(
        a_form.addressed(results), times or [1] * len(results), lambda _: FACTS, NOW_MS
    )


def test_a_record_has_value_and_event_time() -> None:
    records = made(form(), ["a", "b"], [10, 20])

    assert list(records.sends()) == [
        ("t", b"a", None, -1, None, None, 10),
        ("t", b"b", None, -1, None, None, 20),
    ]
    assert (len(records), records.size_bytes) == (2, 2)


def test_all_parts_of_a_record_may_be_functions_of_the_result() -> None:
    records = made(
        form(
            lambda n: f"t{n % 2}",
            key=str,
            headers=lambda n: {"n": str(n), "none": None} if n else None,
            timestamp=lambda n: n * 100,
            partition=lambda n: n,
        ),
        [0, 3],
    )

    assert list(records.sends()) == [
        ("t0", b"0", b"0", 0, None, None, 0, []),
        ("t1", b"3", b"3", 3, None, None, 300, [("n", b"3"), ("none", None)]),
    ]


@pytest.mark.parametrize(
    ("results", "key", "keys"),
    [
        ([Page("a", 1), Page("b", 2)], "name", [b"a", b"b"]),
        ([{"k": "a"}, {"k": None}], "k", [b"a", None]),
        ([Page("a", 1)], lambda page: page.name.encode(), [b"a"]),
        (Table(pa.RecordBatch.from_pydict({"k": ["x", "y"]})), "k", [b"x", b"y"]),
        (Table(pa.RecordBatch.from_pydict({"k": [1, 2]})), lambda row: str(row["k"]), [b"1", b"2"]),
    ],
    ids=["field", "item", "function", "column", "function of a row"],
)
def test_a_key_is_a_field_or_a_function(results: Any, key: Any, keys: list[bytes]) -> None:
    assert made(form(key=key), results).keys == keys


@pytest.mark.parametrize(
    ("value", "results", "values"),
    [
        ("json", [{"n": 1}, Page("ü", 2)], ['{"n":1}', '{"name":"ü","size":2}']),
        ("json", [None, [1]], [None, "[1]"]),
        ("json", Table(pa.RecordBatch.from_pydict({"n": [1, 2]})), ['{"n":1}', '{"n":2}']),
        ("json", Table(pa.RecordBatch.from_pydict({"n": [1.5]})), ['{"n":1.5}']),
        ("text", ["ü", None], ["ü", None]),
        ("bytes", [b"a", b""], ["a", ""]),
        (lambda n: b"x" * n if n else None, [2, 0], ["xx", None]),
    ],
)
def test_a_value_is_of_a_form_or_of_a_function(
    value: Any, results: Any, values: list[str | None]
) -> None:
    found = made(form(value=value), results).values

    assert [None if each is None else each.decode() for each in found] == values


@pytest.mark.parametrize(
    ("value", "result", "said"),
    [
        ("json", {1, 2}, "JSON has no form for set"),
        ("text", 1, "a value is no text"),
        ("bytes", "a", "the value is str, not bytes"),
        (lambda n: n, 7, r"value\(\) has returned 7, must be bytes"),
    ],
)
def test_a_value_that_cannot_be_made_is_named(value: Any, result: Any, said: str) -> None:
    good: Any = {"json": 1, "text": "a", "bytes": b"a"}.get(str(value), b"a")
    with pytest.raises(OperatorError, match=said) as caught:
        made(form(value=value), [good, result])

    assert caught.value.record == repr(result)


def test_a_time_that_is_none_is_the_clock_of_the_client() -> None:
    """The ends of time, and times before 1970, which Kafka cannot have."""
    assert made(form(), [1, 2, 3, 4], [MIN_MS, -1, 5, MAX_MS]).times == [0, 0, 5, 0]


@pytest.mark.parametrize(
    ("a_form", "result", "said"),
    [
        (form(), "x" * 873, "the record has 873 bytes, and topic 't' takes 1,000"),
        (form(key=lambda _: b"k" * 500), "x" * 373, "the record has 873 bytes"),
        (form(headers=lambda _: {"h": b"v" * 900}), "x", "the record has 915 bytes"),
        (form(timestamp=lambda _: NOW_MS + 501), "x", "its timestamp is 501 ms ahead"),
        (form(partition=lambda _: 4), "x", "returned 4, and topic 't' has partitions 0 to 3"),
        (form(partition=lambda _: -1), "x", "returned -1"),
        (form(key=lambda _: 1), "x", "the key is 1: make bytes or text of it"),
        (form(key="name"), {"n": 1}, "name"),
        (form(cast("Any", lambda _: None)), "x", r"topic\(\) has returned None"),
        (form(timestamp=lambda _: 1.5), "x", r"timestamp\(\) has returned 1.5"),
        (form(headers=lambda _: {"h": 1}), "x", "header 'h' is 1"),
    ],
)
def test_a_record_that_cannot_be_written_is_named(
    a_form: RecordForm, result: Any, said: str
) -> None:
    """The others are not to blame; nothing of the batch is written."""
    with pytest.raises(OperatorError, match=said) as caught:
        made(a_form, [result])

    assert caught.value.operator == "sink"
    assert caught.value.record[:4] == repr(result)[:4]


def test_the_first_bad_record_of_several_is_named() -> None:
    with pytest.raises(OperatorError, match="has 2,000 bytes") as caught:
        made(form(), ["good", "b" * 2000, "c" * 3000])

    assert caught.value.record.startswith("'bbb")


def test_the_largest_record_is_written() -> None:
    assert len(made(form(partition=lambda _: 3), ["x" * 872])) == 1


def test_a_topic_of_a_record_that_is_not_there_is_that_record_s_fault() -> None:
    """It is dealt with like any bad record; a topic of all records is not."""

    def facts(topic: str) -> TopicFacts:
        if topic == "gone":
            raise OperatorError(operator="sink", cause="topic 'gone' does not exist", is_final=True)
        return FACTS

    by_record, by_one = form(str), form("gone")
    with pytest.raises(OperatorError, match="does not exist") as of_record:
        by_record.outgoing(by_record.addressed(["t", "gone"]), [1, 1], facts, NOW_MS)
    with pytest.raises(OperatorError, match="does not exist") as of_all:
        by_one.outgoing(by_one.addressed(["a"]), [1], facts, NOW_MS)

    assert (of_record.value.record, of_record.value.is_final) == ("'gone'", False)
    assert (of_all.value.record, of_all.value.is_final) == ("", True)


def test_records_of_one_topic_and_of_several_are_added_up() -> None:
    records = made(form(str), ["a"])
    for more in (["a"], ["b"], ["b", "c"]):
        records.add(made(form(str), more))

    assert [send[0] for send in records.sends()] == ["a", "a", "b", "b", "c"]


def test_a_record_without_a_value_is_stored_beside_others() -> None:
    records = made(form(value=lambda n: b"x" * n if n else None, key=lambda n: "k" * n), [2, 0, 1])

    assert Outgoing.decoded(records.encoded()) == records
    assert records.values == [b"xx", None, b"x"]


def test_records_are_stored_as_plain_lists() -> None:
    records = made(form(value=lambda n: b"x" * n if n else None), [300, 0])

    assert decode_value(records.encoded().joined()) == {
        "topics": ["t"],
        "values": [b"x" * 300, None],
        "times": [1, 1],
        "keys": [],
        "partitions": [],
        "headers": [],
        "bytes": 300,
    }


@pytest.mark.parametrize("topic", ["t", lambda n: f"t{n}"], ids=["one topic", "some"])
def test_records_travel_through_a_checkpoint(topic: Any) -> None:
    records = made(
        form(topic, key=str, headers=lambda n: [("h", str(n))], partition=lambda n: n), [1, 2, 3]
    )

    assert Outgoing.decoded(records.encoded()) == records


def test_batches_are_added_up() -> None:
    records = made(form(key=str), [1, 2])
    records.add(made(form(key=str), [30]))

    assert (records.values, records.keys) == ([b"1", b"2", b"30"], [b"1", b"2", b"30"])
    assert (len(records), records.size_bytes) == (3, 8)


@given(sizes=st.lists(st.sampled_from([0, 1, 3000, 8191, 8192, 9000]), max_size=5))
def test_an_epoch_has_its_records_in_order_however_they_came(sizes: list[int]) -> None:
    """Property: also after a checkpoint, which has them in portions of many."""
    epoch, values = OutgoingEpoch(), list[int]()
    for size in sizes:
        batch = range(len(values), len(values) + size)
        values += batch
        epoch.add(made(form(), [*batch]) if batch else Outgoing())
    again = OutgoingEpoch.decoded(epoch.encoded())

    for records in (epoch, again):
        assert [int(send[1]) for send in records.sends()] == values
        assert (len(records), bool(records)) == (len(values), bool(values))
        assert records.size_bytes == sum(len(str(each)) for each in values)
    assert len(epoch.encoded()) <= sum(sizes) / 8192 + 1


def test_records_that_are_encoded_are_not_added_to() -> None:
    records = made(form(), [1])
    records.encoded()
    with pytest.raises(AssertionError, match="in a checkpoint"):
        records.add(made(form(), [2]))


@pytest.mark.parametrize("wrong", ["", 0, "text"])
def test_a_value_that_is_no_bytes_is_refused(wrong: Any) -> None:
    with pytest.raises(OperatorError, match="not bytes: choose"):
        made(form(value="bytes"), [b"", wrong])
