"""Chains of stages with little room, in every order: nothing stops, spins, is lost or overtaken."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gearpy.ids import MAX_MS, MIN_MS
from gearpy.messages.data import Batch, Message
from gearpy.task.api.interfaces import TaskContext
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.chain.chain import ChainTask
from gearpy.task.chain.stage import Stage
from tests.task.build import TARGET, Bench, some_limits
from tests.task.stage_build import Delayed, Held, Spread

#: Turns in a row that may come to nothing: a job has ended, a wake has found that all is done.
IDLE_TURNS_MAX = 5

_Held: TypeAlias = tuple[int, Any, int]  # When it is done, by wall time; value and event time.
_Kind: TypeAlias = tuple[str, int, int]  # Name, room, delay.


class HoldsUp(Held):
    """Lets no watermark overtake what it keeps, as a join does; has room for all."""

    name = "holds up"
    defers = True

    @property
    def passed_ms(self) -> int:
        return min(self.watermark_ms, self.hold_ms)


class Through(HoldsUp):
    """Yields records at once, one by one, as a join does where it knows enough."""

    name = "through"

    def process(self, batch: Batch) -> Iterator[Batch]:
        for value, time in zip(batch.values, batch.timestamps, strict=True):
            yield Batch([value], [time])


class Slow(Spread):
    """Has room for few records; each is done so many ms of wall time after it came."""

    name = "slow"
    defers = True

    def __init__(self, now_ms: Callable[[], int], room: int, delay_ms: int) -> None:
        self._now_ms = now_ms
        self._room = room
        self._delay_ms = delay_ms
        self._watermark_ms = MIN_MS
        self._passed_ms = MIN_MS
        self.held: deque[_Held] = deque()

    def process(self, batch: Batch) -> Iterator[Batch]:
        done_ms = self._now_ms() + self._delay_ms
        self.held += [(done_ms, *each) for each in zip(batch.values, batch.timestamps, strict=True)]
        return iter(())

    def on_watermark(self, watermark_ms: int) -> Iterator[Batch]:
        self._watermark_ms = watermark_ms
        return iter(())

    def release(self) -> Iterator[Batch]:
        while self.is_ready:
            _, value, time = self.held.popleft()
            yield Batch([value], [time])

    @property
    def has_room(self) -> bool:
        return len(self.held) < self._room

    @property
    def is_ready(self) -> bool:
        return bool(self.held) and self.held[0][0] <= self._now_ms()

    @property
    def hold_ms(self) -> int:
        return min((time for _, _, time in self.held), default=MAX_MS)

    @property
    def passed_ms(self) -> int:
        self._passed_ms = max(self._passed_ms, min(self._watermark_ms, self.hold_ms))
        return self._passed_ms

    def snapshot(self) -> Any:
        held = [[value, time] for _, value, time in self.held]
        return [self._watermark_ms, self._passed_ms, held]

    def restore(self, state: Any) -> None:
        self._watermark_ms, self._passed_ms, held = state or (MIN_MS, MIN_MS, [])
        self.process(Batch([value for value, _ in held], [time for _, time in held]))


def stage_of(kind: _Kind, context: TaskContext) -> Stage:
    name, room, delay_ms = kind
    match name:
        case "slow":
            return Slow(context.now_ms, room, delay_ms)
        case "delayed":
            return Delayed(context, delay_ms)
        case _:
            return {"spread": Spread, "held": Held, "holds up": HoldsUp, "through": Through}[name]()


class Run:
    """A chain on a bench, and its records: two of each ms of event time, in portions."""

    def __init__(
        self, kinds: Sequence[_Kind], portions: Sequence[int], resume: TaskResume | None = None
    ) -> None:
        self.made: list[Stage] = []
        self._portions = portions

        def make(context: TaskContext) -> ChainTask:
            self.made = [stage_of(kind, context) for kind in kinds]
            return ChainTask(context, lambda _: self.made)

        self.bench = Bench(
            make,
            limits=some_limits(window=7, interval=3, batch=3),
            turn_ms=0,  # After each step: then none can spin within a turn.
            resume=resume,
            epoch=1 if resume is None else 2,
        ).open()
        self._wall_ms = self.bench.runner.context.now_ms() - self.bench.now_ms

    def send(self, *, from_portion: int = 0, epoch_ends_at: int | None = None) -> "Run":
        sent = sum(self._portions[:from_portion])
        for at in range(from_portion, len(self._portions)):
            size = self._portions[at]
            records = [Message(n, n // 2) for n in range(sent, sent + size)]
            sent += size
            is_first = epoch_ends_at is None or at < epoch_ends_at
            epoch = 1 if is_first and not from_portion else 2
            self.bench.send(*records, watermark_ms=(sent - 1) // 2, epoch=epoch)
            if at + 1 == epoch_ends_at:
                self.bench.send(epoch=2)
        is_first = epoch_ends_at is None and not from_portion
        self.bench.send(watermark_ms=MAX_MS, epoch=1 if is_first else 2)
        return self

    def run(self) -> "Run":
        bench, idle = self.bench, 0
        while bench.target.watermark_ms < MAX_MS:
            before = self._state()
            wake_ms = bench.turn()
            bench.consume(TARGET)
            if self._state() != before:
                idle = 0
            elif wake_ms is not None and wake_ms <= bench.now_ms:
                idle += 1
                assert idle <= IDLE_TURNS_MAX, "turns come to nothing: it spins"
            else:
                self._let_time_pass(wake_ms)
                idle = 0
        return self

    @property
    def has_kept_time(self) -> bool:
        return not self.bench.target.late

    def _state(self) -> Any:
        target = self.bench.target
        kept = [
            len(getattr(stage, name))
            for stage in self.made
            for name in ("held", "kept", "waiting")
            if hasattr(stage, name)
        ]
        told = [getattr(stage, "watermark_ms", 0) for stage in self.made]
        runner = self.bench.runner
        return (kept, told, runner.records_queued, len(target.data), len(target.queue))

    def _let_time_pass(self, wake_ms: int | None) -> None:
        due = [
            stage.held[0][0] - 1_000_000
            for stage in self.made
            if hasattr(stage, "held") and stage.held
        ]
        times = [at for at in (wake_ms, *due) if at is not None and at > self.bench.now_ms]
        assert times, "nothing will ever happen: it hangs"
        self.bench.now_ms = min(times)


_KINDS = st.one_of(
    st.tuples(st.sampled_from(["slow"]), st.integers(1, 5), st.integers(0, 7)),
    st.tuples(st.sampled_from(["spread", "held", "holds up", "through"]), st.just(0), st.just(0)),
    st.tuples(st.just("delayed"), st.just(0), st.integers(1, 7)),
)


@pytest.mark.slow
@settings(max_examples=80)
@given(
    kinds=st.lists(_KINDS, min_size=1, max_size=6),
    portions=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    end=st.integers(1, 5),
)
def test_any_stages_pass_all_records_in_order(
    kinds: list[_Kind], portions: list[int], end: int
) -> None:
    ends_at = min(end, len(portions))

    run = Run(kinds, portions).send(epoch_ends_at=ends_at).run()
    first = dict(run.bench.target.epochs).get(1, [])
    again = Run(kinds, portions, run.bench.snapshot(1)).send(from_portion=ends_at).run()

    assert run.bench.target.values == list(range(sum(portions)))
    assert first + again.bench.target.values == list(range(sum(portions)))
    if not any(name == "delayed" for name, _, _ in kinds):  # It waits for wall time alone.
        assert run.has_kept_time
        assert again.has_kept_time


@pytest.mark.parametrize(
    "names",
    [
        ["through", "slow"],
        ["through", "through", "slow", "slow"],
        ["slow", "through", "slow"],
        ["holds up", "delayed", "slow", "holds up", "slow"],
    ],
    ids=" ".join,
)
def test_full_stage_behind_one_that_has_room(names: list[str]) -> None:
    run = Run([(name, 2, 3) for name in names], [12] * 4).send().run()

    assert run.bench.target.values == list(range(48))
    # Two at a time, 3 ms each; the stages in a row work at the same time.
    assert run.bench.now_ms <= 24 * (3 + names.count("delayed") * 3 + len(names))
