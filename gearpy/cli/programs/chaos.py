"""``gear chaos``: runs a program with crashes, in virtual time, and prints what differs."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from gearpy.cli.programs.program import load_program
from gearpy.cli.terminal.exits import FAILED
from gearpy.cli.terminal.options import AppArgs, Given, Records, Target, option, takes
from gearpy.cli.terminal.output import print_json, print_lines
from gearpy.messages.data import Message
from gearpy.task.api.application import StreamApplication
from gearpy.testing.chaos import Chaos, ChaosVerdict
from gearpy.views import text

_SHOWN: Final = 3


@takes("as_json", "verbose")
def chaos(
    given: Given,
    target: Target,
    args: AppArgs = None,
    *,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Try the seeds from 1 to N.")
    ] = 20,
    seed: Annotated[
        int | None, option("--seed", min=1, metavar="K", help="Try this one alone.")
    ] = None,
    records: Records = None,
    seconds: Annotated[
        float | None,
        option("--seconds", min=0.1, metavar="S", help="Read each source for so long at most."),
    ] = None,
) -> None:
    """Run a program with crashes, in virtual time, and compare with a run without.

    Each crash goes back to a stored epoch. Sources are read once, before; nothing is written: sinks
    are replaced by memory. The exit code is 1 if the results differ.
    """
    tried = range(1, seeds + 1) if seed is None else [seed]
    with TemporaryDirectory(prefix="gear-chaos-") as folder:
        chaos_of = Chaos(
            _Loader(target, args or ()), Path(folder) / "sources", records=records, seconds=seconds
        )
        verdict = chaos_of.verdict(tried)
    if given.as_json:
        found = verdict.found
        print_json(
            {
                "app": verdict.app,
                "records": dict(verdict.records),
                "results": verdict.results,
                "seeds": verdict.seeds,
                "crashes": verdict.crashes,
                "restored": verdict.restored,
                "reason": verdict.reason,
                "seed": verdict.seed if verdict.reason == "crash" else None,
                "step": verdict.step,
                "error": verdict.error,
                "missing": 0 if found is None else len(found.missing),
                "extra": 0 if found is None else len(found.extra),
                "different": 0 if found is None else len(found.different),
            }
        )
    else:
        limits = "".join(
            f" {name} {value}"
            for name, value in (("--records", records), ("--seconds", seconds))
            if value is not None
        )
        behind = f" -- {' '.join(args)}" if args else ""
        again = f"gear chaos {target} --seed {verdict.seed}{limits}{behind}"
        print_lines(_lines(verdict, again))
    if verdict.reason:
        raise typer.Exit(FAILED)


class _Loader:
    """Loads a program again and again, with the modules beside it, as new processes would."""

    def __init__(self, target: str, args: Sequence[str]) -> None:
        self._target = target
        self._args = args
        self._known = set(sys.modules)
        self._folder = ""

    def __call__(self) -> StreamApplication:
        for name in set(sys.modules) - self._known:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if self._folder and file.startswith(self._folder) and "site-packages" not in file:
                del sys.modules[name]
        found, application = load_program(self._target, self._args)
        self._folder = f"{Path(found.location).parent}/"
        return application


def _lines(verdict: ChaosVerdict, again: str) -> Iterator[str]:
    read = ", ".join(f"{text.count(n)} of {name}" for name, n in verdict.records.items())
    yield f"{verdict.app}: records {read}; results {text.count(verdict.results)}"
    crashes = f"{text.count(verdict.crashes)} crashes in {text.plural(verdict.seeds, 'seed')}"
    if not verdict.reason:
        yield f"alike: {crashes}, {verdict.restored} of them back to a stored epoch"
        return
    gives = f"step {verdict.step} gives" if verdict.step else "it gives"
    itself = f"the program differs by itself, without any fault: {gives} other records when"
    match verdict.reason:
        case "crash" if verdict.error:
            raised = f"step {verdict.step} raises {verdict.error}"
            yield f"seed {verdict.seed} differs: after a crash {raised}"
        case "crash":
            yield f"seed {verdict.seed} differs: {gives} other records after a crash"
        case "chance":
            yield f"{itself} it runs once more, as with random numbers or the time of day"
        case "order":
            yield f"{itself} messages of several tasks come in another order"
    if verdict.found is not None:
        found = verdict.found
        yield from _examples("undisturbed", [*found.missing, *(one for one, _ in found.different)])
        yield from _examples("otherwise", [*found.extra, *(other for _, other in found.different)])
    if verdict.reason == "crash":
        if verdict.advice:
            yield verdict.advice
        yield f"again: {again}"


def _examples(name: str, messages: Sequence[Message]) -> Iterator[str]:
    if messages:
        shown = ", ".join(f"{each.value!r:.100}" for each in messages[:_SHOWN])
        more = f", and {len(messages) - _SHOWN} more" if len(messages) > _SHOWN else ""
        yield f"  {name} only: {shown}{more}"
