"""The contract of a sink, as a test: `check_sink` writes to it in every way that gearpy does."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from types import FrameType
from typing import Any, Final

from gearpy.connectors.memory import collection
from gearpy.dsl.application import StreamApp
from gearpy.errors import ContractBroken
from gearpy.ids import AppId
from gearpy.messages.data import Batch
from gearpy.task.api.interfaces import (
    Sink,
    SinkContext,
    SinkWriter,
    TaskLimits,
    TransactionalWriter,
)
from gearpy.testing.contract import check_releases, comparable, plain
from gearpy.testing.epochs import EpochFaults
from gearpy.testing.simulation import Simulation
from gearpy.testing.writer_world import FORBIDDEN, EpochWorld, RowPlace, nothing

_RECORDS: Final = 60
_STEPS: Final = 80
_NUMBERS_MAX: Final = 4 * _STEPS
_FAULTS: Final = EpochFaults(store_ms=10, given_up=0.1, commits_lost=0.3, commits_repeated=0.3)
_CRASHES_WITHIN_MS: Final = 80


def check_sink(
    make: Callable[[str], Sink[Any]],
    read: Callable[[str], Iterable[Any]],
    *,
    record: Callable[[int], Any] = lambda number: {"n": number},
    bad: object = None,
    goes_back: bool = True,
    seeds: int = 10,
) -> None:
    """Check the promises of a sink on which gearpy relies; call this in a test of your own sink.

    Whole applications write to it, are killed at random moments and go on from their checkpoints.
    Of a transactional sink each record must be there once, also one of two tasks. Then one task is
    killed at any line of its writer, restarted, gone back with to an older epoch, and answered by
    processes that were given up: at every moment readers must see records of complete epochs only,
    each once, and none that they have seen may vanish.
    Of other sinks each record must be there; once in the end, if the sink says ``idempotent`` or
    ``takes_back``.

    Args:
        make: returns a sink that writes to the place of this name, such as a table; called often,
            as each process of a cluster has one of its own. The place is new at the first call.
        read: returns the records that readers of the place see, each equal to what was written,
            in any order; none if the place is not there yet.
        record: returns the record of a number; all numbers have different ones.
        bad: a record that the sink refuses; None: there is none to try.
        goes_back: epochs that were written are taken back when the application goes on from an
            older one, as the newest was damaged; False: the sink cannot, and that is not tried.
        seeds: so many applications, and tasks, are run and killed.

    Raises:
        ContractBroken: it breaks a promise. It is an `AssertionError`, too.

    Example:
        >>> import gearpy as gp
        >>> from gearpy.testing import MemoryTransactions, check_sink
        >>> from collections import defaultdict
        >>> places = defaultdict(MemoryTransactions)
        >>> check_sink(lambda name: places[name], lambda name: places[name].values)
    """
    trials = (
        _Trial(partial(make, place), partial(read, place), record)
        for place in map("contract_{}".format, count())
    )
    trial = next(trials)
    is_transactional = trial.make().transactional
    check_releases(f"{trial.name}, its writer", trial.write_little)
    if bad is not None:
        _check_refusal(next(trials), bad)
    if is_transactional:
        _check_hidden(next(trials))
        _check_others(next(trials))
        _check_fewer(next(trials))
    for seed in range(seeds):
        _check_application(next(trials), seed)
        if is_transactional:
            _check_kills(next(trials), seed, goes_back=goes_back)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A place to write to, and its readers."""

    make: Callable[[], Sink[Any]]
    read: Callable[[], Iterable[Any]]
    record: Callable[[int], Any]
    runs: Iterator[int] = field(default_factory=count)

    @property
    def name(self) -> str:
        return self.make().description

    def batch(self, numbers: Sequence[int]) -> Batch[Any]:
        return Batch([self.record(number) for number in numbers], [0] * len(numbers))

    def opened(self, task: int = 0, tasks: int = 1) -> SinkWriter[Any]:
        """Open the writer of a task as gearpy does."""
        sink = self.make()
        writer = sink.open(task, tasks)
        if sink.transactional != isinstance(writer, TransactionalWriter):
            raise ContractBroken(
                f"{sink.description}: transactional is {sink.transactional}, and its writer is a "
                f"{type(writer).__name__}: a TransactionalWriter, or an EpochWriter, comes of a "
                "sink with transactional = True, and of no other"
            )
        writer.begin(
            SinkContext(
                app_id=AppId(1),
                app_name="contract",
                operator=sink.description,
                limits=TaskLimits(),
                wake=lambda: None,
            )
        )
        return writer

    def begun(self, task: int = 0, tasks: int = 1) -> SinkWriter[Any]:
        """Open the writer of a task of a new run, and let it begin."""
        writer = self.opened(task, tasks)
        writer.restore(None)
        if isinstance(writer, TransactionalWriter):
            writer.recover({}, epoch=0, run=f"r{next(self.runs)}", incarnation=1)
        return writer

    def transactional(self, task: int = 0, tasks: int = 1) -> TransactionalWriter[Any]:
        writer = self.begun(task, tasks)
        assert isinstance(writer, TransactionalWriter), "the sink says so"
        return writer

    def write_little(self) -> None:
        writer = self.begun()
        writer.write_batch(self.batch([0]))
        writer.close(completed=False)

    def expect(self, numbers: Sequence[int], when: str) -> None:
        found = Counter(comparable(value) for value in self.read())
        if found != Counter(comparable(self.record(number)) for number in numbers):
            raise ContractBroken(
                f"{self.name}: readers see {list(found.elements())!r:.200} {when}; they should see "
                f"{[self.record(number) for number in numbers]!r:.200}"
            )


