"""Clusters in virtual time whose application is changed while it runs, with faults meanwhile.

What must come out has a closed form: each record is shown once, by the version that ran when it was
read; of a partition, records that one version has shown come before those of the next. What is
kept by key goes on over all changes. A version that has failed shows nothing. A source that a
version brings along is read from its beginning, and up to where it was when another version has
it no more; each time, if it comes again. A savepoint has all its files at the end.
What is drained, or fails for good, lacks the last records of each partition at most.
"""

import logging
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, Literal

import gearpy as gp
from gearpy.cluster.checkpoints.stored_savepoints import drop_savepoint, stored_savepoints
from gearpy.core.coordinator.log import CoordinatorState
from gearpy.core.coordinator.versions import ProgramVersion, Versions
from gearpy.core.coordinator.views import EpochManifests
from gearpy.errors import GearpyError, SnapshotDamaged
from gearpy.ids import MASTER_EXECUTOR, AppId
from gearpy.messages.client import MakeSavepoint, SavepointMade, UpdatePlanned
from gearpy.storage.coordinator_log import read_log
from gearpy.testing.transactions import MemoryTransactions
from tests.bench.simulate import Fault, FaultSchedule, SeedResult, Way, end_problem, slots_problem
from tests.bench.simulated_app import SimulatedApp, Words, upper, word_of
from tests.world.cluster import ClusterSimulation

SHORTER: Final = 6  # So much shorter are most runs.
_LONG_OF_TEN: Final = 2
_WITHIN_MS: Final = 300_000
_CHANGES_MAX: Final = 4
_AGAIN_MS: Final = 300
_TRIES: Final = 20
PAUSE_MS: Final = 70  # Between two reads of a source: so long that there is time for changes.
_KEYED: Final = ("numbered", "windows")
_MORE_PARTITIONS: Final = 2
_SAVEPOINTS_MAX: Final = 3
_AIMED: Final = (3, 12)  # So many faults are aimed, at least, and fewer than.
_SOON_MS: Final = (0, 0, 3, 20, 300)  # After a phase has begun; 0: before anything else happens.
_RARE: Final = {"switch", "going back"}  # In these something always happens, and soon.
_FIRST_WEIGHT: Final = 0.4  # Of the chance in the first phase: some changes are to get beyond it.
_LOG: Final = "/coordinator/"
_ENDS_OFTEN: Final = 5  # Times as often as others.
_STRIKES: Final = 4  # Are tried for one fault.
#: Short names of what a change does.
_DOING: Final = {
    "its processes are being started": "start of processes",
    "it reads state": "reading",
    "the last epoch of the version before ends": "last epoch",
    "it is put in place": "switch",
    "it is on trial": "trial",
}
#: How aimed runs end, in turn.
_WAYS: Final[tuple[Way, ...]] = ("finish", "finish", "finish", "drain", "tight")
#: The phases of a change; a version whose trial fails goes back.
PHASES: Final = (*_DOING.values(), "start of tasks", "going back")


#: Keys for the words whose key groups are the last, or the first, ones of a task of two or three.
_AT_BORDERS: Final = {"W0": "W0-1681", "W1": "W1-3537", "W2": "W2-312", "W4": "W4-1925"}


@dataclass(frozen=True, slots=True)
class Variant:
    """One version of the program; records tell which one has shown them.

    ``breaks``: it raises at each record, or at each end of an epoch in the region of the first of
    its own sources, so that its trial fails. ``more``: it has so many sources with sinks of their
    own, those of the smallest numbers. ``shows``: the sink of tagged records.
    """

    tag: int
    parallelism: int
    branches: tuple[str, ...]
    has_more_steps: bool
    breaks: Literal["", "at records", "at epochs"]
    more: int = 0
    shows: int = 0


