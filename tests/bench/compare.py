"""Two versions of gearpy side by side: the same benches on both, in turns; ratios and their spread.

Each version is unpacked into a folder of its own, and has an environment that shares the packages
of this one. A turn measures both, one after the other; the next turn in the other order. Single
figures drift with what else the machine does, and neighbours less.
"""

import json
import os
import random
import subprocess
import sysconfig
import tarfile
import venv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.peers import write_words
from tests.bench.probe import PROBES, Figures

#: The benches of the short form, which CI prints.
SHORT: Final = ("sol", "rows", "columns")

_ROOT: Final = Path(__file__).parents[2]
_PROBE: Final = Path(__file__).with_name("probe.py")
_WORDS: Final = 4_000_000
_TIMEOUT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class MeasuredVersion:
    name: str
    python: Path
    package: str

    @classmethod
    def unpack(cls, revision: str, folder: Path) -> "MeasuredVersion":
        packed = _git("archive", "--format=tar", revision)
        with tarfile.open(fileobj=BytesIO(packed)) as files:
            files.extractall(folder / "source", filter="data")
        venv.create(folder / "venv", symlinks=True)
        (packages,) = (folder / "venv").glob("lib/python*/site-packages")
        # Paths in this file come in order, so that the version wins over what is installed here.
        shared = (sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
        lines = [str(folder / "source"), *dict.fromkeys(shared)]
        (packages / "version.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        is_old = (folder / "source/gearpy/bench").is_dir()
        name = _git("log", "-1", "--format=%h %s", revision).decode().strip()[:72]
        return cls(name, folder / "venv/bin/python", "gearpy.bench" if is_old else "tests.bench")

    def measure(self, bench: str, seconds: float, text: Path) -> Figures:
        command: list[str | Path] = [self.python, "-P", _PROBE, self.package, bench, str(seconds)]
        done = subprocess.run(
            [*command, text], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
            raise RuntimeError(said[-1])
        figures: Figures = json.loads(done.stdout.strip().splitlines()[-1])
        return figures


@dataclass(slots=True)
class BenchRatios:
    bench: str
    before: list[Figures] = field(default_factory=list)
    now: list[Figures] = field(default_factory=list)
    problem: str = ""

    def ratios(self, figure: str) -> list[float]:
        """Return now / before of each turn, from the least to the greatest."""
        pairs = zip(self.before, self.now, strict=True)
        return sorted(now[figure] / before[figure] for before, now in pairs)

    def lines(self) -> Iterator[str]:
        shared = [name for name in self.now[0] if name in self.before[0]] if self.now else []
        for name in shared:
            ratios = self.ratios(name)
            before = median(each[name] for each in self.before)
            now = median(each[name] for each in self.now)
            yield (
                f"{self.bench:8} {name:24} {median(ratios):6.2f} "
                f"({ratios[0]:.2f} to {ratios[-1]:.2f}, {len(ratios)} turns) "
                f"{_short(before):>9} -> {_short(now):>9}"
            )
        if self.problem:
            yield f"{self.bench:8} {self.problem}"


def earlier_revision() -> str | None:
    """Return what the present commit is compared with: where it left `main`, or its parent."""
    for look in (("merge-base", "main", "HEAD"), ("rev-parse", "HEAD~")):
        try:
            found = _git(*look).decode().strip()
        except ValueError:
            continue
        if found != _git("rev-parse", "HEAD").decode().strip():
            return found
    return None


def compare_versions(
    revision: str, folder: Path, *, benches: Iterable[str], turns: int, seconds: float
) -> Iterator[str]:
    """Measure a revision and the tracked files as they are now; yield lines for people.

    Args:
        seconds: of a measurement, where its length can be chosen.
    """
    chosen = list(benches)
    if unknown := set(chosen) - PROBES.keys():
        raise ValueError(f"no such bench: {', '.join(sorted(unknown))}; there are {[*PROBES]}")
    # A commit of what is not committed yet, on no branch; nothing if all is.
    present = _git("stash", "create").decode().strip() or "HEAD"
    versions = {
        "before": MeasuredVersion.unpack(revision, folder / "before"),
        "now": MeasuredVersion.unpack(present, folder / "now"),
    }
    for name, version in versions.items():
        yield f"{name:6} {version.name}"
    text = folder / "words.txt"
    if "words" in chosen:
        write_words(text, _WORDS, random.Random(1))
    yield f"{'bench':8} {'figure':24} {'now / before':>32} {'medians':>22}"
    for bench in chosen:
        yield from _in_turns(bench, versions, turns, seconds, text).lines()


def _in_turns(
    bench: str, versions: Mapping[str, MeasuredVersion], turns: int, seconds: float, text: Path
) -> BenchRatios:
    ratios = BenchRatios(bench)
    for turn in range(turns):
        got: dict[str, Figures] = {}
        for name in sorted(versions, reverse=turn % 2 == 1):
            try:
                got[name] = versions[name].measure(bench, seconds, text)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                ratios.problem = f"not measured {name}: {error}"
                return ratios
        ratios.before.append(got["before"])
        ratios.now.append(got["now"])
    return ratios


def _git(*args: str) -> bytes:
    """Run git on this checkout, also from a hook, which has variables for another one."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", _ROOT, *args], capture_output=True, check=False, env=environ
    )
    if done.returncode:
        raise ValueError(done.stderr.decode().strip())
    return done.stdout


def _short(value: float) -> str:
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
