"""A processor of a graph by hand that takes the place of another one, from an event time on."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

import gearpy as gp
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed, forget
from gearpy.config.load import from_overrides
from gearpy.errors import SubmitRefused
from gearpy.ids import MAX_MS, MIN_MS, AppId
from gearpy.messages.client import UpdateApplication, UpdatePlanned
from gearpy.services.gearpump.shapes import StreamAppMasterSummary
from gearpy.services.routes.applications import get_application
from tests.eventually import eventually

_AT_MS = 2000


@dataclass
class Feed:
    """The numbers that may be sent, up to a limit, and those that were shown, each with a tag."""

    limit: int = 1000
    shown: list[tuple[int, str]] = field(default_factory=list)


class Numbers(gp.Task[Any, int]):
    """Sends each number at the event time that it is; able to halt at one."""

    def __init__(self, context: gp.TaskContext[int], feed: Feed) -> None:
        super().__init__(context)
        self.feed = feed
        self.next = context.resume or 0
        self.cut_ms = MAX_MS

    def produce(self) -> int:
        if self.next >= min(self.feed.limit, self.cut_ms):
            return 5
        self.context.output(gp.Message(self.next, self.next))
        self.next += 1
        self.context.update_watermark(self.next)
        return 0

    def begin_cut(self, cut_time_ms: int) -> bool:
        self.cut_ms = cut_time_ms
        return self.next <= cut_time_ms

    @property
    def is_cut(self) -> bool:
        return self.next >= self.cut_ms

    def end_cut(self) -> None:
        self.cut_ms = MAX_MS

    def snapshot(self) -> int:
        return self.next


class Before(gp.Task[int, tuple[int, str]]):
    tag: ClassVar = "before"

    def on_next(self, message: gp.Message[int]) -> Iterable[gp.Message[Any]]:
        yield gp.Message((message.value, self.tag), message.timestamp)


class After(Before):
    tag = "after"


class Show(gp.Task[tuple[int, str], Any]):
    def __init__(self, context: gp.TaskContext[Any], feed: Feed) -> None:
        super().__init__(context)
        self.feed = feed

    def on_next(self, message: gp.Message[tuple[int, str]]) -> None:
        self.feed.shown.append(message.value)


def numbers(feed: Feed, life: gp.Life | None = None) -> gp.StreamApplication:
    """Return the application; with a life its processor in the middle takes another one's place."""
    source = gp.Processor(lambda context: Numbers(context, feed), name="numbers")
    tag = gp.Processor(Before, name="tag")
    show = gp.Processor(lambda context: Show(context, feed), name="show")
    graph = gp.Graph().connect(source, tag).connect(tag, show)
    if life is not None:
        graph.replace(gp.ReplaceProcessor(tag, gp.Processor(After, name="tag"), life=life))
    return gp.StreamApplication("numbers", graph)


@contextmanager
def changed(
    cluster: LocalCluster, app_id: AppId, app: gp.StreamApplication
) -> Iterator[UpdatePlanned]:
    """Ask for a change to a program of this process, which is known meanwhile."""
    artifact = embed(app)
    try:
        yield cluster.client.change(
            UpdateApplication(app_id=app_id, artifact=artifact, allows_drop=True)
        )
    finally:
        forget(artifact)


def births_of(cluster: LocalCluster, app_id: AppId) -> dict[str, int]:
    """Return the births of the processors, as Gearpump's REST tells them."""
    told = get_application(cluster.client, app_id, detail=True)
    assert isinstance(told, StreamAppMasterSummary)
    return {each.description: each.life.birth for _, each in told.processors}


def test_records_from_its_birth_on_are_of_the_new_processor() -> None:
    """Each is of one of both; the same life in a later program asks for nothing."""
    feed, life = Feed(), gp.Life(birth_ms=_AT_MS)
    config = from_overrides({"checkpoint.interval-ms": "100", "application.trial-seconds": "1"})
    with LocalCluster(config, slots=8) as cluster, cluster.submitted(numbers(feed)) as running:
        eventually(lambda: running.summary().progress.epoch > 0)
        with changed(cluster, running.app_id, numbers(feed, life)) as planned:
            waits = running.history()[-1]
            feed.limit = 3000
            made = cluster.client.wait_for_version(running.app_id, planned.version)
            eventually(lambda: len(feed.shown) >= feed.limit)
            births = births_of(cluster, running.app_id)
            with changed(cluster, running.app_id, numbers(feed, life)) as again:
                remade = cluster.client.wait_for_version(running.app_id, again.version)
                running.shutdown()

    assert births == {"numbers": MIN_MS, "tag": _AT_MS, "show": MIN_MS}
    assert (planned.at_event_ms, waits.state) == (_AT_MS, "waiting")
    assert waits.change.endswith(" at 1970-01-01T00:00:02Z")
    assert (made.state, made.reason) == ("running", "")
    wanted = [(n, "before" if n < _AT_MS else "after") for n in range(feed.limit)]
    assert Counter(feed.shown) == Counter(wanted)
    assert (again.at_event_ms, remade.state) == (None, "running")


def test_a_birth_that_is_over_is_refused() -> None:
    feed = Feed()
    with LocalCluster(slots=8) as cluster, cluster.submitted(numbers(feed)) as running:
        eventually(lambda: len(feed.shown) == feed.limit)
        eventually(lambda: (running.summary().progress.watermark_ms or 0) >= 500)
        late = numbers(feed, gp.Life(birth_ms=500))
        with pytest.raises(SubmitRefused) as refused, changed(cluster, running.app_id, late):
            pass
        running.shutdown()

    assert "has read records of that time: name a later one" in str(refused.value)
