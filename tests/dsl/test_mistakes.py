"""What is wrong with a program is told when it is written or built, with the step and the fix."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import gearpy as gp
from gearpy import agg
from gearpy.dsl.application import StreamApp
from gearpy.dsl.streams.stream import Stream
from gearpy.errors import ConfigError, GraphError
from tests.dsl.tables import EVENTS, TableSource


def a_stream() -> Stream[Any]:
    return StreamApp("app").read(gp.collection([1]), name="numbers")


def keyed() -> Any:
    return a_stream().key_by(str)


def keyed_by(parallelism: Any) -> Any:
    return a_stream().key_by(str, parallelism=parallelism)


def windowed(windows: gp.Windows | None = None) -> Any:
    return keyed().window(windows or gp.tumbling("10ms"))


async def fetch(_: Any) -> int:
    return 1


class Total:
    def __call__(self, number: int) -> int:
        return number


TUMBLING = gp.tumbling("10ms")
AT_ONCE: dict[str, tuple[Callable[[], Any], str]] = {
    "read no source": (
        lambda: StreamApp("app").read([1]),  # type: ignore[arg-type]
        r'read takes a source such as gp.files\("\*.txt"\), not \[1\]',
    ),
    "read late": (
        lambda: StreamApp("app").read(gp.collection([]), late="never"),  # type: ignore[arg-type]
        "late='never' is unknown: use one of 'keep', 'drop', 'restamp', 'side'",
    ),
    "read idle_after": (
        lambda: StreamApp("app").read(gp.collection([]), idle_after="soon"),
        "read: idle_after: duration 'soon' is not understood",
    ),
    "read when_idle": (
        lambda: StreamApp("app").read(gp.collection([]), when_idle="wait"),  # type: ignore[arg-type]
        "read: when_idle is 'wait', must be one of hold, advance",
    ),
    "read when_idle without idle_after": (
        lambda: StreamApp("app").read(gp.collection([]), when_idle="advance"),
        'read: when_idle="advance" needs to know after how long .* idle_after="5s"',
    ),
    "write no sink": (
        lambda: a_stream().write([]),  # type: ignore[arg-type]
        r"write takes a sink such as gp.console\(\), not \[\]",
    ),
    "map no function": (
        lambda: a_stream().map(3),  # type: ignore[arg-type]
        "map needs a function of a record, not 3",
    ),
    "map an asynchronous function": (
        lambda: a_stream().map(fetch),
        r"map does not await fetch \(.*mistakes.py:\d+\), which is asynchronous: use map_async",
    ),
    "map an asynchronous partial": (
        lambda: a_stream().map(partial(fetch, 1)),
        "map does not await .*, which is asynchronous: use map_async",
    ),
    "key_by an asynchronous function": (
        lambda: a_stream().key_by(fetch),
        "key_by does not await fetch",
    ),
    "branch by an asynchronous function": (
        lambda: a_stream().branch(big=fetch),
        "branch: big does not await fetch .*: use map_async, and branch with what it gives",
    ),
    "map a function of two": (
        lambda: a_stream().map(divmod),  # type: ignore[arg-type]
        r"map calls its function with a record, and divmod takes \(x, y, /\): missing",
    ),
    "filter a function of nothing": (
        lambda: a_stream().filter(lambda: True),  # type: ignore[arg-type,misc]
        r"filter calls its function with a record, and lambda \(.*\) takes \(\): too many",
    ),
    "reduce a function of one": (
        lambda: keyed().reduce(str.upper),
        "reduce calls its function with what there is and a record, and str.upper takes .*: too m",
    ),
    "map_with_state a function of one": (
        lambda: keyed().map_with_state(lambda n: n),
        "map_with_state calls its function with what is kept and a record, and lambda",
    ),
    "key_by a function of two": (
        lambda: a_stream().key_by(divmod),  # type: ignore[arg-type]
        "key_by calls its function with a record, and divmod",
    ),
    "parallelism no number": (
        lambda: keyed_by("2").count(),
        "count: parallelism is '2', must be a whole number from 1",
    ),
    "parallelism of an application no number": (
        lambda: StreamApp("app", parallelism=1.5),  # type: ignore[arg-type]
        r"StreamApp\('app'\): parallelism is 1.5, must be a whole number",
    ),
    "count of no groups": (
        lambda: a_stream().count(),  # type: ignore[attr-defined]
        r"a stream has no 'count' before .*: write .key_by\(...\).count\(...\), or .window\(",
    ),
    "a misspelt step": (
        lambda: a_stream().mapp(str),  # type: ignore[attr-defined]
        r"^a stream has no 'mapp': did you mean map\?$",
    ),
    "a misspelt step of groups": (
        lambda: a_stream().cuont(),  # type: ignore[attr-defined]
        r"^a stream has no 'cuont': did you mean count\?$",
    ),
    "a misspelt step by key": (
        lambda: keyed().map_with_stat(str),
        r"grouped by key has no 'map_with_stat': did you mean map_with_state\?$",
    ),
    "a misspelt step of windows": (
        lambda: windowed().agregate(),
        r"^windows have no 'agregate': did you mean aggregate\?$",
    ),
    "a step by its name in Spark": (
        lambda: a_stream().withColumn("x", str),  # type: ignore[attr-defined]
        r"^a stream has no 'withColumn': here it is with_columns\(...\)$",
    ),
    "a step by its name in pandas": (
        lambda: windowed().agg(total="sum"),
        r"^windows have no 'agg': here it is aggregate\(...\)$",
    ),
    "a step by another name, where it is not": (
        lambda: keyed().sink(gp.console()),
        r"has no 'sink': do it before key_by\(...\), or behind the next step",
    ),
    "a step behind a preview": (
        lambda: a_stream().head(1).write(gp.console()),  # type: ignore[attr-defined]
        r"run the program and give a list, which has no 'write': write take\(n\) for a step",
    ),
    "a run by a method": (
        lambda: StreamApp("app").run(),  # type: ignore[attr-defined]
        r"^an application has no 'run': here it is gp.run\(app\), or `gear run`",
    ),
    "a step like no other": (
        lambda: a_stream().xyzzy(),  # type: ignore[attr-defined]
        "^a stream has no 'xyzzy'$",
    ),
    "join of no groups": (
        lambda: a_stream().join(keyed(), TUMBLING),  # type: ignore[attr-defined]
        r"a stream has no 'join' before .*: write .key_by\(...\).join\(...\)$",
    ),
    "filter no function": (
        lambda: a_stream().filter(None),  # type: ignore[call-overload]
        "filter needs a function of a record, not None",
    ),
    "flat_map no function": (
        lambda: a_stream().flat_map([1]),  # type: ignore[arg-type]
        r"flat_map needs a function of a record, not \[1\]",
    ),
    "inspect no function": (
        lambda: a_stream().inspect("print"),  # type: ignore[arg-type]
        "inspect needs a function of a record, not 'print'",
    ),
    "process no task": (
        lambda: a_stream().process(3),  # type: ignore[arg-type]
        "process needs a function of a TaskContext, such as a Task class, not 3",
    ),
    "keyed process no task": (
        lambda: keyed().process(3),
        "process needs a function of a TaskContext, such as a Task class, not 3",
    ),
    "log level": (
        lambda: a_stream().log("loud"),
        "log: level is 'loud', must be one of debug, info, warning, error",
    ),
    "log every": (
        lambda: a_stream().log(every=0),
        "log: every is 0, must be a whole number from 1, such as every=1000",
    ),
    "repartition nothing": (
        lambda: a_stream().repartition(0),
        r"repartition: the number of tasks is 0, must be .* from 1, such as repartition\(4\)",
    ),
    "map_batches no function": (
        lambda: a_stream().map_batches(None),  # type: ignore[arg-type]
        "map_batches needs a function of a batch of records, not None",
    ),
    "map_batches form": (
        lambda: a_stream().map_batches(len, form="csv"),  # type: ignore[arg-type]
        "map_batches: form is 'csv', must be one of arrow, pandas, polars",
    ),
    "map_batches schema": (
        lambda: a_stream().map_batches(len, schema=3),  # type: ignore[arg-type]
        "map_batches: 3 is no schema: give a pyarrow.Schema",
    ),
    "map_batches takes": (
        lambda: a_stream().map_batches(len, takes=3),  # type: ignore[arg-type]
        "map_batches: 3 is no schema: give a pyarrow.Schema",
    ),
    "map_async no function": (
        lambda: a_stream().map_async(3),  # type: ignore[arg-type]
        "map_async needs a function of a record, not 3",
    ),
    "map_async no coroutine": (
        lambda: a_stream().map_async(lambda n: n),
        "map_async: .* is no coroutine function: define it with `async def`, or use `map`",
    ),
    "map_async concurrency": (
        lambda: a_stream().map_async(fetch, concurrency=0),
        "map_async: concurrency is 0, must be at least 1",
    ),
    "map_async timeout": (
        lambda: a_stream().map_async(fetch, timeout="soon"),
        "map_async: timeout: duration 'soon' is not understood",
    ),
    "map_async retries": (
        lambda: a_stream().map_async(fetch, retries=-1),
        "map_async: retries is -1, must be 0 or more",
    ),
    "lookup no coroutine": (
        lambda: a_stream().lookup(lambda key: key, key="user"),
        "lookup: .* is no coroutine function",
    ),
    "lookup key": (
        lambda: a_stream().lookup(fetch, key=3),  # type: ignore[call-overload]
        "lookup takes one function of a record, or names of fields, not 3",
    ),
    "lookup combine": (
        lambda: a_stream().lookup(fetch, key="user", combine=3),  # type: ignore[call-overload]
        "lookup: combine needs a function of a record and what was found, not 3",
    ),
    "lookup cache": (
        lambda: a_stream().lookup(fetch, key="user", cache=-1),
        "lookup: .*cache is -1, must be 0 or more",
    ),
    "lookup ttl": (
        lambda: a_stream().lookup(fetch, key="user", ttl="0s"),
        "lookup: ttl is '0s', must be more than 0",
    ),
    "key_by nothing": (
        lambda: a_stream().key_by(),  # type: ignore[call-overload]
        "key_by takes one function of a record, or names of fields, not nothing",
    ),
    "key_by two functions": (
        lambda: a_stream().key_by(str, len),  # type: ignore[call-overload]
        r'write key_by\(lambda record: ...\) or key_by\("user", "country"\)',
    ),
    "key_by a number": (
        lambda: a_stream().key_by(3),  # type: ignore[call-overload]
        "key_by takes one function of a record, or names of fields, not 3",
    ),
    "key_by twice": (
        lambda: a_stream().key_by("user", "user"),
        r"key_by: give each of the names \('user', 'user'\) once, and none empty",
    ),
    "distinct key": (
        lambda: a_stream().distinct(3),  # type: ignore[arg-type]
        "distinct takes one function of a record, or names of fields, not 3",
    ),
    "distinct within": (
        lambda: a_stream().distinct(within="0s"),
        "distinct: within is '0s', must be more than 0",
    ),
    "window no windows": (
        lambda: keyed().window("10s"),
        r'window takes windows such as gp.tumbling\("10s"\), not \'10s\'',
    ),
    "window late": (
        lambda: keyed().window(TUMBLING, late="keep"),
        "late='keep' is unknown: use one of 'drop', 'restamp', 'side'",
    ),
    "window then map": (
        lambda: windowed().map(str),
        r"windows have no 'map': .* aggregate first, such as .window\(...\).count\(\).map\(...\)",
    ),
    "key_by then write": (
        lambda: keyed().write(gp.to_list([])),
        r"grouped by key has no 'write': do it before key_by\(...\), or behind the next step",
    ),
    "merge no stream": (lambda: a_stream().merge(keyed()), "merge takes streams, not KeyedStream"),
    "merge of two applications": (
        lambda: a_stream().merge(StreamApp("other").read(gp.collection([]))),
        (
            "merge takes streams of one application, but one is of 'app' and one of 'other': "
            "read both with the same StreamApp"
        ),
    ),
    "split no function": (
        lambda: a_stream().split(3),  # type: ignore[call-overload]
        "split needs a function of a record, not 3",
    ),
    "branch nothing": (
        lambda: a_stream().branch(),
        r"branch has no predicates: write branch\(big=lambda n: n > 100\)",
    ),
    "branch no function": (
        lambda: a_stream().branch(big=3),  # type: ignore[arg-type]
        "branch: big needs a function of a record, not 3",
    ),
    "branch default": (
        lambda: a_stream().branch(big=bool, default="big"),
        "branch: default is 'big', must be a name other than big",
    ),
    "branch default function": (
        lambda: a_stream().branch(big=bool, default=bool),  # type: ignore[arg-type]
        "branch: default is <class 'bool'>, must be a name",
    ),
    "no such branch": (
        lambda: a_stream().branch(big=bool).small,
        "there is no branch 'small': there are big, default",
    ),
    "late of none": (
        lambda: windowed().count().late,
        r"'window_count' sets no late records aside: .* late=\"side\" in read\(\) or window\(\)",
    ),
    "side of none": (
        lambda: a_stream().map(str).side("bad"),
        r"'map\(str\)' has no side outputs: ask for them behind process\(...\)",
    ),
    "side without tag": (
        lambda: a_stream().process(gp.Task).side(""),
        "side: the tag is '', must be a name",
    ),
    "reduce no function": (
        lambda: windowed().reduce(3),
        "reduce needs a function of what there is and a record, not 3",
    ),
    "fold no function": (
        lambda: keyed().fold(0, 3),
        "fold needs a function of what there is and a record, not 3",
    ),
    "fold no merge": (
        lambda: windowed().fold(0, max, merge=3),
        "fold: merge needs a function of two values, not 3",
    ),
    "fold of sessions": (
        lambda: windowed(gp.session("10ms")).fold(0, max),
        "fold has no merge, and sessions .* are merged: give it a function merge=... of two values",
    ),
    "custom aggregate of sessions": (
        lambda: windowed(gp.session("10ms")).aggregate(n=agg.custom(int, max)),
        r"aggregate: n has no merge, .*: give agg.custom\(...\) a function merge=...",
    ),
    "aggregate nothing": (
        lambda: windowed().aggregate(),
        r"aggregate\(\) has nothing to do: give it such as total=agg.sum\('price'\)",
    ),
    "aggregate no aggregate": (
        lambda: keyed().aggregate(n="count"),
        r"aggregate\(n='count'\): give an aggregate, such as agg.sum\('price'\)",
    ),
    "aggregate with the name of the step": (
        lambda: windowed().aggregate(n=agg.count(), name="visits"),
        r"aggregate\(name='visits'\): .*; a name .* comes first: aggregate\('visits', ...\)",
    ),
    "top_n without n": (
        lambda: keyed().top_n(),
        r"top_n: n is 0, must be a whole number from 1 to 10000, such as top_n\(10\)",
    ),
    "top_n now and then": (
        lambda: keyed().top_n(3, when="sometimes"),
        "top_n: when is 'sometimes', must be 'always' or 'changed'",
    ),
    "top_n of windows": (
        lambda: windowed().top_n(n="many"),
        "top_n: n is 'many', must be a whole number from 1",
    ),
    "map_with_state no function": (
        lambda: keyed().map_with_state(3),
        "map_with_state needs a function of what is kept and a record, not 3",
    ),
    "flat_map_with_state ttl": (
        lambda: keyed().flat_map_with_state(max, ttl="soon"),
        "flat_map_with_state: ttl: duration 'soon' is not understood",
    ),
    "join no key": (
        lambda: keyed().join(a_stream(), TUMBLING),
        (
            r"join takes another stream that is grouped by key, not Stream: "
            r"write join\(other.key_by\(...\), ...\)"
        ),
    ),
    "join of two applications": (
        lambda: keyed().join_interval(keyed(), after="1ms"),
        "join_interval takes streams of one application, but one is of 'app' and one of 'app'",
    ),
    "join with a trigger": (
        lambda: keyed().join(keyed(), TUMBLING.triggering(gp.every(count=1))),
        "join: windows of a join fire once, when they close: leave out the trigger",
    ),
    "cogroup in count windows": (
        lambda: keyed().cogroup(keyed(), gp.count_window(3)),
        "cogroup: a join has no CountWindows: use tumbling, sliding, session or global windows",
    ),
    "join how": (
        lambda: keyed().join(keyed(), TUMBLING, how="full"),
        "join: how='full' is unknown: use one of 'inner', 'left', 'right', 'outer'",
    ),
    "join_asof how": (
        lambda: keyed().join_asof(keyed(), how="outer"),
        "join_asof: how='outer' is unknown: use one of 'left', 'inner'",
    ),
    "join_interval before": (
        lambda: keyed().join_interval(keyed(), before="soon"),
        "join_interval: before: duration 'soon' is not understood",
    ),
    "join in too many windows": (
        lambda: keyed().join(keyed(), gp.sliding("1d", every="1ms")),
        (
            "join: each record is in 86400000 windows of 86400000 ms that begin every 1 ms, and "
            "10000 are the most: let one begin every 8640 ms or less often, or use tumbling windows"
        ),
    ),
    "join_latest combine": (
        lambda: keyed().join_latest(keyed(), combine=3),
        "join_latest: combine=3 is no function",
    ),
}


@pytest.mark.parametrize(("build", "text"), AT_ONCE.values(), ids=AT_ONCE)
def test_mistake_is_told_where_it_is_written(build: Callable[[], Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        build()


def test_window_without_aggregate_is_told() -> None:
    """Nothing would come of it."""
    app = StreamApp("app")
    app.read(gp.collection([1]), name="numbers").window(TUMBLING)

    with pytest.raises(ConfigError, match=r"window behind 'numbers' ends in nothing: .*\.count"):
        app.build()


def test_key_without_step_is_told() -> None:
    app = StreamApp("app")
    app.read(gp.collection([1]), name="numbers").key_by(str)

    with pytest.raises(ConfigError, match=r"key_by behind 'numbers' ends in nothing: .*\.count"):
        app.build()


@pytest.mark.parametrize("offset", [0, 7])
def test_windows_that_no_machine_could_hold_are_told(offset: int) -> None:
    for every, is_taken in (("100ms", True), ("99ms", False), ("1ms", False)):
        app = StreamApp("app")
        windows = gp.sliding("1000s", every=every, offset=f"{offset}ms")
        app.read(gp.collection([1])).window(windows).sum(name="total").write(gp.to_list([]))
        if is_taken:
            app.build()
            continue
        with pytest.raises(ConfigError, match=r"^total: each record is in .* every 100 ms or less"):
            app.build()


def test_unknown_field_is_told() -> None:
    app = StreamApp("app")
    app.read(TableSource(EVENTS), name="sales").key_by("usr").count()

    with pytest.raises(ConfigError, match="count: there is no field 'usr' in what 'sales' gives"):
        app.build()


def test_all_mistakes_are_told_at_once() -> None:
    app = StreamApp("no name")
    sales = app.read(TableSource(EVENTS), parallelism=9, name="sales")
    sales.window(TUMBLING)
    sales.key_by("usr").count()

    with pytest.raises(ConfigError) as raised:
        app.build()

    told = raised.value.mistakes
    assert [text.split(":")[0].split(" ")[0] for text in told] == [
        "window",
        "count",
        "application",
        "processor",
    ]


def test_functions_that_fit_are_taken() -> None:
    stream = a_stream()

    for function in (
        lambda n, base=10: n + base,
        lambda *all_of: all_of,
        str,
        int,
        max,
        print,
        Total(),
    ):
        stream.map(function)
        stream.key_by(function).count()


def test_an_application_of_which_nothing_comes_does_not_run() -> None:
    """Somebody has forgotten to write; it can be built, to be looked at."""
    app = StreamApp("app")
    numbers = app.read(gp.collection([1])).map(str)
    numbers.key_by(str).count()
    assert app.build().dag.processors

    with pytest.raises(ConfigError, match=r"nothing comes of application 'app': .*\.write\("):
        gp.run(app)
    seen: list[str] = []
    numbers.inspect(seen.append)
    gp.run(app)

    assert seen == ["1"]


def test_nothing_is_told() -> None:
    with pytest.raises(GraphError, match=r"application 'app' has no steps: start with app.read"):
        StreamApp("app").build()


@pytest.mark.parametrize(
    "stream",
    [keyed(), windowed(), a_stream().branch(big=bool), a_stream()],
    ids=["key", "windows", "branches", "stream"],
)
def test_unknown_names_of_python_are_none(stream: Any) -> None:
    assert not hasattr(stream, "_repr_latex_")


@pytest.mark.parametrize(
    "stream", [keyed(), windowed(), a_stream()], ids=["key", "windows", "stream"]
)
def test_a_step_that_is_not_there_is_an_attribute_that_is_not_there(stream: Any) -> None:
    assert not hasattr(stream, "to_dask")
    assert getattr(stream, "mapp", None) is None