@dataclass(slots=True)
class ChangingApp:
    base: SimulatedApp
    beside: SimulatedApp  #: Runs in regions of its own, which most changes do not touch.
    is_beside_first: bool
    more_records: int = 60  #: Of each source that only some versions have.
    is_at_borders: bool = False  #: Keys are those that a wrong border between tasks would lose.
    failing: int = 0  #: So many records fail, once each.
    is_doomed: bool = False  #: Each record beside the changed ones fails from now on.
    tagged: tuple[MemoryTransactions, ...] = field(
        default_factory=lambda: tuple(map(MemoryTransactions, ("tagged", "tagged, too")))
    )
    more: dict[int, MemoryTransactions] = field(default_factory=dict)

    def build(self, variant: Variant) -> gp.StreamApp:
        app = gp.StreamApp("changing", parallelism=variant.parallelism)
        if self.is_beside_first:
            self._build_beside(app)
        self._build_changed(app, variant)
        if not self.is_beside_first:
            self._build_beside(app)
        for number in range(variant.more):
            source = Words(self.more_records, _MORE_PARTITIONS, by_bound=False)
            sink = self.more.setdefault(number, MemoryTransactions(f"more {number}"))
            words = app.read(source, name=f"more words {number}").map(upper)
            if variant.breaks == "at epochs" and number == 0:
                words = words.key_by(word_of).map_with_state(_unstorable, initial=_keep)
            words.write(sink, name=f"show more {number}")
        return app

    def _build_beside(self, app: gp.StreamApp) -> None:
        base, name = self.beside, "numbered"
        source = Words(base.records, base.partitions, by_bound=base.by_bound)
        words = app.read(source, name="beside words", parallelism=2)
        sink = base.sinks.setdefault(name, MemoryTransactions("beside"))
        keyed = words.map(self._beside, name="beside upper").key_by(self._key, parallelism=2)
        numbered = keyed.map_with_state(_number, initial=0, name="beside number")
        numbered.write(sink, name="show beside")

    def _beside(self, record: tuple[str, int]) -> tuple[str, int]:
        if self.is_doomed:
            raise ValueError(f"record {record} always fails")
        return upper(record)

    def _build_changed(self, app: gp.StreamApp, variant: Variant) -> None:
        base = self.base
        source = Words(base.records, base.partitions, by_bound=base.by_bound)
        words = app.read(source, name="words").map(upper, name="upper")
        if variant.has_more_steps:
            words = words.filter(lambda _: True, name="all")
        words.map(lambda record: self._tagged(record, variant), name="tag").write(
            self.tagged[variant.shows], name=f"show tagged {variant.shows}"
        )
        keyed = words.key_by(self._key)
        for name in variant.branches:
            sink = self.base.sinks.setdefault(name, MemoryTransactions(name))
            _branch(name, keyed).write(sink, name=f"show {name}")

    def _tagged(self, record: tuple[str, int], variant: Variant) -> tuple[str, int, int]:
        if variant.breaks == "at records":
            raise ValueError("this version is broken")
        if self.failing:
            self.failing -= 1
            raise ValueError(f"record {record} fails this time, and {self.failing} others")
        return (*record, variant.tag)

    @property
    def _key(self) -> Callable[[tuple[str, int]], str]:
        return _key_at_border if self.is_at_borders else word_of

    def problem(
        self, versions: list[ProgramVersion], tags: dict[str, Variant], *, is_whole: bool
    ) -> str:
        """Return what is wrong with what the sinks show; empty when nothing is."""
        sinks = (*self.tagged, *self.more.values())
        retracted = self.base.retracted + self.beside.retracted
        retracted += sum(len(each.retracted) for each in sinks)
        if retracted:
            return f"{retracted} records have vanished that were shown"
        ran = _ran(versions, tags)
        return (
            self.base.problem(is_whole=is_whole)
            or self.beside.problem(is_whole=is_whole)
            or self._tag_problem([each.tag for each in ran], is_whole=is_whole)
            or self._more_problem(ran, is_whole=is_whole)
        )

    def _more_problem(self, ran: list[Variant], *, is_whole: bool) -> str:
        for at, sink in sorted(self.more.items()):
            has = [each.more > at for each in ran]
            times = sum(_runs(has))
            counts = Counter(number for _, number in sink.values)
            for part in range(_MORE_PARTITIONS):
                seen = [counts[n] for n in range(part, self.more_records, _MORE_PARTITIONS)]
                is_read = all(one >= two for one, two in pairwise(seen))
                is_missing = is_whole and has[-1] and min(seen) < 1
                if not is_read or max(seen) > times or is_missing:
                    return f"source {at} was there in {has}, and shown so often: {seen}"
        return ""

    def _tag_problem(self, ran: list[int], *, is_whole: bool) -> str:
        shown: dict[int, int] = {}
        for _, number, tag in (each for sink in self.tagged for each in sink.values):
            if number in shown:
                return f"record {number} was shown twice, by {shown[number]} and {tag}"
            shown[number] = tag
        for part in range(self.base.partitions):
            numbers = range(part, self.base.records, self.base.partitions)
            read = numbers if is_whole else [n for n in numbers if n <= self._last_of(part, shown)]
            if missing := [n for n in read if n not in shown]:
                return f"records {missing[:3]} are missing"
            seen = [shown[n] for n in read]
            rest = iter(ran)
            if not all(tag in rest for tag in dict.fromkeys(_runs(seen))):
                return f"partition {part} was shown by {_runs(seen)}, but {ran} have run"
        return ""

    def _last_of(self, part: int, shown: Mapping[int, int]) -> int:
        return max((n for n in shown if n % self.base.partitions == part), default=-1)


