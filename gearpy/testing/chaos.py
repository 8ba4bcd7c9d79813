"""A program under crashes in virtual time, compared with the same program undisturbed.

Its sources are read once, before; its sinks are replaced by memory that shows each result once.
After a crash the program is loaded anew, as a process would, so what functions and modules keep is
gone. Where results differ, the program runs once more with such memory behind each of its steps.
"""

import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any, Final, Literal

from msgspec.structs import replace

from gearpy.columns.row_schema import RowSchema
from gearpy.core.flow.link import FlowLimits
from gearpy.dsl.application import StreamApp, written_as
from gearpy.dsl.lower.rewired import watched
from gearpy.dsl.operators.operator import Operator, ReadOperator
from gearpy.dsl.operators.routes import ProcessOperator, WriteOperator
from gearpy.dsl.plan.linear import place_of
from gearpy.errors import ConfigError, OperatorError
from gearpy.ids import MAX_MS
from gearpy.messages.data import Batch, Message
from gearpy.spark.query.difference import Difference, difference
from gearpy.spark.query.recorded import record
from gearpy.task.api.application import StreamApplication
from gearpy.task.api.interfaces import Source, SourceReader, Task
from gearpy.testing.epochs import EpochFaults
from gearpy.testing.simulation import SMALL_LIMITS, Simulation
from gearpy.testing.transactions import MemoryTransactions

#: Why results differ: by crashes; or without any, in a second run, or in another order of messages.
Reason = Literal["crash", "chance", "order"]
#: Records by the place of the step in the program.
_Outputs = Mapping[int, Sequence[Message]]

_CRASHES: Final = 3
_FAULTS: Final = EpochFaults(store_ms=5, given_up=0.1, commits_lost=0.3, commits_repeated=0.3)
#: A source is read in about so many portions, and a run has about so many epochs.
_PORTIONS: Final = 150
_EPOCHS: Final = 15
_DELAY_MS: Final = 3
#: So many seeds are tried to find the step; each has crashes at times of its own.
_SEEDS_FOR_STEP: Final = 10
#: If nothing has gone on for so long, a call of the program does not end.
_STUCK_S: Final = 30
#: Sums of floats in another order differ by less; times of the day by more.
_TOLERANCE: Final = 1e-12
_STEPS_MAX: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosVerdict:
    """What crashes make of a program.

    Attributes:
        app: its name.
        records: how many records were read, by source.
        results: how many results its sinks show undisturbed.
        seeds: how many seeds were tried.
        crashes: in all of them.
        restored: how many of these went back to a stored epoch, with records before and behind it.
        reason: why results differ; empty where they are alike.
        seed: the smallest one that differs.
        step: the first step whose output differs, and where its code is.
        advice: what it may do, and the cure.
        found: the difference, of the step, or of the sinks if no step was found.
        error: what the program raises after a crash, and not without.
    """

    app: str
    records: Mapping[str, int]
    results: int = 0
    seeds: int = 0
    crashes: int = 0
    restored: int = 0
    reason: Reason | Literal[""] = ""
    seed: int = 0
    step: str = ""
    advice: str = ""
    found: Difference | None = None
    error: str = ""


