"""From what users write to the graph that runs."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gearpy as gp
from gearpy.dsl.application import StreamApp
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError, GraphError
from gearpy.task.api.application import StreamApplication
from tests.dsl.chains import chains


def an_app(*, parallelism: int = 1, partitions: int = 1) -> tuple[StreamApp, Stream[Any]]:
    app = StreamApp("app", parallelism=parallelism)
    source = gp.collection(range(10), partitions=partitions)
    return app, app.read(source, name="read")


def mistakes_of(app: StreamApp) -> Sequence[str]:
    with pytest.raises(ConfigError) as raised:
        app.build()
    return raised.value.mistakes


def test_key_begins_a_new_processor() -> None:
    """Records of one key meet in one task; what follows runs there."""
    app, numbers = an_app(parallelism=2, partitions=2)

    numbers.map(str).key_by(len).count().map(str).write(gp.to_list([]), name="write")

    assert chains(app) == [
        "read > map(str) x2",
        "count > map(str) > write x2",
        "read > map(str) -> count > map(str) > write: group-by",
    ]


@pytest.mark.parametrize("partitions", [1, 3])
def test_repartition_deals_to_its_tasks_whatever_there_were_before(partitions: int) -> None:
    app, numbers = an_app(parallelism=partitions, partitions=partitions)

    numbers.repartition(3).map(str).write(gp.to_list([]), name="write")

    assert chains(app) == [
        f"read x{partitions}",
        "repartition > map(str) > write x3",
        "read -> repartition > map(str) > write: shuffle",
    ]


def test_stream_with_two_readers_ends_its_chain() -> None:
    app, numbers = an_app(parallelism=2, partitions=2)

    numbers.map(str).write(gp.to_list([]), name="write")
    numbers.filter(bool)

    assert chains(app) == [
        "read x2",
        "map(str) > write x2",
        "filter(bool) x2",
        "read -> map(str) > write: co-location",
        "read -> filter(bool): co-location",
    ]


def test_merge_joins_streams_of_any_parallelism() -> None:
    """It has that of the first; records of others are dealt to its tasks."""
    app, numbers = an_app(parallelism=2, partitions=2)
    other = app.read(gp.collection([1]), name="other", parallelism=1)

    numbers.merge(other).map(str)

    assert chains(app) == [
        "read x2",
        "other x1",
        "merge > map(str) x2",
        "read -> merge > map(str): co-location",
        "other -> merge > map(str): shuffle",
    ]


def test_own_task_is_a_processor_of_its_own() -> None:
    app, numbers = an_app()

    numbers.map(str).process(gp.Task, name="call", dispatcher="pinned").map(int)

    assert chains(app) == [
        "read > map(str) x1",
        "call x1",
        "map(int) x1",
        "read > map(str) -> call: co-location",
        "call -> map(int): co-location",
    ]
    assert [each.dispatcher for each in app.build().processors.values()] == [
        "default",
        "pinned",
        "default",
    ]


# -- state and side outputs --------------------------------------------------------------------


def test_key_is_known_to_the_processor_of_an_own_task() -> None:
    app, numbers = an_app()

    numbers.key_by(len).process(gp.Task, name="keyed").process(gp.Task, name="not")

    keys = {each.name: each.key for each in app.build().processors.values()}
    assert keys == {"read": None, "keyed": len, "not": None}


def test_late_records_have_an_edge_of_their_own() -> None:
    """The main stream goes on in its chain, as if nobody read them."""
    app = StreamApp("app", parallelism=2)
    numbers = app.read(gp.collection([1, 2], partitions=2), name="read", late="side")

    numbers.map(str).write(gp.to_list([]), name="write")
    numbers.late.map(str, name="late").write(gp.to_list([]), name="aside")

    assert chains(app) == [
        "read > map(str) > write x2",
        "late > aside x2",
        "read > map(str) > write -> late > aside: co-location of late@0",
    ]


def test_late_records_are_spread_as_other_records_are() -> None:
    app, numbers = an_app(parallelism=2, partitions=2)
    counts = numbers.key_by(str).window(gp.tumbling("1s"), late="side").count(name="windows")

    counts.late.key_by(str, parallelism=3).count(name="by key")
    counts.late.window(gp.tumbling("1s")).count(name="all")
    counts.late.process(gp.Task, name="own")
    counts.write(gp.to_list([]), name="write")

    assert [line for line in chains(app) if "->" in line] == [
        "read -> windows > write: group-by",
        "windows > write -> by key: group-by of late@0",
        "windows > write -> all: shuffle of late@0",
        "windows > write -> own: co-location of late@0",
    ]


def test_two_steps_of_a_chain_may_set_records_aside() -> None:
    app = StreamApp("app")
    numbers = app.read(gp.collection([1]), name="read", late="side")
    counts = numbers.window(gp.tumbling("1s"), late="side").count(name="windows")

    numbers.late.map(str, name="a")
    counts.late.map(str, name="b")

    assert chains(app)[-2:] == [
        "read > windows -> a: co-location of late@0",
        "read > windows -> b: co-location of late@1",
    ]


def test_late_records_merged_with_themselves_are_a_mistake() -> None:
    app = StreamApp("app")
    numbers = app.read(gp.collection([1]), name="read", late="side")

    numbers.late.merge(numbers.late)

    with pytest.raises(GraphError, match="more than one edge read -> merge"):
        app.build()


def test_application_without_steps_is_a_mistake() -> None:
    assert mistakes_of(StreamApp("empty")) == (
        "application 'empty' has no steps: start with app.read(source)",
    )


def test_stream_merged_with_itself_is_a_mistake() -> None:
    """Its records would be counted twice, by accident as a rule."""
    app, numbers = an_app()

    numbers.merge(numbers)

    with pytest.raises(GraphError, match="more than one edge read -> merge"):
        app.build()


@pytest.mark.parametrize("parallelism", [0, -1])
def test_bad_parallelism_is_a_mistake_wherever_it_is_given(parallelism: int) -> None:
    _, numbers = an_app()
    places: dict[str, Callable[[], Any]] = {
        "count": lambda: numbers.key_by(str, parallelism=parallelism).count(),
        "own": lambda: numbers.process(gp.Task, parallelism=parallelism, name="own"),
        "StreamApp": lambda: gp.StreamApp("app", parallelism=parallelism),
    }

    for name, place in places.items():
        match = f"{name}.*: parallelism is {parallelism}, must be a whole number from 1"
        with pytest.raises(ConfigError, match=match):
            place()


def test_more_tasks_than_partitions_is_a_mistake() -> None:
    app = StreamApp("app")
    app.read(gp.collection(range(10), partitions=2), parallelism=3)

    (mistake,) = mistakes_of(app)

    assert mistake.endswith("has 2 partitions: lower the parallelism")


def test_source_has_no_more_tasks_than_partitions_by_default() -> None:
    app, numbers = an_app(parallelism=3, partitions=2)

    numbers.key_by(str).count()

    assert chains(app)[:2] == ["read x2", "count x3"]


def test_all_mistakes_are_told_at_once() -> None:
    app = StreamApp("no name", parallelism=3)
    numbers = app.read(gp.collection([1]), parallelism=3, name="read")
    numbers.merge(numbers).key_by(str).count()

    mistakes = mistakes_of(app)

    assert len(mistakes) == 3


def late_and_not(stream: Stream[Any]) -> Stream[Any]:
    counts = stream.window(gp.tumbling("1s"), late="side").count()
    return counts.late.merge(counts)


MAKE: dict[str, Callable[[Stream[Any]], Stream[Any]]] = {
    "map": lambda stream: stream.map(str),
    "key": lambda stream: stream.key_by(str).count(),
    "window": lambda stream: stream.window(gp.tumbling("1s")).count(),
    "state": lambda stream: stream.key_by(str).map_with_state(lambda kept, n: (kept, n)),
    "late": late_and_not,
    "merge": lambda stream: stream.map(str).merge(stream.filter(bool)),
    "process": lambda stream: stream.process(gp.Task),
}

STEPS = st.lists(st.sampled_from([*MAKE, "write"]), max_size=8)


def built(steps: list[str]) -> StreamApplication:
    app, stream = an_app(parallelism=2, partitions=2)
    for step in steps:
        if step == "write":
            stream.write(gp.to_list([]))
        else:
            stream = MAKE[step](stream)
    return app.build()


@given(STEPS, STEPS)
def test_structural_hash_is_a_function_of_the_program(steps: list[str], others: list[str]) -> None:
    """Invariant: two builds of one program agree; every process builds its own."""
    one, again, other = built(steps), built(steps), built(others)

    assert one.dag.structural_hash() == again.dag.structural_hash()
    if steps == others:
        assert one.dag.structural_hash() == other.dag.structural_hash()


@given(STEPS)
def test_every_edge_has_a_partitioner_that_fits(steps: list[str]) -> None:
    """Invariant: whatever is chained with whatever, the graph can run."""
    application = built(steps)

    for edge in application.dag.edges:
        partitioner = application.partitioners[edge.source, edge.target]
        assert partitioner.name == edge.partitioner
        assert (
            partitioner.check(
                source_parallelism=application.processors[edge.source].parallelism,
                target_parallelism=application.processors[edge.target].parallelism,
            )
            is None
        )
