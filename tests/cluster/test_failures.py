"""What becomes of an application whose code fails, hangs or gets no slots."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import gearpy as gp
from gearpy.actor.api import ActorSystem
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.programs.artifacts import embed
from gearpy.config.schema import Config
from gearpy.errors import ApplicationFailed, OperatorError, SubmitRefused
from gearpy.messages.client import Artifact, ListWorkers
from tests.cluster.build import Closings, Stuck, an_app, app_modules, is_at_rest
from tests.eventually import DEADLINE_S, eventually


def bad(*_: object, **__: object) -> NoReturn:
    raise ValueError("bad")


def leave(*_: object) -> NoReturn:
    sys.exit(3)


class BadInit(gp.Task):
    __init__ = bad


class BadStart(gp.Task):
    on_start = bad


class BadHold(gp.Task):
    hold_ms = property(bad)

    def on_next(self, message: gp.Message) -> None:
        """Take it."""


class BadWrite(Closings):
    write_batch = bad


class BadClose(Closings):
    close = bad


class BadSource(gp.Source, gp.SourceReader):
    def __init__(self, where: str) -> None:
        setattr(self, where, bad)

    def partitions(self) -> list[str]:
        return ["one"]

    def open(self, partition: str, resume: Any) -> gp.SourceReader:
        return self

    def read_batch(self, max_records: int) -> gp.Batch | None:
        return None

    def snapshot(self) -> None:
        """Have no place."""

    @property
    def watermark_ms(self) -> int:
        return 0


FAILING: dict[str, tuple[str, str, Callable[[], gp.StreamApp]]] = {
    "map": ("map(bad)", "0", lambda: an_app("failing", function=bad)),
    "key": ("count", "0", lambda: an_app("failing", key=bad)),
    "exit": ("map(leave)", "0", lambda: an_app("failing", function=leave)),
    "init": ("BadInit", "", lambda: an_app("failing", task=BadInit)),
    "start": ("BadStart", "", lambda: an_app("failing", task=BadStart)),
    "hold": ("BadHold", "", lambda: an_app("failing", task=BadHold)),
    "write": ("BadWrite", "(0, 1)", lambda: an_app("failing", sink=BadWrite())),
    "close": ("BadClose", "", lambda: an_app("failing", sink=BadClose())),
    "open": ("BadSource > map", "", lambda: an_app("failing", source=BadSource("open"))),
    "read": ("BadSource > map", "", lambda: an_app("failing", source=BadSource("read_batch"))),
}


@pytest.mark.parametrize("case", FAILING)
def test_failing_code_is_named_and_nobody_else_suffers(cluster: LocalCluster, case: str) -> None:
    operator, record, make = FAILING[case]
    other = Closings()
    endless = an_app("endless", source=gp.generate(itertools.count, rate=100), sink=other)
    healthy = cluster.client.submit("endless", embed(endless))
    assert other.written.wait(DEADLINE_S)

    with pytest.raises(OperatorError) as caught:
        cluster.run(make(), executors=1)

    assert caught.value.operator.startswith(operator)
    assert caught.value.source_line in {'raise ValueError("bad")', "sys.exit(3)"}
    assert caught.value.record == record
    eventually(lambda: healthy.summary().status == "active")
    healthy.shutdown()
    eventually(lambda: is_at_rest(cluster))


@pytest.mark.parametrize(
    ("text", "line"), [("import gearpy\n1 / 0\n", "1 / 0"), ("import sys\nexit = (\n", "exit = (")]
)
def test_program_that_cannot_be_imported_is_named(
    cluster: LocalCluster, tmp_path: Path, text: str, line: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(text)
    artifact, before = Artifact(kind="file", location=str(program)), app_modules()

    with pytest.raises(OperatorError) as caught:
        cluster.client.submit("program", artifact).wait(DEADLINE_S)

    assert caught.value.operator == "import program.py"
    assert caught.value.source == f"{program}:2"
    assert caught.value.source_line == line
    assert app_modules() == before


def test_text_of_an_error_may_be_long_and_not_unicode(cluster: LocalCluster) -> None:
    """It is cut, so that the status still fits into a message."""

    def fail(_: object) -> NoReturn:
        raise ValueError("\ud800" + "x" * 2_000_000)

    with pytest.raises(OperatorError) as caught:
        cluster.run(an_app("long", function=fail))

    assert len(caught.value.cause) < 5_000
    assert not any(each.cause and each.cause.traceback for each in cluster.client.applications())


def test_application_is_killed_with_all_its_actors(cluster: LocalCluster) -> None:
    sink = Closings()
    roles = [("appmaster", [1]), ("executor0", [1, 2]), ("executor1", [1, 2])]
    names = [[f"app1-{role}-{launch}" for launch in launches] for role, launches in roles]
    endless = an_app("endless", source=gp.generate(itertools.count, rate=1000), sink=sink)
    running = cluster.client.submit("endless", embed(endless), executors=2)
    assert sink.written.wait(DEADLINE_S)
    assert all(any(resolve(cluster, each) for each in name) for name in names)

    running.shutdown()

    assert running.summary().status == "terminated"
    eventually(lambda: is_at_rest(cluster))
    assert not any(resolve(cluster, each) for name in names for each in name)
    assert sink.closings == [False]
    with pytest.raises(SubmitRefused, match="already terminated"):
        running.shutdown()


def resolve(cluster: LocalCluster, name: str) -> object:
    system: ActorSystem = cluster._system  # noqa: SLF001 - what a client cannot see
    return system.resolve(name)


def test_kill_does_not_wait_for_stuck_code(cluster: LocalCluster) -> None:
    """The client is answered at once; the slots come when the code returns."""
    stuck = Stuck()
    running = cluster.client.submit("stuck", embed(an_app("stuck", function=stuck)))
    assert stuck.entered.wait(DEADLINE_S)

    running.shutdown()

    assert running.summary().status == "terminated"
    assert not stuck.has_returned
    stuck.let_go.set()
    eventually(lambda: is_at_rest(cluster))


def test_kill_while_the_program_is_imported_gives_all_slots_back(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app master asks for slots after its end; it gets none. Others are not held up."""
    stuck = Stuck()
    slow = an_app("slow")
    build = slow.build
    monkeypatch.setattr(slow, "build", lambda: stuck(build()))
    running = cluster.client.submit("slow", embed(slow))
    assert stuck.entered.wait(DEADLINE_S)

    other = cluster.run(an_app("other"))
    running.shutdown()
    stuck.let_go.set()

    assert other.status == "succeeded"
    eventually(lambda: is_at_rest(cluster))