class Chaos:
    """Runs one program with many seeds.

    Args:
        load: makes the application, each time as a new process would.
        folder: for the records of its sources.
        records: so many are taken of each source; None: all.
        seconds: each source is read for so long at most; None: to its end.

    Raises:
        ConfigError: its graph was made by hand; or a source has no end, and there is no limit.
    """

    def __init__(
        self,
        load: Callable[[], StreamApplication],
        folder: Path,
        *,
        records: int | None = None,
        seconds: float | None = None,
    ) -> None:
        self._load = load
        self._sources: list[Source] = []
        counts: dict[str, int] = {}
        app = self._program()
        for at, source in enumerate(_sources_of(app)):
            recorded = record(source, folder / f"{at:03d}", limit=records, seconds=seconds)
            recorded.pauses = True
            self._sources.append(recorded)
            name = source.description
            counts[name] = counts.get(name, 0) + recorded.records
        self._verdict = ChaosVerdict(app=app.name, records=counts)
        self._portion = max(1, min(64, max(counts.values(), default=0) // _PORTIONS))
        self._cut_every_ms: int | None = None
        self._is_serial = False

    def verdict(self, seeds: Sequence[int]) -> ChaosVerdict:
        self._cut_every_ms, self._is_serial = None, False
        _, undisturbed = self._run(0)
        self._cut_every_ms = max(2, undisturbed.elapsed_ms // _EPOCHS)
        first, _ = self._run(0)
        verdict = dataclasses.replace(self._verdict, results=sum(map(len, first.values())))
        if not (found := _differing(first, self._run(0)[0])).is_empty:
            return self._located(dataclasses.replace(verdict, reason="chance", found=found))
        if (found := _differing(first, self._run(1)[0])).is_empty:
            return self._crashed(verdict, first, seeds)
        by_order = self._located(dataclasses.replace(verdict, reason="order", found=found, seed=1))
        self._is_serial = True
        first, _ = self._run(0)
        if not _differing(first, self._run(1)[0]).is_empty:
            return by_order
        crashed = self._crashed(verdict, first, seeds)
        return crashed if crashed.reason else by_order

    def _crashed(
        self, verdict: ChaosVerdict, first: _Outputs, seeds: Sequence[int]
    ) -> ChaosVerdict:
        """Compare runs with crashes with the one without."""
        for seed in seeds:
            verdict = dataclasses.replace(verdict, seeds=verdict.seeds + 1)
            try:
                outputs, simulation = self._run(seed, crashes=_CRASHES)
            except OperatorError as error:
                step = repr(error.operator)
                return dataclasses.replace(
                    verdict, reason="crash", seed=seed, step=step, error=error.cause
                )
            verdict = dataclasses.replace(
                verdict,
                crashes=verdict.crashes + simulation.crashes,
                restored=verdict.restored + simulation.restored,
            )
            if not (found := _differing(first, outputs)).is_empty:
                return self._located(
                    dataclasses.replace(verdict, reason="crash", found=found, seed=seed)
                )
        if not verdict.restored:
            counts = ", ".join(f"{n} of {name}" for name, n in verdict.records.items())
            raise ConfigError(
                f"{verdict.app}: no crash came between its records, as there are too few: "
                f"{counts}; give it more, or other seeds"
            )
        return verdict

    def _located(self, verdict: ChaosVerdict) -> ChaosVerdict:
        """Find the first step whose output differs, by watching all of them."""
        last = verdict.seed + (_SEEDS_FOR_STEP if verdict.reason == "crash" else 1)
        try:
            first, _ = self._run(0, every_step=True)
            for seed in range(verdict.seed, last):
                crashes = _CRASHES if verdict.reason == "crash" else 0
                outputs, _ = self._run(seed, crashes=crashes, every_step=True)
                for at, step in enumerate(self._program().plan):
                    found = _difference(first.get(at, ()), outputs.get(at, ()))
                    if not found.is_empty:
                        told = f"{step.name!r}{place_of(step)}"
                        return dataclasses.replace(
                            verdict, step=told, found=found, advice=_advice(step)
                        )
        except (OperatorError, ConfigError):  # Records between the steps cannot be stored.
            pass
        return verdict

    def _run(
        self, seed: int, *, crashes: int = 0, every_step: bool = False
    ) -> tuple[_Outputs, Simulation]:
        """Return the records by step, of sinks alone or of all; and the run."""
        shown: dict[int, MemoryTransactions] = {}

        def sink_of(at: int) -> MemoryTransactions:
            return shown.setdefault(at, MemoryTransactions(f"step {at}", messages=True))

        def made() -> StreamApplication:
            app = self._program()
            kept = map(_Merged, self._sources) if self._is_serial else self._sources
            sources = dict(zip(_sources_of(app), kept, strict=True))
            return watched(
                app.name,
                app.plan,
                parallelism=app.parallelism,
                sources=sources,
                sink_of=sink_of,
                every_step=every_step,
                is_serial=self._is_serial,
            )

        with _quietly():
            simulation = Simulation(
                made(),
                seed=seed,
                delay_ms=_DELAY_MS,
                limits=self._limits,
                read_records=self._portion,
                cut_every_ms=self._cut_every_ms,
                faults=_FAULTS,
                crashes_after_epochs=crashes,
                may_miss=True,
                renewed=made,
            )
            with _unless_stuck(simulation):
                simulation.run(steps_max=_STEPS_MAX)
        return {at: sink.values for at, sink in sorted(shown.items())}, simulation

    @property
    def _limits(self) -> Any:
        window = 8 * self._portion
        flow = replace(
            SMALL_LIMITS.flow, window_records=window, ack_interval_records=max(1, window // 4)
        )
        assert isinstance(flow, FlowLimits)
        return replace(SMALL_LIMITS, flow=flow, batch_records=max(1, self._portion))

    def _program(self) -> StreamApp:
        with _quietly():
            application = self._load()
        app = written_as(application)
        if app is None:
            raise ConfigError(
                f"{application.name}: its graph was made by hand, and sinks can be replaced in "
                "programs of the stream language only: write a test with gearpy.testing.Simulation"
            )
        return app


class _Merged(Source):
    """A source whose partitions are one, whose order depends on their records alone."""

    replayable = True
    bounded = True

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def description(self) -> str:
        return self._source.description

    @property
    def schema(self) -> RowSchema | None:
        return self._source.schema

    def partitions(self) -> Sequence[str]:
        return ["all"]

    def open(self, partition: str, resume: Any | None) -> SourceReader:
        names = self._source.partitions()
        places = resume or [None] * len(names)
        return _MergedReader([*map(self._source.open, names, places)])


class _MergedReader(SourceReader):
    """Reads the partition that is furthest behind; among equals the first one."""

    out_of_order_ms = None

    def __init__(self, readers: Sequence[SourceReader]) -> None:
        self._readers = readers

    def read_batch(self, max_records: int) -> Batch | None:
        left = [each for each in self._readers if not each.finished]
        self.finished = not left
        return min(left, key=_watermark_of).read_batch(max_records) if left else None

    def snapshot(self) -> list[Any]:
        return [each.snapshot() for each in self._readers]

    @property
    def watermark_ms(self) -> int:
        left = [each for each in self._readers if not each.finished]
        return min(map(_watermark_of, left), default=MAX_MS)

    def close(self) -> None:
        for each in self._readers:
            each.close()


def _watermark_of(reader: SourceReader) -> int:
    return reader.watermark_ms


def _sources_of(app: StreamApp) -> list[Source]:
    return list(dict.fromkeys(step.source for step in app.plan if isinstance(step, ReadOperator)))


def _differing(first: _Outputs, other: _Outputs) -> Difference:
    """Return the difference of the first sink that has one; of the last one if none has."""
    found = _difference((), ())
    for at in first:
        found = _difference(first[at], other.get(at, ()))
        if not found.is_empty:
            break
    return found


def _difference(one: Sequence[Message], other: Sequence[Message]) -> Difference:
    return difference(one, other, tolerance=_TOLERANCE)


def _advice(step: Operator) -> str:
    if isinstance(step, ReadOperator | WriteOperator):
        return ""
    task = step.task if isinstance(step, ProcessOperator) else None
    if isinstance(task, type) and issubclass(task, Task) and task.snapshot is Task.snapshot:
        return (
            f"{task.__qualname__} has no snapshot(): what it keeps in itself is gone after a "
            "restart; keep it in context.state, or write snapshot() and take it from "
            "context.resume in on_start"
        )
    return (
        "what a function keeps between records, in itself or in its module, is gone after a "
        "restart: keep it in state, as with map_with_state; and let it depend on its record alone"
    )


@contextmanager
def _quietly() -> Iterator[None]:
    with redirect_stdout(StringIO()):
        yield


@contextmanager
def _unless_stuck(simulation: Simulation) -> Iterator[None]:
    """End a call of the program in which nothing goes on any more; on the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    events = -1

    def look(_number: int, _frame: FrameType | None) -> None:
        nonlocal events
        if events == simulation.world.events:
            raise TimeoutError(f"the call has not ended within {_STUCK_S} s")
        events = simulation.world.events

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _STUCK_S, _STUCK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
