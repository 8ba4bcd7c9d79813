"""Every role of a cluster in one process, from end to end."""

import gc
import itertools
import socket
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pykka
import pytest
from pykka import ActorRegistry

import gearpy as gp
from gearpy.cluster.app.actor import AppMasterActor
from gearpy.cluster.boot.local import LocalCluster
from gearpy.cluster.checkpoints.reading import open_store
from gearpy.cluster.checkpoints.stored_savepoints import stored_savepoints
from gearpy.cluster.executor.actor import ExecutorActor
from gearpy.cluster.master.actor import MasterActor
from gearpy.cluster.programs.artifacts import embed
from gearpy.cluster.worker.actor import WorkerActor
from gearpy.config.schema import Config
from gearpy.core.master.checkpoint_names import CLUSTER_ID_CHARS
from gearpy.errors import ConfigError, OperatorError, SubmitRefused
from gearpy.ids import ActorPath, ExecutorId
from gearpy.messages.client import (
    Artifact,
    DescribeApplication,
    GetCluster,
    ListWorkers,
    ReadLog,
    WorkerList,
)
from gearpy.messages.cluster import RegisterWorker
from gearpy.messages.summaries import ApplicationDetail
from gearpy.task.runtime.actor import TaskActor
from gearpy.transport.letters.client import ControlClient
from gearpy.transport.security.secret import load_or_create_secret
from tests.cluster.build import Closings, Stuck, an_app, app_modules, is_at_rest, word_count
from tests.eventually import DEADLINE_S, eventually

Configured = Callable[..., Config]


@pytest.mark.smoke
@pytest.mark.parametrize("data", ["memory", "tcp"])
@pytest.mark.parametrize(("workers", "executors"), [(1, 1), (2, 2), (3, 3), (1, 3)])
def test_word_count_is_right_wherever_its_tasks_are(
    configured: Configured, data: Literal["memory", "tcp"], workers: int, executors: int
) -> None:
    app, results, expected = word_count()

    with LocalCluster(configured(), workers=workers, slots=9, data=data) as cluster:
        summary = cluster.run(app, executors=executors)

    assert summary.status == "succeeded"
    assert Counter({each.key: each.value for each in results}) == expected
    assert len(results) == len(expected)


def test_call_that_does_not_come_back_fails_the_run(configured: Configured) -> None:
    gate = threading.Event()

    def stand(n: int) -> int:
        if n == 7:
            gate.wait(60)  # For ever, as far as anybody can tell.
        return n

    app, results = gp.StreamApp("stands"), list[Any]()
    app.read(gp.collection(range(9))).map(str).map(int).map(stand).write(gp.to_list(results))
    config = configured(executor__turn_timeout_seconds=1)
    with LocalCluster(config, workers=1) as cluster, pytest.raises(OperatorError) as failure:
        cluster.run(app, executors=1)
    gate.set()

    assert failure.value.operator == "map(stand)"
    assert "turn-timeout-seconds" in failure.value.cause
    assert failure.value.source_line.startswith("gate.wait(60)")


@pytest.mark.long
def test_thousand_tasks_start(configured: Configured) -> None:
    app, results = gp.StreamApp("many", parallelism=1000), list[Any]()
    app.read(gp.collection(range(50))).key_by(int).count().write(gp.to_list(results))

    with LocalCluster(configured(), slots=2000) as cluster:
        summary = cluster.run(app, executors=2)

    assert summary.status == "succeeded"
    assert len(results) == 50


def test_roles_are_pykka_actors(configured: Configured) -> None:
    of_others = ActorRegistry.get_all()  # Clusters of other tests may live in this process.

    def find(role: type[pykka.Actor]) -> list[pykka.ActorRef[Any]]:
        return [each for each in ActorRegistry.get_by_class(role) if each not in of_others]

    app = an_app("endless", source=gp.generate(itertools.count, rate=1000))
    with LocalCluster(configured(), workers=2, slots=8) as cluster:
        app_id = cluster.client.submit("endless", embed(app), executors=1).app_id
        eventually(lambda: find(TaskActor))
        [master], [app_master] = find(MasterActor), find(AppMasterActor)
        [executor] = find(ExecutorActor)

        master.tell(ListWorkers())
        listed: WorkerList = master.ask(ListWorkers(), block=True)
        detail: ApplicationDetail = app_master.ask(DescribeApplication(app_id=app_id), block=True)

        assert len(listed.workers) == len(find(WorkerActor)) == 2
        assert detail.app_id == app_id
        assert executor.stop(timeout=DEADLINE_S)
        assert not executor.is_alive()