def test_application_without_enough_slots_fails_in_time(configured: Callable[..., Config]) -> None:
    config = configured(resource_allocation_timeout_seconds=1)

    with LocalCluster(config, slots=2) as cluster:
        with pytest.raises(ApplicationFailed, match=r"got 1 of 2 slots within 1 s: add workers"):
            cluster.run(an_app("big"), executors=2)
        eventually(lambda: is_at_rest(cluster))


def test_application_of_a_lost_worker_goes_on_elsewhere(cluster: LocalCluster) -> None:
    sink = Closings()
    endless = an_app("endless", source=gp.generate(itertools.count, rate=1000), sink=sink)
    running = cluster.client.submit("endless", embed(endless), executors=3)
    assert sink.written.wait(DEADLINE_S)

    system: ActorSystem = cluster._system  # noqa: SLF001 - a client cannot do this
    worker = system.resolve("worker1")
    assert worker is not None
    system.stop(worker)

    eventually(lambda: len(cluster.client.ask(ListWorkers()).workers) == 1)
    eventually(lambda: False in sink.closings or running.summary().progress.restarts)
    sink.written.clear()
    assert sink.written.wait(DEADLINE_S)
    assert running.summary().status in {"active", "pending"}
    running.shutdown()
    eventually(lambda: is_at_rest(cluster))


def test_an_application_that_never_gets_to_run_tells_its_last_failure() -> None:
    app = gp.StreamApp("never")
    app.read(gp.collection([1])).process(BadStart, name="bad").write(gp.to_list([]))
    settings = {"application.total-retries": "1000", "application.backoff-base-ms": "1"}
    with LocalCluster(Config()) as cluster, cluster.submitted(app, overrides=settings) as running:
        progress = eventually(
            lambda: (now := running.summary().progress).restarts > 1 and now.last_failure and now
        )

    assert progress.last_failure.endswith("ValueError: bad")
