"""Two executors' worth of tasks in two processes, joined by TCP, without a cluster.

The parent runs one task of an application and a child process the other; the child prints its
address, then its result, as JSON lines.
"""

import json
import random
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import typer

from gearpy.actor.api import Ref
from gearpy.actor.dispatcher import SharedDispatcher
from gearpy.actor.threaded import ThreadedActorSystem
from gearpy.bench.sol import sol_application
from gearpy.cluster.limits import monotonic_ms, output_limits, task_limits, wall_ms
from gearpy.cluster.tuning import ProcessTuning
from gearpy.config.schema import Config
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.cluster import ErrorCard
from gearpy.task.actor import ClockBoard, StartTask, StopTask, TaskActor, TaskMessage
from gearpy.task.application import StreamApplication
from gearpy.task.runner import TaskRunner
from gearpy.task.wiring import RunnerFactory
from gearpy.transport.api import Transport
from gearpy.transport.memory import MemoryHub, MemoryTransport
from gearpy.transport.tcp import TcpTransport

__all__ = ["Host", "child_main", "run_in_process", "run_in_two_processes"]

_SECRET = b"0" * 32
_PRODUCER, _CONSUMER = TaskId(0, 0), TaskId(1, 0)


class Host:
    """Some tasks of an application on one thread, with a transport."""

    def __init__(self, app: StreamApplication, tasks: tuple[TaskId, ...], transport: Transport):
        config = Config()
        self._tuning = ProcessTuning(config)
        self._system = ThreadedActorSystem()
        self._dispatcher = SharedDispatcher(1, turn_ms=config.streaming.turn_time_ms)
        self._transport = transport
        self._board = ClockBoard()
        self.address = transport.start()
        self.stopped = threading.Event()
        self.failure: ErrorCard | None = None
        self.runners: dict[TaskId, TaskRunner] = {}
        self._refs: dict[TaskId, Ref[TaskMessage]] = {}
        factory = RunnerFactory(
            application=app,
            output=output_limits(config),
            limits=task_limits(config),
            turn_ms=config.streaming.turn_time_ms,
            clock_ms=monotonic_ms,
            wall_ms=wall_ms,
            rng=random.Random(),
        )
        for task in tasks:
            self._spawn(task, factory.make(task, SessionId(1)))

    def start(self, routes: Mapping[TaskId, str]) -> None:
        """Start the tasks, knowing where the others are."""
        self._tuning.freeze()
        self._transport.locate(routes)
        for ref in self._refs.values():
            ref.tell(StartTask(MIN_MS))

    def wait(self, task: TaskId, seconds: float) -> None:
        """Wait until a task has finished, then stop all."""
        deadline = threading.Event()
        ends = monotonic_ms() + seconds * 1000
        while self.failure is None and monotonic_ms() < ends:
            if any(c.task_id == task and c.clock_ms == MAX_MS for c in self._board.collect()):
                break
            deadline.wait(0.02)
        for ref in self._refs.values():
            ref.tell(StopTask(completed=True))
        self.stopped.wait(5)

    def close(self) -> None:
        """Stop everything."""
        self._system.shutdown()
        self._dispatcher.close()
        self._transport.stop()
        self._tuning.restore()

    def on_task_started(self, task_id: TaskId) -> None:
        """Nothing to do."""

    def on_task_failed(self, task_id: TaskId, error: ErrorCard) -> None:
        """Keep why."""
        self.failure = error

    def on_task_stopped(self, task_id: TaskId, error: ErrorCard | None) -> None:
        """Let `wait` return."""
        self.failure = self.failure or error
        self.stopped.set()

    def _spawn(self, task: TaskId, runner: TaskRunner) -> None:
        self.runners[task] = runner
        ref = self._refs[task] = self._system.spawn(
            lambda: TaskActor(
                runner,
                self._transport,
                self,
                self._board,
                clock_ms=monotonic_ms,
                report_interval_ms=20,
            ),
            f"task{task}",
            dispatcher=self._dispatcher,
        )
        self._transport.register(task, partial(_tell_all, ref))


def run_in_process(options: Mapping[str, Any]) -> dict[str, Any]:
    """Run SOL with both tasks in this process and return the consumer's result."""
    app = sol_application(**options)
    host = Host(app, (_PRODUCER, _CONSUMER), MemoryTransport(MemoryHub(), "bench"))
    host.start({_PRODUCER: host.address, _CONSUMER: host.address})
    return _finish(host, _CONSUMER, options)


def run_in_two_processes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Run SOL with the consumer in a child process and return its result."""
    command = [sys.executable, "-m", "gearpy.bench", "sol-child", json.dumps(dict(options))]
    with subprocess.Popen(  # noqa: S603 - this program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        there = json.loads(child.stdout.readline())["address"]
        host = Host(sol_application(**options), (_PRODUCER,), TcpTransport(_SECRET))
        routes = {_PRODUCER: host.address, _CONSUMER: there}
        child.stdin.write(json.dumps(host.address) + "\n")
        child.stdin.flush()
        host.start(routes)
        host.wait(_PRODUCER, _limit(options))
        result: dict[str, Any] = json.loads(child.stdout.readline())
        host.close()
        if host.failure is not None:
            raise SystemExit(f"the producer failed: {host.failure.cause}")
        return result


def child_main(text: str) -> None:
    """Be the consumer's process."""
    options = json.loads(text)
    host = Host(sol_application(**options), (_CONSUMER,), TcpTransport(_SECRET))
    typer.echo(json.dumps({"address": host.address}))
    there = json.loads(sys.stdin.readline())
    host.start({_PRODUCER: there, _CONSUMER: host.address})
    typer.echo(json.dumps(_finish(host, _CONSUMER, options)))


def _finish(host: Host, task: TaskId, options: Mapping[str, Any]) -> dict[str, Any]:
    host.wait(task, _limit(options))
    consumer: Any = host.runners[task].task
    host.close()
    if host.failure is not None:
        raise SystemExit(f"task {task} failed: {host.failure.cause}")
    result: dict[str, Any] = consumer.result()
    return result


def _limit(options: Mapping[str, Any]) -> float:
    return float(options["seconds"]) + float(options.get("warm_up", 1)) + 30


def _tell_all(ref: Ref[TaskMessage], messages: list[Any]) -> None:
    for message in messages:
        ref.tell(message)