def test_results_are_complete_when_the_status_says_succeeded(cluster: LocalCluster) -> None:
    sink = Closings()

    running = cluster.client.submit("done", embed(an_app("done", sink=sink)), executors=2)
    eventually(lambda: running.summary().status not in {"pending", "active"})

    assert running.summary().status == "succeeded"
    assert sink.closings == [True]
    assert len(sink.values) == 100


def test_progress_counts_what_was_read_written_and_late(cluster: LocalCluster) -> None:
    app, results = gp.StreamApp("late"), list[Any]()
    values = [*range(0, 50_000, 1000), 60_000, 0]
    app.read(gp.collection(values, timestamp=int)).window(gp.tumbling("10s")).count().write(
        gp.to_list(results)
    )

    summary = cluster.run(app, overrides={"source.read-batch-size": "1"})

    assert summary.progress.records_in == 52
    assert summary.progress.late_records == 1
    assert summary.progress.records_out == len(results) == 6
    assert (summary.progress.done, summary.progress.total) == (52, 52)


def test_there_is_no_log_where_applications_run_in_this_process(
    configured: Configured, tmp_path: Path
) -> None:
    """The one that another cluster wrote about its application 1 is another matter."""
    folder = tmp_path / "app-1"
    folder.mkdir()
    (folder / "executor-0-launch-1.log").write_text("of another cluster")

    with LocalCluster(configured(log__folder=tmp_path)) as cluster:
        running = cluster.client.submit("short", embed(an_app("short")))
        running.wait()
        with pytest.raises(SubmitRefused, match="what it prints is there, and"):
            cluster.client.ask(ReadLog(app_id=running.app_id, executor_id=ExecutorId(0), lines=100))


def test_stall_names_the_chain_that_holds_the_clock(configured: Configured) -> None:
    stuck = Stuck()
    config = configured(streaming__stall_threshold_ms=1000)

    with LocalCluster(config) as cluster:
        running = cluster.client.submit("stall", embed(an_app("stall", function=stuck)))
        eventually(lambda: "clock at rest" in running.summary().progress.stall)
        stall = running.summary().progress.stall
        stuck.let_go.set()

    assert "clock at rest" in stall
    assert "task 0." in stall


def test_overrides_reach_the_tasks(cluster: LocalCluster) -> None:
    limits: list[int] = []

    class Limits(gp.Task):
        def on_start(self, start_time_ms: int) -> None:
            limits.append(self.context.limits.batch_records)

        def on_next(self, message: gp.Message) -> None:
            """Take it."""

    app = an_app("limits", task=Limits)
    cluster.run(app, overrides={"streaming.batch-max-records": "17"})
    cluster.run(app)

    assert limits == [17, cluster.config.streaming.batch_max_records]


def test_wrong_override_is_refused(cluster: LocalCluster) -> None:
    with pytest.raises(ConfigError, match=r"streaming\.no-such-key"):
        cluster.run(an_app("wrong"), overrides={"streaming.no-such-key": "1"})

    assert cluster.run(an_app("right")).status == "succeeded"


def test_nothing_stays_of_applications_that_ended(configured: Configured, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import gearpy as gp\n"
        "app = gp.StreamApp('program')\n"
        "app.read(gp.collection(range(9))).key_by(int).count().write(gp.to_list([]))\n"
    )
    artifact, before = Artifact(kind="file", location=str(program)), app_modules()
    with LocalCluster(configured(), data="tcp", slots=8) as cluster:
        first = cluster.client.submit("program", artifact)  # Starts what the cluster keeps.
        first.wait(DEADLINE_S)
        eventually(lambda: is_at_rest(cluster))
        threads = threading.active_count()
        for _ in range(6):
            running = cluster.client.submit("program", artifact, executors=2)
            running.wait(DEADLINE_S)

        eventually(lambda: is_at_rest(cluster))
        eventually(lambda: threading.active_count() <= threads)
        assert app_modules() == before


def test_stop_does_not_wait_for_ever_for_stuck_code(configured: Configured) -> None:
    """The actor of the task is given up; its listener is closed all the same."""
    threads, stuck = threading.active_count(), Stuck()
    cluster = LocalCluster(configured(), data="tcp")
    cluster.client.submit("stuck", embed(an_app("stuck", function=stuck)))
    assert stuck.entered.wait(DEADLINE_S)

    cluster.stop()

    assert not stuck.has_returned
    eventually(lambda: not has_thread("gearpy-loop"))
    stuck.let_go.set()
    eventually(lambda: threading.active_count() <= threads)


def has_thread(name: str) -> bool:
    return any(each.name.startswith(name) for each in threading.enumerate())


