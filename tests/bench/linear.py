"""Whether what three struck masters say fits one order of events, by an independent checker."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.linear_clients import Clients
from tests.bench.linear_history import History, Verdict, verdict_of
from tests.bench.linear_masters import KINDS, LinearMasters
from tests.bench.linear_site import Bug
from tests.bench.linear_values import PlayedWorker

#: Those that a leader may notice late are more frequent.
_WEIGHTS: Final = {"leader cut off": 3, "leader frozen": 3, "leader killed": 2}
#: A leader that waits for others to agree answers nobody, so it is asked for no change so often.
_QUIET: Final = 0.5
_SETTLE_S: Final = 0.5


@dataclass(slots=True)
class LinearRun:
    """What was done in one run, what the checker says, and what else was wrong."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    verdict: Verdict | None = None
    problem: str = ""

    @property
    def is_good(self) -> bool:
        verdict = self.verdict
        return not self.problem and verdict is not None and not verdict.wrong + verdict.undecided

    def __str__(self) -> str:
        seen = self.verdict
        if seen is None:
            return f"run {self.seed}: {self.problem}"
        wrong = f"no order for {', '.join(seen.wrong)}" if seen.wrong else ""
        late = f"undecided: {', '.join(seen.undecided)}" if seen.undecided else ""
        told = "; ".join(filter(None, (self.problem, wrong, late))) or "all fits one order"
        return (
            f"run {self.seed}: {self.faults.total()} faults, {seen.operations} operations "
            f"on {seen.objects} objects: {told}"
        )


def run_linear(
    folder: Path, *, seed: int, faults: int, bug: Bug | None = None, kinds: tuple[str, ...] = ()
) -> LinearRun:
    """Strike three masters so many times, while clients change and read; have it all judged.

    What does not fit is drawn into the folder, and ``history.jsonl`` there has all operations.
    """
    run, history, rng = LinearRun(seed), History(), random.Random(seed)
    chosen = kinds or tuple(KINDS)
    weights = [_WEIGHTS.get(each, 1) for each in chosen]
    with LinearMasters(folder, seed=seed, bug=bug) as masters:
        try:
            with (
                PlayedWorker(masters.cluster, history) as worker,
                Clients(masters.cluster, history, seed=seed) as clients,
            ):
                worker.submit()
                clients.wait_accepted()
                for kind in rng.choices(chosen, weights, k=faults):
                    leader = masters.leader()
                    if rng.random() < _QUIET:
                        clients.avoided = leader
                        worker.is_quiet.set()
                        time.sleep(_SETTLE_S)
                    masters.strike(kind, leader)
                    clients.avoided = ""
                    worker.is_quiet.clear()
                    masters.mend()
                    run.faults[kind] += 1
                    worker.replace_if_lost()
                    clients.wait_accepted()
                    clients.turn()
                clients.list_all()
                run.problem = clients.problem
        except TimeoutError as error:
            run.problem = str(error)
    history.write(folder / "history.jsonl")
    run.verdict = verdict_of(history, folder)
    return run


def run_many(
    runs: int, *, first: int, faults: int, bug: Bug | None = None, keep: Path | None = None
) -> Iterator[LinearRun]:
    """Run many, one after the other; gives results as they come.

    Args:
        keep: where the files of runs that went wrong are moved.
    """
    for seed in range(first, first + runs):
        with TemporaryDirectory(prefix="gearpy-linear-") as name:
            folder = Path(name) / "run"
            folder.mkdir()
            run = run_linear(folder, seed=seed, faults=faults, bug=bug)
            if keep is not None and not run.is_good:
                shutil.move(folder, keep / f"run{seed}")
            yield run
