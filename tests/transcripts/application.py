"""The story of an application: what its app master decides, and what is done to it.

Executors register and answer each step at once, until told not to. They store epochs when told to.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from gearpy.core.app.decisions import (
    Activated,
    Command,
    DropSnapshots,
    Ended,
    EpochAborted,
    EpochsRetired,
    FellBack,
    HeldUp,
    StoreManifest,
    Survived,
)
from gearpy.core.app.deployment import Send
from gearpy.core.app.executors import Launch, Release, RequestSlots, Stop
from gearpy.ids import MIN_MS, ExecutorId, TaskId
from gearpy.messages import app
from gearpy.messages.app import (
    AbortEpoch,
    BeginEpoch,
    CommitEpoch,
    LaunchTasks,
    SnapshotFile,
    StartAllTasks,
    StopAllTasks,
    TaskLocationsReady,
)
from tests.core.manager_bench import Bench, allocation
from tests.transcripts.transcript import Player, Words


def _attempt(number: int) -> str:
    """Return an attempt as the launch of its app master, and its number there."""
    return f"{number >> 32}.{number & 0xFFFFFFFF}"


def _files(files: Iterable[SnapshotFile]) -> str:
    names = (each.location.partition("/")[2].split("-") for each in files)
    return ", ".join(f"{epoch} of executor {executor}" for epoch, _, executor in names)


def _tasks(tasks: Iterable[Any]) -> str:
    return " ".join(str(getattr(each, "task_id", each)) for each in tasks)


def _launch_tasks(it: LaunchTasks) -> str:
    source = f"from {_files(it.snapshots)}" if it.snapshots else "from the beginning"
    return f"tasks {_tasks(it.tasks)} {source}, epoch {it.epoch}"


#: What is behind the name of a message.
_SENT: Final[dict[type, Callable[[Any], str]]] = {
    LaunchTasks: _launch_tasks,
    TaskLocationsReady: lambda it: ", ".join(
        f"{_tasks(each.tasks)} at {each.data_address}" for each in it.locations
    ),
    StartAllTasks: lambda it: (
        f"at {'the beginning' if it.start_time_ms == MIN_MS else it.start_time_ms}"
    ),
    BeginEpoch: lambda it: f"{it.epoch}{', the last' if it.is_last else ''}",
    AbortEpoch: lambda it: f"{it.epoch}",
    CommitEpoch: lambda it: f"{it.epoch}",
    StopAllTasks: lambda it: "at the end" if it.completed else "for another attempt",
}


def _sent(command: Send) -> str:
    message: Any = command.message
    kind = type(message).__name__
    return f"{kind} {_SENT[type(message)](message)} (attempt {_attempt(message.attempt)})"


#: How a decision reads.
_DECIDED: Final[dict[type, Callable[[Any], str]]] = {
    RequestSlots: lambda it: f"request {it.slots} slots for {it.executors} executors",
    Release: lambda it: f"release {it.slots} slots of worker {it.worker_id}",
    Launch: lambda it: (
        f"launch executor {it.executor_id} as process {it.launch} "
        f"in {it.allocation.slots} slots of worker {it.allocation.worker_id}"
    ),
    Stop: lambda it: (
        f"{'kill' if it.kill else 'stop'} process {it.launch} of executor {it.executor_id}"
        f"{': ' if it.reason else ''}{it.reason}"
    ),
    Activated: lambda _: "ACTIVE",
    HeldUp: lambda _: "HELD UP: waits for slots",
    StoreManifest: lambda it: (
        f"store that epoch {it.manifest.epoch} is complete: {_files(it.manifest.snapshots)}"
    ),
    EpochsRetired: lambda it: f"forget epoch {', '.join(map(str, it.epochs))}",
    EpochAborted: lambda it: f"give up epoch {it.epoch}: {it.reason}",
    FellBack: lambda it: f"FALL BACK to epoch {it.to}, for ever",
    DropSnapshots: lambda it: f"delete {_files(it.files)}",
    Survived: lambda it: f"RESTART of {it.what} in {it.delay_ms} ms: {it.error.cause}",
    Ended: lambda it: f"ENDED: {it.status}{f': {it.cause.cause}' if it.cause else ''}",
}


def _decided(commands: Iterable[Command]) -> Iterator[str]:
    """Yield a line for each decision; one for all that are told the same."""
    for told, group in groupby(
        commands, lambda each: _sent(each) if isinstance(each, Send) else None
    ):
        if told is None:
            yield from (_DECIDED[type(each)](each) for each in group)
        else:
            names = [str(each.executor_id) for each in group if isinstance(each, Send)]
            yield f"to executor {', '.join(names)}: {told}"


class _Application:
    """An application of one region, or of several that have nothing to do with each other."""

    def start(self, words: Words) -> Iterator[str]:
        """Begin, with a source and a sink of so many tasks for each region."""
        shapes = [tuple(map(int, each.split("x"))) for each in words.plain]
        self._bench = Bench(
            *((source, sink) for source, sink in shapes),
            executors=words.number("executors", 2),
            restarts=words.number("restarts", 5),
            backoff_ms=words.number("backoff-ms", 100),
            epoch_timeout_ms=words.number("epoch-timeout-ms", 60_000),
            is_begun=False,
        )
        self._bench.grants = words.settings.get("slots") != "none"
        self._bench.silent = {ExecutorId(each) for each in self._numbers(words, "silent")}
        self._bench.begin()
        return _decided(self._bench.done)

    def without(self, words: Words) -> Iterator[str]:
        """Let an executor leave a message of a kind unanswered; no word: all answer again."""
        self._bench.unanswered = {
            (ExecutorId(words.number("executor", 0)), getattr(app, kind)) for kind in words.plain
        }
        yield from ()

    def wait(self, words: Words) -> Iterator[str]:
        return _decided(self._bench.tick(int(words.plain[0])))

    def grant(self, words: Words) -> Iterator[str]:
        given = [allocation(int(each)) for each in words.plain]
        return _decided(
            self._bench.obey(self._bench.manager.on_allocated(given, self._bench.now_ms))
        )

    def lose(self, words: Words) -> Iterator[str]:
        return _decided(self._bench.lose(ExecutorId(int(words.plain[0])), "signal 9"))

    def fail(self, words: Words) -> Iterator[str]:
        processor, index = words.plain[0].split(".")
        return _decided(self._bench.fail_task(TaskId(int(processor), int(index)), "it raised"))

    def store(self, words: Words) -> Iterator[str]:
        """Let executors store the epoch that was announced last, each one's own part."""
        region = self._bench.manager.regions[words.number("region", 0)]
        for each in words.plain:
            commands = self._bench.store(region, ExecutorId(int(each)))
            yield from _decided(self._bench.obey(commands))

    def damage(self, words: Words) -> Iterator[str]:
        """Let an executor tell that it cannot read what it stored in an epoch."""
        executor, epoch = ExecutorId(int(words.plain[0])), int(words.settings["epoch"])
        kept = self._bench.manager.regions[0].history.manifests
        (location,) = (
            file.location
            for manifest in kept
            if manifest.epoch == epoch
            for file in manifest.snapshots
            if file.location.endswith(f"-{executor}")
        )
        return _decided(self._bench.damage(executor, location))

    def finish(self, words: Words) -> Iterator[str]:
        return _decided(self._bench.finish(words.number("region", 0)))

    def relaunch(self, words: Words) -> Iterator[str]:
        """Let the app master crash, and another one go on from what is stored."""
        regions = self._bench.manager.regions
        manifests = [each for region in regions for each in region.history.manifests]
        self._bench.manager = self._bench.another(
            launch=int(words.plain[0]), has_run=True, manifests=manifests
        )
        self._bench.done = []
        self._bench.begin()
        return _decided(self._bench.done)

    @staticmethod
    def _numbers(words: Words, key: str) -> list[int]:
        return [int(each) for each in words.settings.get(key, "").split(",") if each]


def application_player() -> Player:
    it = _Application()
    named = (it.start, it.without, it.wait, it.grant, it.lose, it.fail, it.store, it.damage)
    return {each.__name__: each for each in (*named, it.finish, it.relaunch)}
