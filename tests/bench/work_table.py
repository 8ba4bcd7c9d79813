"""The committed table of `bin/bench work`: what a path may cost, and why it costs more than it did.

A figure that has grown by more than a hundredth fails the check until the table is written anew in
the same change, with a reason. One that fell much does, too: else it might grow back unseen.
"""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.work import PATHS, PathWork

TABLE: Final = Path(__file__).with_name("work.toml")

_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_GROWTH: Final = 0.01
_FALL: Final = 0.05
_LEAST: Final = 0.05  # Less than so many instructions or calls is no change.
_NAMED: Final = 5  # Functions in a message.
_FUNCTION_SHARE: Final = 0.01  # Of a path's instructions: functions with less are left out.

_HEAD: Final = """\
# Instructions and calls of Python that a record takes, a batch beside its records, and an epoch of
# a few batches, as [instructions, calls]; then the instructions of the functions that take most of
# a full batch, and of an epoch. `bin/bench work --write` writes them; where one has grown, it asks
# for a reason.
"""


class WorkProblem(NamedTuple):
    text: str
    is_growth: bool = False


@dataclass(frozen=True, slots=True)
class WorkTable:
    """The figures of each path, and the latest reason why one of them has grown."""

    python: str
    paths: Mapping[str, PathWork]
    reasons: Mapping[str, str]

    @classmethod
    def read(cls, file: Path = TABLE) -> "WorkTable":
        found = tomllib.loads(file.read_text(encoding="utf-8"))
        python = found.pop("python")
        paths = {name: PathWork.of(each) for name, each in found.items()}
        return cls(python, paths, {name: each.get("grew", "") for name, each in found.items()})

    def text(self) -> str:
        lines = [_HEAD, f'python = "{self.python}"\n']
        for name, work in self.paths.items():
            lines.append(f"\n[{json.dumps(name)}]\n")
            if reason := self.reasons.get(name):
                lines.append(f"grew = {json.dumps(reason)}\n")
            costs = {"record": work.record, "batch": work.batch, "epoch": work.epoch}
            for of, cost in costs.items():
                if cost is not None:
                    lines.append(f"{of} = [{', '.join(f'{each:.10g}' for each in cost)}]\n")
            for of in ("functions", "epoch_functions"):
                functions = sorted(getattr(work, of).items(), key=lambda each: (-each[1], each[0]))
                least = _FUNCTION_SHARE * sum(count for _, count in functions)
                if functions:
                    lines.append(f"\n[{json.dumps(name)}.{of}]\n")
                lines += (f"{json.dumps(key)} = {n:.10g}\n" for key, n in functions if n >= least)
        return "".join(lines)

    def changed(self, now: Mapping[str, PathWork], reason: str) -> "WorkTable":
        """Return the table with the new figures of paths that moved; others stay as they are."""
        if self.python != _PYTHON:
            return WorkTable(_PYTHON, now, self.reasons)
        paths, reasons = dict(self.paths), dict(self.reasons)
        for name, work in now.items():
            problems = list(self._problems_of(name, work, fall=_GROWTH))
            if problems:
                paths[name] = work
            if any(each.is_growth for each in problems):
                reasons[name] = reason
        return WorkTable(_PYTHON, {each: paths[each] for each in PATHS if each in paths}, reasons)

    def problems(self, now: Mapping[str, PathWork]) -> Iterator[WorkProblem]:
        """Yield what has changed since the table was written; nothing on another Python."""
        if self.python == _PYTHON:
            for name, work in now.items():
                yield from self._problems_of(name, work, fall=_FALL)
            for name in self.paths.keys() - PATHS.keys():
                yield WorkProblem(f"{name}: is no path any more: bin/bench work --write")

    def _problems_of(self, name: str, now: PathWork, *, fall: float) -> Iterator[WorkProblem]:
        before = self.paths.get(name)
        if before is None:
            yield WorkProblem(f"{name}: is not in the table: bin/bench work --write")
            return
        known = dict(before.figures())
        for figure, value in now.figures():
            was = known.get(figure, 0.0)
            share = f"by {abs(value - was) / abs(was):.1%}" if was else "out of nothing"
            if value > was + _GROWTH * abs(was) + _LEAST:
                grown = _most_grown(before, now, of_epoch=figure.endswith("epoch"))
                text = (
                    f"{name}: {figure} grew {share}, from {was:,.10g} to {value:,.10g}; most of it "
                    f"in {grown}; if that must be: bin/bench work --write --reason 'WHY'"
                )
                yield WorkProblem(text, is_growth=True)
            elif value < was - fall * abs(was) - _LEAST:
                yield WorkProblem(
                    f"{name}: {figure} fell {share}, from {was:,.10g} to {value:,.10g}: keep that "
                    "by bin/bench work --write"
                )


def _most_grown(before: PathWork, now: PathWork, *, of_epoch: bool) -> str:
    """Name the functions with the most new instructions in a full batch, or in an epoch."""
    pairs = (before.functions, now.functions)
    was, now_is = (before.epoch_functions, now.epoch_functions) if of_epoch else pairs
    least = min(was.values(), default=0.0)  # Functions with less are not in the table.
    grown = sorted(((count - was.get(of, least), of) for of, count in now_is.items()), reverse=True)
    named = [f"{of} (+{count:,.10g})" for count, of in grown[:_NAMED] if count > 0]
    return ", ".join(named) or "calls of functions in C"