def _check_application(trial: _Trial, seed: int) -> None:
    """Run a program that writes to it, with crashes; each record is there as often as promised."""
    rng, sink = Random(seed), trial.make()
    app = StreamApp("contract")
    numbers = app.read(collection(range(_RECORDS), partitions=2), parallelism=2)
    numbers.map(trial.record).write(sink)
    crashes = [rng.randrange(1, _CRASHES_WITHIN_MS) for _ in range(3)]
    simulation = Simulation(
        app, seed=seed, cut_every_ms=5, crash_at_ms=crashes, may_miss=True, faults=_FAULTS
    )
    simulation.run()
    expected = Counter(comparable(trial.record(number)) for number in range(_RECORDS))
    found = Counter(comparable(value) for value in trial.read())
    if not (sink.transactional or sink.idempotent or sink.takes_back):
        found = Counter(
            {value: 1 if value in expected else times for value, times in found.items()}
        )
    if found != expected:
        raise ContractBroken(
            f"{sink.description}: an application that was killed {simulation.crashes} times (seed "
            f"{seed}) has written too much: {list((found - expected).elements())!r:.200}, and not: "
            f"{list((expected - found).elements())!r:.200}"
        )


def _check_refusal(trial: _Trial, bad: object) -> None:
    """A record that cannot be written is refused when it comes, in words."""
    writer = trial.begun()
    text = _refusal(writer, Batch([bad], [0]))
    if text is None:
        raise ContractBroken(
            f"{trial.name} has taken {bad!r}: refuse a record in write_batch (of an EpochWriter, "
            "in row_of); later nobody can deal with it"
        )
    if not text:
        raise ContractBroken(f"{trial.name} refuses {bad!r} without a text")
    if writer.atomic:
        _refusal(writer, Batch([trial.record(0), bad], [0, 0]))
        if isinstance(writer, TransactionalWriter) and writer.prepare(1) is not None:
            raise ContractBroken(
                f"{trial.name}: its writer is atomic, and has kept a record of a batch that it has "
                "refused"
            )
    writer.close(completed=False)


def _refusal(writer: SinkWriter[Any], batch: Batch[Any]) -> str | None:
    """Return the text with which a batch is refused; None if it is taken."""
    try:
        writer.write_batch(batch)
    except Exception as error:  # noqa: BLE001 - any is a refusal
        return str(error)
    return None


def _check_hidden(trial: _Trial) -> None:
    """Records are shown by the commit of their epoch, whichever writer is told of it, and once."""
    name, writer = trial.name, trial.opened()
    assert isinstance(writer, TransactionalWriter), "the sink says so"
    writer.restore(None)
    writer.recover({}, epoch=0, run="r", incarnation=1)
    writer.write_batch(trial.batch([1, 2]))
    prepared = plain(f"{name}: the result of prepare", writer.prepare(1))
    trial.expect([], "before their epoch is complete")
    writer.commit(1, prepared)
    trial.expect([1, 2], "after commit(1)")
    writer.commit(1, prepared)
    trial.expect([1, 2], "after commit(1) was said twice")
    writer.write_batch(trial.batch([3]))
    left = {2: plain(f"{name}: the result of prepare", writer.prepare(2))}
    kept = plain(f"{name}: the result of snapshot", writer.snapshot())
    writer.close(completed=False)
    again = trial.opened()
    assert isinstance(again, TransactionalWriter), "the sink says so"
    again.restore(kept)
    again.recover(left, epoch=2, run="r", incarnation=2)
    trial.expect([1, 2, 3], "after another process has recovered epoch 2")
    again.close(completed=True)
    trial.expect([1, 2, 3], "after the end")


