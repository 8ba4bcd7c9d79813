"""What an application promises from each source to each sink, and why not more."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import pytest

from gearpy.messages.data import Message
from gearpy.task.api.application import Graph, Processor, StreamApplication
from gearpy.task.api.interfaces import Sink, SinkWriter, Source, SourceReader, Task, TaskContext
from gearpy.task.chain.chain import ChainTask
from gearpy.task.sources.task import SourceTask
from gearpy.task.stages.guarantees import (
    Effect,
    Guarantee,
    PathGuarantee,
    Weakness,
    cannot_be_resumed,
    guarantee_lines,
    guarantees_of,
    short_guarantee,
)


class Log(Source):
    replayable = True

    def partitions(self) -> Sequence[str]:
        return ["0"]

    def open(self, partition: str, resume: Any) -> SourceReader:
        raise NotImplementedError

    @property
    def description(self) -> str:
        return type(self).__name__.lower()


class Socket(Log):
    replayable = False


class Printer(Sink):
    def open(self, task_index: int, parallelism: int) -> SinkWriter:
        raise NotImplementedError

    @property
    def description(self) -> str:
        return type(self).__name__.lower()


class Store(Printer):
    idempotent = True


class File(Printer):
    takes_back = True


class Folder(Printer):
    transactional = True


def chain(context: TaskContext) -> ChainTask:
    return ChainTask(context, lambda _: [])


def reading(context: TaskContext) -> SourceTask:
    raise NotImplementedError


def an_app(*edges: tuple[Processor, Processor]) -> StreamApplication:
    graph = Graph()
    for source, target in edges:
        graph.connect(source, target)
    return StreamApplication("app", graph)


def read(source: Source) -> Processor:
    return Processor(reading, name="read", source=source)


def write(sink: Sink) -> Processor:
    return Processor(chain, name="write", sink=sink)


def of(source: Source, sink: Sink, task: Callable[[TaskContext], Task] = chain) -> PathGuarantee:
    middle = Processor(task, name="middle")
    (found,) = guarantees_of(an_app((read(source), middle), (middle, write(sink))))
    return found


# -- sources and sinks -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "sink", "guarantee"),
    [
        (Log(), Folder(), Guarantee.EXACTLY_ONCE),
        (Log(), Store(), Guarantee.EFFECTIVELY_ONCE),
        (Log(), File(), Guarantee.EFFECTIVELY_ONCE),
        (Log(), Printer(), Guarantee.AT_LEAST_ONCE),
        (Socket(), Folder(), Guarantee.AT_MOST_ONCE),
        (Socket(), Store(), Guarantee.AT_MOST_ONCE),
        (Socket(), File(), Guarantee.AT_MOST_ONCE),
        (Socket(), Printer(), Guarantee.NONE),
    ],
)
def test_source_and_sink_decide(source: Source, sink: Sink, guarantee: Guarantee) -> None:
    assert of(source, sink).guarantee is guarantee


@pytest.mark.parametrize(
    ("source", "sink", "said"),
    [
        (Socket(), Folder(), "socket cannot be read again: a failure loses what it gave since"),
        (Log(), Printer(), "printer writes again after a failure what it wrote since the newest"),
        (Log(), File(), "file takes back after a failure what it wrote since the newest epoch"),
        (Log(), Store(), "store is given records again after a failure"),
    ],
)
def test_the_weakest_link_is_named_with_a_reason_and_a_fix(
    source: Source, sink: Sink, said: str
) -> None:
    """Otherwise nobody can do anything about it."""
    weakest = of(source, sink).weakest

    assert weakest is not None
    assert str(weakest).startswith(said)
    assert weakest.fix


# -- tasks -----------------------------------------------------------------------------------


class Split(Task):
    def on_next(self, message: Message) -> list[Message]:
        return [Message(word, message.timestamp) for word in message.value.split()]


class Total(Task):
    total = 0

    def on_next(self, message: Message) -> None:
        self.total += 1


class SafeTotal(Total):
    def snapshot(self) -> int:
        return self.total


class Seen(Task):
    seen: set[Any] = set()  # noqa: RUF012 - that is the mistake

    def on_next(self, message: Message) -> None:
        self.seen.add(message.value)


class Sly(Task):
    def on_next(self, message: Message) -> None:
        setattr(self, "total", 1)  # noqa: B010 - that is the detour


class Inside(Task):
    """Keeps a number by a function inside of a property."""

    @property
    def hold_ms(self) -> int:
        def count() -> None:
            self.total = 1

        count()
        return 0


class Static(Task):
    @staticmethod
    def count(where: Any) -> None:
        where.total = 1


class LateTotal(Total):
    def on_stop(self, *, completed: bool) -> None:
        """Say goodbye."""


def a_total(context: TaskContext) -> Total:
    return Total(context)


def something(context: TaskContext) -> Task:
    return Total(context)


def misnamed(context: TaskContext) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
    """Say something that nobody can look up."""


@pytest.mark.parametrize("task", [Total, Seen, Sly, Inside, Static, LateTotal, a_total])
def test_of_a_task_that_may_keep_something_nothing_is_known(task: Any) -> None:
    """It may lose nothing that matters; who wrote it knows."""
    found = of(Log(), Folder(), task)

    assert found.guarantee is Guarantee.NOT_KNOWN
    assert str(found.weakest).startswith("middle has no snapshot: what it keeps between records")


@pytest.mark.parametrize("task", [lambda _: NotImplemented, something, partial(Total), misnamed])
def test_of_a_function_that_does_not_say_what_it_makes_nothing_is_known(task: Any) -> None:
    found = of(Log(), Folder(), task)

    assert found.guarantee is Guarantee.NOT_KNOWN
    assert "annotate what it returns" in str(found.weakest)


def test_a_task_that_makes_records_is_asked_for_a_snapshot() -> None:
    found = guarantees_of(an_app((Processor(Split), write(Folder()))))
    safe = guarantees_of(an_app((Processor(SafeTotal), write(Folder()))))

    assert str(found[0].weakest).startswith("Split begins anew after a failure")
    assert (found[0].source, found[0].guarantee) == ("Split", Guarantee.NOT_KNOWN)
    assert safe[0].guarantee is Guarantee.EXACTLY_ONCE


def test_a_task_at_the_end_does_what_it_wants() -> None:
    (found,) = guarantees_of(an_app((read(Log()), Processor(Split))))

    assert (found.sink, found.guarantee) == ("Split", Guarantee.NOT_KNOWN)
    assert "a task of your own at the end" in str(found.weakest)


# -- paths -----------------------------------------------------------------------------------


def test_each_source_has_a_path_to_each_sink_that_it_leads_to() -> None:
    log, socket = read(Log()), read(Socket())
    total, both = Processor(Total), Processor(chain)
    folder, printer = write(Folder()), write(Printer())
    app = an_app((log, total), (total, folder), (log, both), (socket, both), (both, printer))

    found = {(each.source, each.sink): each.guarantee for each in guarantees_of(app)}

    assert found == {
        ("log", "folder"): Guarantee.NOT_KNOWN,
        ("log", "printer"): Guarantee.AT_LEAST_ONCE,
        ("socket", "printer"): Guarantee.NONE,
    }


def test_many_ways_between_two_ends_are_one_path() -> None:
    log, layers = read(Log()), [[Processor(chain) for _ in range(3)] for _ in range(20)]
    edges = [(log, part) for part in layers[0]]
    for here, there in pairwise(layers):
        edges += [(a, b) for a in here for b in there]
    folder = write(Folder())
    layers[10][1].task = Total

    (found,) = guarantees_of(an_app(*edges, *((part, folder) for part in layers[-1])))

    assert found.guarantee is Guarantee.NOT_KNOWN


# -- effects together ------------------------------------------------------------------------


def a_path(*effects: Effect) -> PathGuarantee:
    weaknesses = tuple(Weakness(effect.value, effect, "is weak", "fix it") for effect in effects)
    return PathGuarantee("source", "sink", weaknesses)


@pytest.mark.parametrize("count", range(5))
def test_a_further_weakness_never_makes_a_path_stronger(count: int) -> None:
    order = list(Guarantee)
    for effects in combinations(Effect, count):
        path = a_path(*effects)
        for more in Effect:
            stronger = a_path(*effects, more).guarantee
            at_most = order.index(path.guarantee)
            assert order.index(stronger) <= at_most
        assert (path.weakest is None) == (not effects)


# -- for people ------------------------------------------------------------------------------


def test_one_line_says_that_all_is_well() -> None:
    """However many paths there are; and nothing is said of none."""
    assert list(guarantee_lines([a_path(), a_path()])) == ["exactly-once"]
    assert list(guarantee_lines([])) == []


def test_each_weak_link_is_told_once_the_worst_first() -> None:
    paths = [a_path(), a_path(Effect.REPEATS), a_path(Effect.REPEATS), a_path(Effect.UNKNOWN)]

    assert list(guarantee_lines(paths)) == [
        "not known on 1 of 4 paths: unknown is weak; fix it",
        "at-least-once on 2 of 4 paths: repeats is weak; fix it",
    ]
    assert list(guarantee_lines(paths[1:3])) == ["at-least-once: repeats is weak; fix it"]


def test_long_lists_are_cut() -> None:
    paths = [
        PathGuarantee("a", "b", (Weakness(str(n), Effect.REPEATS, "is weak", "fix it"),))
        for n in range(8)
    ]

    lines = list(guarantee_lines(paths))

    assert (len(lines), lines[-1]) == (6, "and 3 more weak links")


# -- in a few words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "sinks", "said"),
    [
        (Log(), [Folder()], "exactly-once"),
        (Log(), [Folder(), Printer()], "at-least-once (printer; see gear plan)"),
        (Socket(), [Folder(), Store()], "at-most-once (socket; see gear plan)"),
    ],
)
def test_the_weakest_promise_is_said_in_a_few_words(
    source: Source, sinks: Sequence[Sink], said: str
) -> None:
    head = read(source)

    assert short_guarantee(guarantees_of(an_app(*((head, write(each)) for each in sinks)))) == said


class Ended(Log):
    bounded = True


@pytest.mark.parametrize(
    ("source", "is_said"), [(Log(), True), (Ended(), False), (Socket(), False)]
)
def test_that_a_run_cannot_be_resumed_is_said_where_it_matters(
    source: Source, *, is_said: bool
) -> None:
    line = cannot_be_resumed(an_app((read(source), write(Folder()))))

    assert (line is not None and "--resume NAME" in line) is is_said
