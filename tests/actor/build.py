"""Actors and waits that the tests of this package share."""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias, cast

from gearpy.actor.api import Actor, Exited, Ref
from gearpy.ids import ActorPath
from tests.eventually import DEADLINE_S

WAIT_S = float(DEADLINE_S)  #: How long a test waits for what must happen.

Order: TypeAlias = Callable[["Obedient"], object]
Log: TypeAlias = SimpleQueue[Any]


class Obedient(Actor[Order]):
    """Does what a message says, in its own turn, and writes a log of its life."""

    def __init__(self, log: Log | None = None) -> None:
        self.log: Log = SimpleQueue() if log is None else log

    def on_start(self) -> None:
        self.log.put("start")

    def receive(self, message: Order) -> object:
        return message(self)

    def on_exited(self, exited: Exited) -> None:
        self.log.put(exited)

    def on_stop(self) -> None:
        self.log.put("stop")


class DeadLetters(logging.Handler):
    """Counts the messages to actors that have stopped, as the log has them, by path."""

    def __init__(self) -> None:
        super().__init__()
        self.of = Counter[ActorPath]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("dead letter") and isinstance(record.args, tuple):
            self.of[cast("ActorPath", record.args[1])] += 1


class Gate:
    def __init__(self, ref: Ref[Order]) -> None:
        self._is_busy = threading.Event()
        self._is_open = threading.Event()
        ref.tell(self._pass)
        assert self._is_busy.wait(WAIT_S)

    def _pass(self, _: Obedient) -> None:
        self._is_busy.set()
        self._is_open.wait(WAIT_S)

    def open(self) -> None:
        self._is_open.set()


def fail(_: Obedient) -> None:
    raise ValueError("as ordered")


def say(text: str) -> Order:
    return lambda me: me.log.put(text)


def exits_of(*refs: Ref[Any]) -> SimpleQueue[Exited]:
    exits: SimpleQueue[Exited] = SimpleQueue()
    for ref in refs:
        ref.add_watcher(object(), exits.put)
    return exits


def taken(log: Log, count: int) -> list[Any]:
    return [log.get(timeout=WAIT_S) for _ in range(count)]


def drained(log: Log) -> list[Any]:
    return [log.get() for _ in range(log.qsize())]