def test_two_clusters_know_nothing_of_each_other(configured: Configured) -> None:
    with LocalCluster(configured()) as one, LocalCluster(configured()) as other:
        first = one.client.submit("twin", embed(an_app("twin")))
        second = other.client.submit("twin", embed(an_app("twin")))

        assert first.wait(DEADLINE_S).status == second.wait(DEADLINE_S).status == "succeeded"
        assert first.app_id == second.app_id == 1
        ids = {each.client.ask(GetCluster()).cluster_id for each in (one, one, other)}
        assert sorted(map(len, ids)) == [CLUSTER_ID_CHARS] * 2


def test_cluster_that_cannot_listen_leaves_nothing_behind(configured: Configured) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        threads = set(threading.enumerate())  # Some of another test may end meanwhile.
        before = (gc.get_threshold(), sys.getswitchinterval())

        with pytest.raises(ConfigError, match="cannot listen"):
            LocalCluster(configured(cluster__masters=address), listen=True)

        eventually(lambda: set(threading.enumerate()) <= threads)
        assert (gc.get_threshold(), sys.getswitchinterval()) == before


def workers_of(client: ControlClient) -> Sequence[object]:
    answer: Any = client.ask(ListWorkers(), 5)
    workers: Sequence[object] = answer.workers
    return workers


def test_clients_may_only_ask_what_is_for_clients(configured: Configured) -> None:
    config = configured(cluster__masters="127.0.0.1:0")
    with LocalCluster(config, listen=True) as cluster:
        secret = load_or_create_secret(config.transport.secret_file)
        with ControlClient(cluster.address, secret) as client:
            reply: Any = client.ask(RegisterWorker(worker=ActorPath("", "evil"), slots=9), 5)
            eventually(lambda: len(workers_of(client)) == 1)  # Its own, and never another.
            workers = workers_of(client)

    assert reply.reason == "RegisterWorker is not for clients"
    assert len(workers) == 1


def test_an_error_of_user_code_shows_no_frames_of_ours() -> None:
    app = gp.StreamApp("halves")
    app.read(gp.collection([1, 0])).map(_half).write(gp.to_list([]))

    with pytest.raises(gp.OperatorError) as caught:
        gp.run(app)
    shown = "".join(traceback.format_exception(caught.value))

    assert _frames(caught.value) == ["test_an_error_of_user_code_shows_no_frames_of_ours", "call"]
    assert f"  at      {__file__}:" in shown
    assert "            return 1 / number\n  record  0\n" in shown


def test_an_interrupt_shows_no_frames_of_ours() -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    app = gp.StreamApp("numbers")
    app.read(gp.generate(itertools.count)).write(gp.to_list([]))

    with pytest.raises(KeyboardInterrupt) as caught:
        gp.run(app, on_progress=interrupt)

    assert _frames(caught.value) == ["test_an_interrupt_shows_no_frames_of_ours", "call"]


def _half(number: int) -> float:
    return 1 / number


def _frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_a_durable_cluster_leaves_savepoints_for_the_next_one(
    configured: Configured, tmp_path: Path
) -> None:
    config = configured(checkpoint__folder=tmp_path / "kept", checkpoint__interval_ms=100)
    numbers = gp.StreamApp("numbers")
    numbers.read(gp.generate(itertools.count, rate=1000)).write(gp.to_list([]))
    with LocalCluster(config, durable=True) as cluster, cluster.submitted(numbers) as running:
        eventually(lambda: running.summary().progress.epoch > 0, within_s=DEADLINE_S)
        running.drain(savepoint="mine")
        ended = running.wait(DEADLINE_S)

    assert ended.progress.savepoint == "mine"
    store = open_store(config.checkpoint.folder)
    assert [each.savepoint.name for each in stored_savepoints(store)] == ["mine"]


def test_a_durable_cluster_says_which_folder_it_cannot_use(
    configured: Configured, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"checkpoint\.folder .*file cannot be used"):
        LocalCluster(configured(checkpoint__folder=tmp_path / "file"), durable=True)


def test_a_program_is_only_where_it_wants_to_be(configured: Configured) -> None:
    app = gp.StreamApp("picky", hosts=["nowhere"], priority="high")
    app.read(gp.collection([1])).write(gp.to_list([]), name="show")
    assert app.scaled({"show": 2}).wishes == app.build().wishes

    with LocalCluster(configured()) as cluster, cluster.submitted(app) as running:
        waits = "waits for slots: needs a worker on nowhere, and there is none"
        eventually(lambda: running.summary().progress.stall == waits, within_s=DEADLINE_S)
        running.shutdown()
