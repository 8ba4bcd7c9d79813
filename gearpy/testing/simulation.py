"""A whole application in one thread, in virtual time, in an order that a seed decides.

Real task runners, with a network whose links keep their order but overtake each other. Epochs
can be ended at random times, by position or by event time, and all tasks be killed and restarted
from the newest one that is complete, or from an older one. A run takes no wall time to wait, and
the same seed gives the same run.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from gearpy.core.epoch.epochs import Cut
from gearpy.core.epoch.pace import EpochCut
from gearpy.core.flow.link import FlowLimits
from gearpy.errors import ApplicationFailed, ConfigError, OperatorError
from gearpy.ids import MAX_MS, MIN_MS, SessionId, TaskId
from gearpy.messages.app import TaskClock
from gearpy.messages.data import LinkMessage
from gearpy.task.api.application import Buildable
from gearpy.task.api.interfaces import TaskLimits
from gearpy.task.api.keyed import OpenState, open_on_heap
from gearpy.task.api.rejects import OnError, RejectedRecord
from gearpy.task.api.snapshots import TaskResume
from gearpy.task.runtime.outlet import OutputLimits
from gearpy.task.runtime.runner import TaskRunner
from gearpy.task.runtime.wiring import RunnerFactory
from gearpy.testing.epochs import EpochFaults, SimulatedEpochs
from gearpy.testing.world import World
from gearpy.transport.loop.virtual_loop import VirtualCoroutines

#: Small windows and batches, so that a short run meets every limit.
SMALL_LIMITS: Final = OutputLimits(
    flow=FlowLimits(
        window_records=50,
        window_bytes=100_000,
        ack_interval_records=10,
        ack_interval_ms=25,
        quiet_ack_ms=5,
        repeat_ack_ms=1000,
    ),
    batch_records=16,
    batch_bytes=50_000,
    watermark_interval_ms=3,
)
#: A task that has not confirmed a complete epoch is told again after so long.
_TELL_AGAIN_MS: Final = 40
#: A crash that is due after an epoch comes within the time of so many.
_CUTS_TO_CRASH: Final = 6
_NO_FAULTS: Final = EpochFaults()
#: Their names: several may write to one place, as runs do.
_RUNS: Final = count(1)


class _Commit(NamedTuple):
    """A task is told that an epoch is complete."""

    epoch: int


class Simulation:
    """Runs an application to its end, or as far as it is told to.

    Args:
        app: the application to run.
        seed: decides the order of everything.
        delay_ms: a message takes between 0 and this long; later ones of a link never overtake.
        limits: flow control of the tasks.
        read_records: so many are asked of a source at a time.
        idle_poll_ms: how long a source with nothing to give is left alone.
        readings_per_ms: time goes on by a ms when tasks have looked at the clock so often.
        cut_every_ms: end an epoch about so often, if the one before is complete or given up;
            None: never.
        cut: where epochs end: wherever each source is, or at an event time.
        faults: of epochs and commits.
        crash_at_ms: call `crash` so long after the start, as often as there are times.
        crashes_after_epochs: also call it so often, each time within a while of the end of an epoch
            that has records before it.
        may_miss: it is no error if no crash has counted; see ``restored``.
        renewed: makes the application once more after a crash, as the next process would; None:
            what functions and modules keep outlives crashes.
        on_error: the policy for a record that user code raises on.
        open_state: makes the keyed state of a task.

    Attributes:
        runners: the tasks; others after a crash.
        crashes: how often everything was restarted.
        restored: how many of these went back to a stored epoch with records before it and behind
            it. Others find no step that forgets.
        fallbacks: how often that was from an older epoch than the newest.
        epochs: the epochs of this run.
        quarantined: records that user code raised on, and the tasks that had them.

    Raises:
        ConfigError: the application cannot run.

    Example:
        >>> import gearpy as gp
        >>> from gearpy.testing import MemoryTransactions, Simulation
        >>> app, sink = gp.StreamApp("numbers"), MemoryTransactions()
        >>> app.read(gp.collection(range(1000))).write(sink)
        >>> recipe = {"cut_every_ms": 5, "crashes_after_epochs": 2, "read_records": 8}
        >>> Simulation(app, seed=3, **recipe).run()
        <Simulation of 'numbers', seed 3: 1 crashes, 1 of them back to a stored epoch>
    """

    def __init__(
        self,
        app: Buildable,
        *,
        seed: int = 0,
        delay_ms: int = 20,
        limits: OutputLimits = SMALL_LIMITS,
        read_records: int = 16,
        idle_poll_ms: int = 10,
        readings_per_ms: int = 8,
        cut_every_ms: int | None = None,
        cut: EpochCut = "position",
        faults: EpochFaults = _NO_FAULTS,
        crash_at_ms: Sequence[int] = (),
        crashes_after_epochs: int = 0,
        may_miss: bool = False,
        renewed: Callable[[], Buildable] | None = None,
        on_error: OnError = "fail",
        open_state: OpenState = open_on_heap,
    ) -> None:
        self.application = app.build()
        self.seed = seed
        self.world = World(seed, readings_per_ms=readings_per_ms)
        self.delivered = 0
        self.records_queued_max = 0
        self._rng = self.world.rng
        self._delay_ms = delay_ms
        self.crashes = self.fallbacks = 0
        self.quarantined: list[tuple[TaskId, RejectedRecord]] = []
        self._cut_every_ms = cut_every_ms
        self._crash_at_ms = sorted(self.now_ms + after_ms for after_ms in crash_at_ms)
        self._crashes_due = crashes_after_epochs
        self._is_crash_planned = False
        self._must_hit = bool(crash_at_ms or crashes_after_epochs) and not may_miss
        self._renewed = renewed
        self._restored = 0
        self._went_back_to: int | None = None  # Records read before the epoch of the last crash.
        self._faults = faults
        self.epochs = SimulatedEpochs(self.application.dag.tasks(), cut=cut, faults=faults)
        self._last_epoch: int | None = None  # Asked for when all tasks had finished.
        self._sessions = count(1)
        self._links: dict[tuple[TaskId, TaskId], deque[LinkMessage]] = {}
        self._link_at_ms: dict[tuple[TaskId, TaskId], int] = {}
        self._turn_at_ms: dict[TaskId, int] = {}
        self._told: dict[TaskId, deque[Cut | _Commit]] = {}
        self._told_at_ms: dict[TaskId, int] = {}
        self._coroutines = VirtualCoroutines(lambda: self.now_ms, self.world.later, self._rng)
        self._new_factory = partial(
            RunnerFactory,
            output=limits,
            limits=TaskLimits(
                batch_records=limits.batch_records,
                read_batch_records=read_records,
                columnar_batch_records=read_records,
                idle_poll_ms=idle_poll_ms,
            ),
            turn_ms=2,
            clock_ms=self.world.read_clock,
            run=f"simulation{next(_RUNS)}",
            wall_ms=lambda: self.now_ms,
            rng=self._rng,
            on_error=on_error,
            open_state=open_state,
            coroutines=self._coroutines,
        )
        self._factory = self._new_factory(application=self.application)
        self.runners: dict[TaskId, TaskRunner] = {}
        with self._naming_seed():
            self._start_all()

    def run(self, *, steps_max: int = 1_000_000) -> "Simulation":
        """Run until every task has finished, then stop the tasks.

        An error has the seed in its text or in a note.

        Raises:
            OperatorError: user code raised.
            MessageLost: a link lost messages.
            ApplicationFailed: it did not end within that many steps.
            ConfigError: crashes were wanted, and none went back to a stored epoch.
        """
        with self._naming_seed():
            try:
                for _ in range(steps_max):
                    if self.is_finished and self._has_ended_last_epoch():
                        self.stop(completed=True)
                        self._check_recipe()
                        return self
                    if not self.step():
                        break
            except OperatorError:
                for runner in self.runners.values():
                    with suppress(OperatorError):  # The first one counts.
                        runner.stop(completed=False)
                raise
        stuck = [str(self.runners[task].clock()) for task in sorted(self._unfinished)]
        raise ApplicationFailed(
            self.application.name, f"seed {self.seed}: not finished: {'; '.join(stuck)}"
        )

    def stop(self, *, completed: bool) -> None:
        """Stop all tasks, whether or not they have finished; called once, at the end.

        If the stream has ended well, the last epoch is completed and committed before.
        """
        while completed and not self._has_ended_last_epoch() and self.step():
            pass
        for runner in self.runners.values():
            runner.stop(completed=completed)

    @property
    def restored(self) -> int:
        """See `Simulation`."""
        has_read_on = self._went_back_to is not None and self._records_read > self._went_back_to
        return self._restored + has_read_on

    def __repr__(self) -> str:
        return (
            f"<Simulation of {self.application.name!r}, seed {self.seed}: {self.crashes} crashes, "
            f"{self.restored} of them back to a stored epoch>"
        )

    def advance(self, duration_ms: int) -> None:
        """Let virtual time pass, with all that happens in it."""
        self.world.pass_until(self.now_ms + duration_ms)

    def step(self) -> bool:
        """Let the next thing happen; False if nothing ever will."""
        return self.world.step()

    def cut(self) -> None:
        """Ask all sources to end the next epoch; it takes a while until they hear of it.

        An epoch that is not complete yet is given up.
        """
        share = self._faults.told_again
        if share and self._rng.random() < share:
            for runner in self.runners.values():
                runner.tell_again()
        self._announce(self.epochs.begin(self.clocks()))

    def crash(self) -> None:
        """Kill all tasks, lose messages under way; go on from the newest complete epoch.

        Nothing is stopped or closed, as when processes are killed.
        """
        self.crashes += 1
        self._is_crash_planned = False
        self._restored = self.restored
        if self._renewed is not None:
            self.application = self._renewed().build()
            self._factory = self._new_factory(application=self.application)
        self._coroutines.kill()
        self.world.clear()
        self._links.clear()
        self._link_at_ms.clear()
        self._turn_at_ms.clear()
        self._told.clear()
        self._told_at_ms.clear()
        self.fallbacks += self.epochs.on_crash(self._rng)
        self._last_epoch = None
        with self._naming_seed():
            self._start_all()
        self._went_back_to = self._records_read or None

    def wake(self, task: TaskId) -> None:
        """Give a task a turn now; if it is a source, let it look for something to give."""
        self.runners[task].poke()
        self._schedule_turn(task, self.now_ms)

    def inject(self, task: TaskId, record: RejectedRecord) -> None:
        """Give a record to a task once more."""
        self.runners[task].inject(record.value, record.event_time_ms)
        self._schedule_turn(task, self.now_ms)

    def clocks(self) -> list[TaskClock]:
        """Return the report of every task."""
        return [runner.clock() for runner in self.runners.values()]

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.world.now_ms

    @property
    def elapsed_ms(self) -> int:
        """Virtual time since the beginning."""
        return self.world.elapsed_ms

    @property
    def complete_epoch(self) -> int:
        """The newest epoch that every task has ended, and that is stored; 0 if there is none."""
        return self.epochs.complete_epoch

    @property
    def resumes(self) -> Mapping[TaskId, TaskResume]:
        """The state to which a kill takes each task back; after it, the state it started from."""
        return self.epochs.resumes

    @property
    def is_finished(self) -> bool:
        """Whether every task has ended its stream and all is acknowledged."""
        return not self._unfinished

    @property
    def is_calm(self) -> bool:
        """Whether no message is under way and all tasks have finished the work that they got."""
        return not any(self._links.values()) and all(
            runner.is_settled for runner in self.runners.values()
        )

    @property
    def _records_read(self) -> int:
        clocks = [each.clock() for each in self.runners.values() if not each.info.upstream]
        return sum(clock.records_in for clock in clocks)

    def _crash_in_time(self) -> None:
        if not self.is_finished:
            self.crash()
            self._crashes_due -= self._went_back_to is not None

    def _check_recipe(self) -> None:
        if self._must_hit and not self.restored:
            raise ConfigError(
                f"no crash of the simulation of {self.application.name!r} with seed {self.seed} "
                f"went back to a stored epoch with records before and behind it, so none could "
                f"find a step that forgets: it ended after {self.elapsed_ms} ms, {self.crashes} "
                f"crashes and epoch {self.complete_epoch}; give it more records, a smaller "
                "cut_every_ms or read_records, and crashes_after_epochs in place of crash_at_ms"
            )

    def _start_all(self) -> None:
        for task in self.application.dag.tasks():
            self.runners[task] = self._factory.make(
                task,
                SessionId(next(self._sessions)),
                epoch=self.epochs.asked_epoch + 1,
                resume=self.resumes.get(task),
            )
        self._unfinished = set(self.runners)
        self._plan_cut()
        while self._crash_at_ms and self._crash_at_ms[0] <= self.now_ms:
            self._crash_at_ms.pop(0)
        for at_ms in self._crash_at_ms[:1]:
            self.world.at(at_ms, self.crash)
        tasks = list(self.runners)
        self._rng.shuffle(tasks)
        for task in tasks:
            self.runners[task].context.wake = partial(self._signal, task)
            self.runners[task].open(MIN_MS)
            self._send_all(task)
            self._schedule_turn(task, self._later_ms())

    def _plan_cut(self) -> None:
        if self._cut_every_ms is not None:
            wait_ms = self._rng.randrange(2 * self._cut_every_ms + 1)
            self.world.later(wait_ms, self._cut_if_due)

    def _turn(self, task: TaskId, at_ms: int) -> None:
        if self._turn_at_ms.get(task) != at_ms:
            return  # It was planned anew, for an earlier time.
        del self._turn_at_ms[task]
        runner = self.runners[task]
        wake_ms = runner.turn()
        self._send_all(task)
        self._store(task)
        if task in self._unfinished and runner.clock().clock_ms == MAX_MS:
            self._unfinished.discard(task)
        if wake_ms is not None:
            self._schedule_turn(task, max(wake_ms, self.now_ms))

    def _send_all(self, task: TaskId) -> None:
        outbox = self.runners[task].outbox
        for message in outbox:
            link = (task, message.target)
            self._links.setdefault(link, deque()).append(message)
            at_ms = self._later_ms()
            at_ms = self._link_at_ms[link] = max(at_ms, self._link_at_ms.get(link, 0))
            self.world.at(at_ms, partial(self._deliver, link))
        outbox.clear()

    def _deliver(self, link: tuple[TaskId, TaskId]) -> None:
        message = self._links[link].popleft()
        runner = self.runners[link[1]]
        runner.receive(message)
        self.delivered += 1
        self.records_queued_max = max(self.records_queued_max, runner.records_queued)
        self._schedule_turn(link[1], self.now_ms)

    def _signal(self, task: TaskId) -> None:
        self._schedule_turn(task, self._later_ms())

    def _schedule_turn(self, task: TaskId, at_ms: int) -> None:
        if self._turn_at_ms.get(task, at_ms + 1) > at_ms:
            self._turn_at_ms[task] = at_ms
            self.world.at(at_ms, partial(self._turn, task, at_ms))

    def _store(self, task: TaskId) -> None:
        """Keep the snapshots of a task; an epoch is complete when all tasks have ended it."""
        runner = self.runners[task]
        self.quarantined += [(task, record) for record in runner.rejected]
        runner.rejected.clear()
        epoch = self.epochs.on_snapshots(task, runner.snapshots)
        if epoch is not None:
            self._within(self._faults.store_ms, partial(self._on_stored, epoch))
        for committed in runner.committed:
            self.epochs.on_committed(task, committed)
        runner.snapshots.clear()
        runner.committed.clear()

    # -- epochs ----------------------------------------------------------------------------

    def _cut_if_due(self) -> None:
        """End the next epoch, or give up the one that is under way, or ask for it again."""
        ending = self.epochs.ending
        if ending is None or self._rng.random() < self._faults.given_up:
            self.cut()
        else:
            self._announce(ending)
        self._plan_cut()

    def _announce(self, cut: Cut) -> None:
        for task, runner in self.runners.items():
            if not runner.info.upstream:
                for _ in range(self._rng.choice([1, 1, 2])):  # It may be asked again.
                    self._tell(task, cut)

    def _on_stored(self, epoch: int) -> None:
        if self.epochs.on_stored(epoch):
            if self._crashes_due > 0 and self._records_read and not self._is_crash_planned:
                self._is_crash_planned = True
                self._within(_CUTS_TO_CRASH * (self._cut_every_ms or 1), self._crash_in_time)
            self._within(self._faults.commit_ms, partial(self._tell_committed, epoch))

    def _tell_committed(self, epoch: int) -> None:
        tasks = self.epochs.uncommitted(epoch)
        for task in tasks:
            if self._rng.random() >= self._faults.commits_lost:
                self._tell(task, _Commit(epoch))
            if self._rng.random() < self._faults.commits_repeated:
                self._tell(task, _Commit(epoch))
        if tasks:
            self.world.later(_TELL_AGAIN_MS, partial(self._tell_committed, epoch))

    def _tell(self, task: TaskId, what: Cut | _Commit) -> None:
        self._told.setdefault(task, deque()).append(what)
        at_ms = max(self._later_ms(), self._told_at_ms.get(task, 0))
        self._told_at_ms[task] = at_ms
        self.world.at(at_ms, partial(self._hear, task))

    def _hear(self, task: TaskId) -> None:
        what = self._told[task].popleft()
        if isinstance(what, Cut):
            self.runners[task].cut(what.epoch, what.cut_time_ms)
        else:
            self.runners[task].commit(what.epoch)
        self._schedule_turn(task, self.now_ms)

    def _has_ended_last_epoch(self) -> bool:
        """Ask for the last epoch when all tasks have finished; tell when all have committed it."""
        if self._last_epoch is None:
            self.cut()
            self._last_epoch = self.epochs.asked_epoch
        return self.epochs.committed_epoch >= self._last_epoch

    # -- time ------------------------------------------------------------------------------

    def _within(self, duration_ms: int, act: Callable[[], object]) -> None:
        self.world.later(self._rng.randrange(duration_ms + 1), act)

    def _later_ms(self) -> int:
        return self.now_ms + self._rng.randrange(self._delay_ms + 1)

    @contextmanager
    def _naming_seed(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            error.add_note(f"simulation of {self.application.name!r} with seed {self.seed}")
            raise