def _key_at_border(record: tuple[str, int]) -> str:
    return _AT_BORDERS[record[0]]


def _branch(name: str, keyed: Any) -> Any:
    if name == "numbered":
        return keyed.map_with_state(_number, initial=0, name="number")
    return (
        keyed.window(gp.tumbling("100ms"))
        .count(name="count")
        .map(
            lambda result: (result.key.partition("-")[0], result.start, result.value), name="plain"
        )
    )


def _number(before: int, record: tuple[str, int]) -> tuple[int, tuple[str, int, int]]:
    return before + 1, (record[0], before + 1, record[1])


def _keep(record: tuple[str, int]) -> tuple[str, int]:
    return record


def _unstorable(_: Any, record: tuple[str, int]) -> tuple[Any, tuple[str, int]]:
    return lambda: record, record


def _runs(tags: Sequence[int]) -> list[int]:
    """Return the tags, or flags, without those that repeat the one before."""
    return [tag for at, tag in enumerate(tags) if at == 0 or tags[at - 1] != tag]


class _Changes:
    def __init__(
        self,
        cluster: ClusterSimulation,
        app: ChangingApp,
        result: SeedResult,
        *,
        breaking: float,
        shorter: int = 1,
    ) -> None:
        self._cluster = cluster
        self._app = app
        self._shorter = shorter
        self._breaking = breaking  # So many of its programs are broken.
        self._done = result.faults
        self._rng = cluster.world.rng
        self._left = 1 + self._rng.randrange(_CHANGES_MAX)
        self._tries = _TRIES
        self._app_id = AppId(0)
        self.variants: dict[str, Variant] = {}

    def begin(self, app_id: AppId, first: str, variant: Variant) -> None:
        self._app_id, self.variants[first] = app_id, variant
        self._cluster.world.later(self._rng.randrange(300, 3000) // self._shorter, self._next)
        for number in range(self._rng.randrange(_SAVEPOINTS_MAX + 1)):
            self._save_later(f"save{number}")

    def _save_later(self, name: str) -> None:
        world, at_ms = self._cluster.world, self._rng.randrange(300, 6000)

        def save() -> None:
            message = MakeSavepoint(app_id=self._app_id, name=name)
            if isinstance(self._cluster.ask_app_master(message), SavepointMade):
                self._done.append(f"{world.now_ms} savepoint {name}")

        def drop() -> None:
            stored = self._cluster.checkpoints.stored
            for each in stored_savepoints(stored, name=name):
                with suppress(GearpyError):  # The log may be written at this moment.
                    drop_savepoint(stored, each)
                    self._done.append(f"{world.now_ms} savepoint {name} dropped")

        world.later(at_ms, save)
        if self._rng.random() < 0.5:
            world.later(at_ms + self._rng.randrange(3000), drop)

    def _next(self) -> None:
        if self._left <= 0 or self._tries <= 0:
            return
        self._tries -= 1
        way = self._rng.choice(["update", "update", "scale", "rollback"])
        if self._change(way):
            self._left -= 1
            self._done.append(f"{self._cluster.world.now_ms} change: {way}")
        pause_ms = self._rng.randrange(100, 3000) // self._shorter
        self._cluster.world.later(pause_ms, self._next)

    def _change(self, way: str) -> bool:
        if way == "update":
            variant = a_variant(self._rng, len(self.variants), breaking=self._breaking)
            location = f"update{len(self._cluster.programs)}"
            self.variants[location] = variant
            answer = self._cluster.update(
                self._app_id, lambda: self._app.build(variant), allows_drop=True
            )
        elif way == "scale":
            step = self._rng.choice(["number", "count", "tag", "beside number"])
            scale = {step: self._rng.randrange(1, 4)}
            answer = self._cluster.update(self._app_id, scale=scale)
        else:
            versions = self._cluster.versions(self._app_id)
            if not versions:
                return False
            number = self._rng.choice(versions).number
            answer = self._cluster.update(self._app_id, version=number, allows_drop=True)
        return isinstance(answer, UpdatePlanned) and not answer.refusal


class AimedFaults(FaultSchedule):
    """Does something bad in phases of changes, however short these are, and not at any time.

    It looks after each act and, as a version takes the place of another within one act, whenever
    somebody needs the store.

    Args:
        app: it can have a record fail; None: it cannot.
        ends: faults by which its application ends, by name; they are drawn more often.
    """

    def __init__(
        self,
        cluster: ClusterSimulation,
        app: ChangingApp | None,
        result: SeedResult,
        *,
        ends: Mapping[str, Fault] | None = None,
    ) -> None:
        ends = ends or {}
        more = {"killed at its log": self._kill_at_log, **ends}
        if app is not None:
            more["record fails"] = self._fail_record
        super().__init__(
            cluster,
            result.faults,
            without=("file damaged",),
            always=[*ends] * _ENDS_OFTEN,
            more=more,
        )
        self._app = app
        self._phases = result.phases
        self._phase = ""
        self._dies_at_log = False
        self._left = self._rng.randrange(*_AIMED)
        self._chance = self._rng.choice([0.3, 0.6, 0.9])
        cluster.world.on_act = self._look
        cluster.checkpoints.on_request = self._on_request

    def _next(self) -> None:
        """Do nothing at a time that is drawn."""

    def _kill_at_log(self, cluster: ClusterSimulation, rng: random.Random) -> bool:
        self._dies_at_log = bool(cluster.launched(MASTER_EXECUTOR))
        return self._dies_at_log

    def _fail_record(self, cluster: ClusterSimulation, rng: random.Random) -> bool:
        """Have the next record fail: a version on trial has failed by that, and none else."""
        assert self._app is not None, "one that can have a record fail"
        self._app.failing = 1  # More would be one that always fails, if no trial is over by that.
        return True

    def _on_request(self, name: str) -> bool:
        """Do something before the store does; tell whether an app master was killed by that."""
        before = self._cluster.launched(MASTER_EXECUTOR)
        if self._dies_at_log and _LOG in name:
            self._dies_at_log = False
            self.kill_app_master(self._rng)
        self._look()
        return _LOG in name and not all(each.is_alive for each in before)

    def _look(self) -> None:
        """Look at the change; soon after it has come to another phase, something may happen."""
        phase = self._phase_now()
        if phase == self._phase:
            return
        self._phase = phase
        if not phase:
            return
        self._phases[phase] += 1
        is_rare = phase in _RARE
        if (self._left > 0 or is_rare) and self._rng.random() < self._chance_in(phase):
            longest_ms = self._rng.choice(_SOON_MS[:3] if is_rare else _SOON_MS)
            if longest_ms == 0:
                self._strike_in_phase()
            else:
                self._cluster.world.later(self._rng.randrange(longest_ms), self._strike_in_phase)

    def _chance_in(self, phase: str) -> float:
        if phase in _RARE:
            return 1.0
        return self._chance * (_FIRST_WEIGHT if phase == PHASES[0] else 1.0)

    def _strike_in_phase(self) -> None:
        if not (phase := self._phase_now()):
            return
        for _ in range(_STRIKES):  # Not all can be done at all times.
            if self.strike():
                self._phases[f"fault in {phase}"] += 1
                return
            self._left += 1

    def _phase_now(self) -> str:
        """Return the phase of the change that is under way; empty if there is none."""
        core = self._cluster.core
        if core is None:
            return ""
        if doing := core.succession.doing:
            tried = core.regions.but(core.succession.untried) if core.succession.trial else []
            are_started = all(each.is_running or each.state == "done" for each in tried)
            return _DOING.get(doing, doing) if are_started else "start of tasks"
        was_on_trial = self._phase in {"start of tasks", "trial", "going back"}
        return "going back" if was_on_trial and core.why_unchangeable() else ""


def a_variant(rng: random.Random, tag: int, *, breaking: float = 0.0) -> Variant:
    """Return a version of the program by chance; so many of them are broken."""
    variant = Variant(
        tag=tag,
        parallelism=rng.randrange(1, 4),
        branches=_KEYED if rng.random() < 0.5 else _KEYED[::-1],
        has_more_steps=rng.random() < 0.5,
        breaks="at records" if breaking > 0 and rng.random() < breaking else "",
        more=rng.choice([0, 0, 1, 2]),
        shows=rng.randrange(2),
    )
    is_late = variant.breaks and variant.more > 0
    return replace(variant, breaks="at epochs") if is_late else variant


def run_change_seed(
    seed: int,
    *,
    calm: bool = False,
    aimed: bool = False,
    more: Mapping[str, Fault] | None = None,
    divided: bool = False,
    shorter: int = 1,
) -> SeedResult:
    """Run one cluster to the end of its application, which is changed meanwhile.

    Args:
        more: faults that come often, beside those that are drawn.
        divided: the cluster says how many executors there are, by the slots of its workers.
        shorter: of the length, and of the time between changes, there is this part.
    """
    result, rng = SeedResult(seed, "changes"), random.Random(seed)
    way = _WAYS[seed // 2 % len(_WAYS)] if aimed else "finish"
    records = rng.randrange(400, 1200) // shorter
    base = SimulatedApp(records, _KEYED, by_bound=rng.random() < 0.5, partitions=2)
    beside = SimulatedApp(rng.randrange(400, 1200) // shorter, _KEYED[:1], partitions=2)
    app = ChangingApp(
        base,
        beside,
        is_beside_first=rng.random() < 0.5,
        more_records=rng.randrange(20, 200) // shorter,
        is_at_borders=aimed,
    )
    first, parts = a_variant(rng, 0), 4 if divided else 1
    try:
        cluster = ClusterSimulation(
            seed,
            workers=3 * parts,
            slots=rng.choice([12, 14, 20]) // parts,
            settings={
                "checkpoint.interval-ms": rng.choice(["50", "200"]),
                "checkpoint.timeout-ms": rng.choice(["2000", "20000"]),
                "checkpoint.retained": rng.choice(["1", "3"]),
                "checkpoint.changelog": rng.choice(["on", "off"]),
            },
            log_segments_max=rng.choice([2, 5, 64]),
            idle_poll_ms=PAUSE_MS,
        )
        executors = rng.choice([2, 3])
        running = cluster.submit(lambda: app.build(first), executors=0 if divided else executors)
        changes = _Changes(cluster, app, result, breaking=0.4 if aimed else 0.25, shorter=shorter)
        changes.begin(running.app_id, "changing", first)
        if aimed:
            AimedFaults(cluster, app, result, ends=_ends_of(app, running.app_id, way))
        elif not calm:
            FaultSchedule(
                cluster, result.faults, without=("file damaged",), more=more, always=[*(more or ())]
            )
        summary = cluster.run_to_end(running.app_id, within_ms=_WITHIN_MS)
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the seed
        result.problem = f"{type(error).__name__}: {error}"
        return result
    versions = versions_in_log(cluster)
    result.events, result.virtual_ms = cluster.world.events, cluster.world.elapsed_ms
    result.status = summary.status if summary is not None else ""
    result.restarts = summary.progress.restarts if summary is not None else 0
    result.versions = Counter(each.state for each in versions)
    #: One that fails for good may do so in a trial; and where its end finds no log, that stays.
    is_torn = result.status == "failed" or cluster.checkpoints.is_log_behind
    result.problem = (
        "; ".join(cluster.promises.broken[:1])
        or end_problem(summary, way)
        or app.problem(versions, changes.variants, is_whole=result.status == "succeeded")
        or ("" if is_torn else _unfinished(versions))
        or stale_epochs(cluster, _ran(versions, changes.variants)[-1])
        or _savepoints_problem(cluster)
        or slots_problem(cluster)
    )
    return result


def _ends_of(app: ChangingApp, app_id: AppId, way: Way) -> dict[str, Fault]:
    def doom(cluster: ClusterSimulation, rng: random.Random) -> bool:
        app.is_doomed = True
        return True

    faults: dict[Way, dict[str, Fault]] = {
        "drain": {"drained": lambda cluster, _: cluster.drain(app_id)},
        "tight": {"doomed": doom},
    }
    return faults.get(way, {})


def _unfinished(versions: list[ProgramVersion]) -> str:
    """Return which versions the log has not seen to an end; empty if none."""
    states = [each.state for each in versions]
    if set(states) <= {"running", "replaced", "failed"} and states.count("running") == bool(states):
        return ""
    return f"versions are {', '.join(states)} at the end"


def _ran(versions: list[ProgramVersion], variants: Mapping[str, Variant]) -> list[Variant]:
    """Return the versions that have shown something; the log has none before the first change.

    One that is still prepared has not, where an application ends while its log is away.
    """
    showing = ("trial", "running", "replaced")
    ran = [variants[each.artifact.location] for each in versions if each.state in showing]
    return ran or [next(iter(variants.values()))]


def stale_epochs(cluster: ClusterSimulation, last: Variant) -> str:
    """Return which epochs are of regions that the last version does not have; empty if none is."""
    regions = 2 + last.more
    for state in _states(cluster):
        stale = [each for each in EpochManifests(state).regions() if each >= regions]
        if stale:
            return f"there are epochs of regions {stale}, but {regions} regions"
    return ""


def _savepoints_problem(cluster: ClusterSimulation) -> str:
    """Return which savepoint lacks a file; empty if none does."""
    stored = cluster.checkpoints.stored
    for each in stored_savepoints(stored):
        for file in (file for m in each.savepoint.manifests for file in m.snapshots):
            try:
                stored.load(file.location, file.sha256)
            except SnapshotDamaged as error:
                return f"savepoint {each.savepoint.name} lacks a file: {error}"
    return ""


def versions_in_log(cluster: ClusterSimulation) -> list[ProgramVersion]:
    return [version for state in _states(cluster) for version in Versions(state).read()]


def _states(cluster: ClusterSimulation) -> Iterator[CoordinatorState]:
    stored = cluster.checkpoints.stored
    prefixes = {name.partition(_LOG)[0] for name in stored.names("") if _LOG in name}
    yield from (read_log(stored, prefix).state for prefix in sorted(prefixes))


def run_change_seeds(first: int, count: int, *, processes: int) -> Iterator[SeedResult]:
    """Run many seeds in several processes; in every second one faults are aimed at changes.

    In every third one the cluster divides the application over many small workers.

    Two of ten are long; the others are short, with as many changes, in a third of the time.
    """
    seeds = range(first, first + count)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_run_quietly, seeds, chunksize=20)


def _run_quietly(seed: int) -> SeedResult:
    logging.disable(logging.CRITICAL)  # Of failures, which are what this is about.
    shorter = 1 if seed % 10 < _LONG_OF_TEN else SHORTER
    divided = seed % 3 == 2
    return run_change_seed(seed, aimed=seed % 2 == 1, divided=divided, shorter=shorter)