def _check_others(trial: _Trial) -> None:
    """Two tasks of a run, and another run, take nothing from each other."""
    writers = [trial.opened(0, 2), trial.opened(1, 2), trial.opened()]
    for number, (writer, run) in enumerate(zip(writers, "rrs", strict=True)):
        assert isinstance(writer, TransactionalWriter), "the sink says so"
        writer.restore(None)
        writer.recover({}, epoch=0, run=run, incarnation=1)
        writer.write_batch(trial.batch([number]))
        writer.commit(1, writer.prepare(1))
    trial.expect([0, 1, 2], "of two tasks, and of another run that began later")
    for writer in writers:
        writer.close(completed=True)


def _check_fewer(trial: _Trial) -> None:
    """A run with one task goes on from one with two, and shows what both had prepared."""
    writers = []
    for task in range(2):
        before, writer = trial.transactional(task, 2), trial.opened(task, task + 1)
        assert isinstance(writer, TransactionalWriter), "the sink says so"
        before.write_batch(trial.batch([task]))
        prepared = plain(f"{trial.name}: the result of prepare", before.prepare(1))
        writer.restore(before.snapshot())
        before.close(completed=False)
        writer.recover({1: prepared}, epoch=1, run="fewer", incarnation=1)
        writers.append(writer)
    writer, gone = writers
    gone.leave()
    gone.close(completed=False)
    trial.expect([0, 1], "after a run with one task went on from one with two")
    writer.write_batch(trial.batch([2]))
    writer.commit(2, writer.prepare(2))
    writer.close(completed=True)
    trial.expect([0, 1, 2], "of a run with one task that went on from one with two")


# -- kills -----------------------------------------------------------------------------------


class _Quiet:
    """A medium that keeps all it was given: the store of a sink is not in this process."""

    on_step: Callable[[str], None] = staticmethod(nothing)

    def crash(self, rng: Random) -> None:
        """Nothing is lost."""


class _Place(RowPlace):
    """A place whose writers may be killed at each line of their own modules."""

    interleaves = False

    def __init__(self, trial: _Trial) -> None:
        super().__init__(_Quiet())
        self._trial = trial
        known = (*range(_NUMBERS_MAX), FORBIDDEN)
        self._number_of = {comparable(trial.record(number)): number for number in known}
        self._files: frozenset[str] = frozenset()
        self._former: Any = None

    @property
    def on_step(self) -> Callable[[str], None]:
        return self._medium.on_step

    @on_step.setter
    def on_step(self, value: Callable[[str], None]) -> None:
        if self._medium.on_step is nothing:
            self._former = sys.gettrace()
        self._medium.on_step = value
        sys.settrace(self._former if value is nothing else self._enter)

    def writer(self) -> TransactionalWriter[Any]:
        writer = self._trial.opened()
        assert isinstance(writer, TransactionalWriter)
        homes = {each.__module__ for each in type(writer).__mro__} - _NOT_OF_THE_SINK
        self._files = frozenset(sys.modules[each].__file__ or "" for each in homes)
        return writer

    def numbers(self) -> list[int]:
        tracer = sys.gettrace()
        sys.settrace(None)  # It may be of the same module; readers are not killed.
        try:
            return [self._number_of[comparable(value)] for value in self._trial.read()]
        finally:
            sys.settrace(tracer)

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._pass_line if frame.f_code.co_filename in self._files else None

    def _pass_line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._medium.on_step(f"{frame.f_code.co_name}:{frame.f_lineno}")
        return self._pass_line


_NOT_OF_THE_SINK: Final = {TransactionalWriter.__module__, "abc", "builtins", "typing"}


class _KilledTask(EpochWorld):
    """One task that writes; who was given up may fail in any way."""

    harmless = (Exception,)
    seldom = 60


class _SoundTask(_KilledTask):
    """The same, and no checkpoint is ever damaged."""

    damaged = 0.0


def _check_kills(trial: _Trial, seed: int, *, goes_back: bool) -> None:
    """Let things happen to one task, and look at what readers see after each."""
    place = _Place(trial)
    name = trial.name
    try:
        world = (_KilledTask if goes_back else _SoundTask)(place, Random(seed), batch=trial.batch)
        for _ in range(_STEPS):
            world.step()
        world.close()
    except ContractBroken as error:
        raise ContractBroken(f"{name}, killed with seed {seed}: {error}") from error
    finally:
        place.on_step = nothing
