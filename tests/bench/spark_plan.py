"""Whom `spark_crash` kills, and when; and the report of it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from tests.bench.crash_watch import CrashReport
from tests.bench.numbered import PARTITIONS
from tests.bench.spark_program import EXACT, NAIVE, TableVerdict

__all__ = [
    "CALL_PHASES",
    "Blow",
    "Phase",
    "SparkCrashReport",
    "Victim",
    "plan_of",
]

Victim: TypeAlias = Literal["executor", "app master", "worker", "master", "sink JVM", "reader JVM"]

#: When it is struck; files tell, also right after the blow.
#: "running": at any time. "recovery": right after the blow before. "prepare": a window log has
#: prepared a file, and no executor has stored the epoch. "snapshot": one has, and the application
#: has not. "commit": the application has, and not everything is shown; of the job outside: its
#: batch is in its table, and not noted as done. "intent": the function is called with a batch,
#: and has written nothing; of the job outside: its batch has begun. "written": the function has
#: written, and this is not noted. "done": it is, and no other batch has begun.
Phase: TypeAlias = Literal[
    "running", "recovery", "prepare", "snapshot", "commit", "intent", "written", "done"
]


class Blow(NamedTuple):
    """Whom to kill, and when."""

    victim: Victim
    phase: Phase


_PHASES: Final[tuple[Phase, ...]] = (
    "running",
    "recovery",
    "prepare",
    "snapshot",
    "commit",
    "intent",
    "written",
    "done",
)
_VICTIMS: Final[tuple[Victim, ...]] = (
    "executor",
    "app master",
    "worker",
    "master",
    "sink JVM",
    "reader JVM",
)
#: Others of gearpy's processes, for every so many executors one of them.
_OTHERS: Final[tuple[Victim, ...]] = ("app master", "worker", "app master", "master")
_OTHERS_EVERY: Final = 5
_EPOCH_PHASES: Final[tuple[Phase, ...]] = ("prepare", "snapshot", "commit")
#: Those of a call of the function.
CALL_PHASES: Final[tuple[Phase, ...]] = ("intent", "written", "done")
_JVM_BLOWS: Final[tuple[Blow, ...]] = (
    Blow("sink JVM", "written"),
    Blow("reader JVM", "intent"),
    Blow("sink JVM", "intent"),
    Blow("reader JVM", "commit"),
    Blow("sink JVM", "running"),
    Blow("reader JVM", "running"),
)


def plan_of(faults: int, jvm_faults: int, rng: random.Random) -> list[Blow]:
    """Return so many blows to executors, some to others of gearpy, and so many to JVMs, mixed."""
    blows = [Blow("executor", _PHASES[n % len(_PHASES)]) for n in range(faults)]
    for n in range(faults // _OTHERS_EVERY):
        phase = rng.choice(("running", "recovery", *_EPOCH_PHASES))
        blows.append(Blow(_OTHERS[n % len(_OTHERS)], phase))
    blows += [_JVM_BLOWS[n % len(_JVM_BLOWS)] for n in range(jvm_faults)]
    rng.shuffle(blows)
    return blows


@dataclass(slots=True)
class SparkCrashReport(CrashReport[Victim, Phase]):
    """What was done, and what came out."""

    batches: int = 0
    outside_batches: int = 0
    reader_starts: int = 0
    verdicts: list[TableVerdict] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether each exact table is exact, and the naive one shows that there was a test."""
        exact = {each.name for each in self.verdicts if each.is_exact}
        shown = any(each.name == NAIVE and each.is_only_repeated for each in self.verdicts)
        return self.has_ended_well and exact >= {*EXACT} and shown

    def killed(self, *victims: Victim) -> int:
        """Return how many of these were killed."""
        return sum(each.kind in victims for each in self.struck)

    def lines(self) -> Iterator[str]:
        """Yield the report for people: who was killed when, and what is in each table."""
        yield from self.table("SIGKILL of", _VICTIMS, _PHASES, title_chars=12, cell_chars=9)
        yield (
            f"{self.end * PARTITIONS} records, {self.epochs} epochs, {self.batches} batches to the "
            f"function, {self.outside_batches} to the job outside, which was started "
            f"{self.reader_starts} times; {self.seconds:.0f} s, application {self.status}"
        )
        yield f"{'table':10}{'rows':>10}{'windows':>10}{'lost':>8}{'twice':>8}{'wrong':>8}"
        for each in self.verdicts:
            yield (
                f"{each.name:10}{each.rows:10}{each.expected:10}{each.lost:8}{each.twice:8}"
                f"{each.wrong:8}  {_said(each)}"
            )
        for each in self.verdicts:
            if each.name != NAIVE or not each.is_only_repeated:
                yield from each.samples
        yield from self.problems


def _said(verdict: TableVerdict) -> str:
    if verdict.name == NAIVE:
        return "repeats, as it must" if verdict.is_only_repeated else "shows nothing: no test"
    return "exact" if verdict.is_exact else "WRONG"
