"""Applications that misbehave in every way, and how to wait for a cluster without sleeping."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.messages.client import ListWorkers
from tests.eventually import DEADLINE_S

_WORDS: Final = ("to be or not to be that is the question " * 20).split()


def app_modules() -> set[str]:
    """Return the modules that were imported for applications; tests of `load` leave some."""
    return {name for name in sys.modules if name.startswith("gearpy_app_")}


def is_at_rest(cluster: LocalCluster) -> bool:
    """Whether no slot is taken: neither an executor nor an app master lives."""
    return all(
        worker.free_slots == worker.slots for worker in cluster.client.ask(ListWorkers()).workers
    )


def word_count(parallelism: int = 2) -> tuple[gp.StreamApp, list[Any], Counter[str]]:
    """Return an application, where its results go, and what they must be."""
    app, results = gp.StreamApp("words", parallelism=parallelism), list[Any]()
    words = app.read(gp.collection(_WORDS, partitions=2), parallelism=2)
    words.key_by(str).window(gp.global_window()).count().write(gp.to_list(results))
    return app, results, Counter(_WORDS)


class Closings(gp.Sink, gp.SinkWriter):
    """A sink that notes how it was closed and sets an event at the first record."""

    def __init__(self) -> None:
        self.closings: list[bool] = []
        self.values: list[Any] = []
        self.written = threading.Event()

    def open(self, task_index: int, parallelism: int) -> gp.SinkWriter:
        return self

    def write_batch(self, batch: gp.Batch) -> None:
        self.values += batch.values
        self.written.set()

    def close(self, *, completed: bool) -> None:
        self.closings.append(completed)


class Stuck:
    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.has_returned = False

    def __call__(self, value: Any) -> Any:
        self.entered.set()
        self.let_go.wait(DEADLINE_S)
        self.has_returned = True
        return value


def an_app(  # what may go wrong, each with a default that does not
    name: str,
    *,
    source: gp.Source | None = None,
    values: Sequence[Any] = range(100),
    function: Callable[[Any], Any] = lambda value: value,
    key: Callable[[Any], Any] = lambda value: value % 3,
    task: type[gp.Task] | None = None,
    sink: gp.Sink | None = None,
) -> gp.StreamApp:
    """Return an application of three processors: source and map, keyed process, sink."""
    app = gp.StreamApp(name)
    keyed = app.read(source or gp.collection(values)).map(function).key_by(key)
    stream: gp.Stream[Any] = keyed.count() if task is None else keyed.process(task)
    stream.write(gp.to_list([]) if sink is None else sink)
    return app
