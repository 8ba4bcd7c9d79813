"""Commands of `bin/bench` about masters that replicate their log, and clusters that live on."""

import shutil
import sys
from collections import Counter
from math import inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import typer


def add_replicas(app: typer.Typer) -> None:
    for command in (masters, linear, hosts, consensus, upgrade):
        app.command()(command)


def masters(
    rounds: Annotated[int, typer.Option(help="blows, one after the other")] = 20,
    seed: Annotated[int, typer.Option(help="draws what is done to whom")] = 0,
    *,
    all_at_once: Annotated[bool, typer.Option(help="kill all of them, each time")] = False,
) -> None:
    """Three masters that are killed and frozen under load; says what was lost, and for how long."""
    from tests.bench.masters import measure_masters
    from tests.bench.measure import percentile

    if all_at_once:
        _masters_at_once(rounds, seed)
    with TemporaryDirectory(prefix="gearpy-masters-") as folder:
        result = measure_masters(Path(folder), rounds=rounds, seed=seed)
    kinds = sorted({each.kind for each in result.blows})
    for kind in kinds:
        waits = sorted(each.accepted_s for each in result.blows if each.kind == kind)
        typer.echo(
            f"{kind}: {len(waits)} times, next submission accepted after {median(waits):.2f} s, "
            f"at most {waits[-1]:.2f} s"
        )
    one = [each.accepted_s for each in result.blows if not each.kind.startswith("all")]
    every = [each.accepted_s for each in result.blows if each.kind.startswith("all")]
    for what, waits in (("one lost", one), ("all killed and started again", every)):
        if waits:
            p50, p99 = percentile(waits, 0.5), percentile(waits, 0.99)
            typer.echo(f"{what}: {len(waits)} times, p50 {p50:.2f} s, p99 {p99:.2f} s")
    accepted = sum(each.end_s != inf for each in result.added)
    told = f"{accepted} submissions accepted, {len(result.seen)} lists"
    typer.echo(f"{told}: {result.problem or 'all fits one order'}")
    raise typer.Exit(1 if result.problem else 0)


def _masters_at_once(rounds: int, seed: int) -> None:
    from tests.bench.masters_at_once import measure_at_once
    from tests.bench.measure import percentile

    with TemporaryDirectory(prefix="gearpy-masters-") as folder:
        result = measure_at_once(Path(folder), rounds=rounds, seed=seed)
    back = result.back_s
    typer.echo(
        f"all masters killed {len(back)} times, {result.around_snapshots} of them around a "
        f"snapshot; {result.acknowledged} writes acknowledged, {len(result.lost)} lost"
    )
    typer.echo(
        f"accepted again: p50 {percentile(back, 0.5):.2f} s, p99 {percentile(back, 0.99):.2f} s"
    )
    problem = result.problem or f"lost: {sorted(result.lost)[:5]}" * bool(result.lost)
    typer.echo(problem or "all fits one order")
    raise typer.Exit(1 if problem else 0)


def linear(
    runs: Annotated[int, typer.Option(help="clusters, one after the other")] = 50,
    faults: Annotated[int, typer.Option(help="in each")] = 12,
    first: Annotated[int, typer.Option(help="seed of the first one")] = 1,
    bug: Annotated[str | None, typer.Option(help="a mistake that masters have then")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="where all that was written goes in runs that are wrong")
    ] = None,
) -> None:
    """Strike three masters; what clients see must fit one order, says an independent checker."""
    from tests.bench.linear import run_many
    from tests.bench.linear_site import BUGS

    planted = next((each for each in BUGS if each == bug), None)
    if bug != planted:
        raise typer.BadParameter(f"--bug must be one of {', '.join(BUGS)}")
    done, bad, operations, struck = 0, 0, 0, Counter[str]()
    for run in run_many(runs, first=first, faults=faults, bug=planted, keep=keep):
        done, bad, struck = done + 1, bad + (not run.is_good), struck + run.faults
        operations += run.verdict.operations if run.verdict else 0
        typer.echo(run)
    kinds = ", ".join(f"{number} {kind}" for kind, number in struck.most_common())
    typer.echo(f"{done} runs, {struck.total()} faults ({kinds})")
    typer.echo(f"{operations} operations, {bad} runs went wrong")
    raise typer.Exit(1 if bad else 0)


def hosts(
    runs: Annotated[int, typer.Option(help="clusters, one after the other")] = 5,
    faults: Annotated[int, typer.Option(help="in each; the first ones all different")] = 14,
    first: Annotated[int, typer.Option(help="seed of the first one")] = 1,
    kind: Annotated[list[str] | None, typer.Option(help="only this kind of fault; often")] = None,
    logs: Annotated[Path | None, typer.Option(help="keep what the daemons have written")] = None,
) -> None:
    """Cut off, freeze and lose machines of a cluster with TLS; each result must be there once."""
    from tests.bench.hosts import why_no_hosts
    from tests.bench.hosts_run import KINDS, run_hosts

    kinds = tuple(kind or KINDS)
    if unknown := [each for each in kinds if each not in KINDS]:
        known = ", ".join(KINDS)
        raise typer.BadParameter(f"no such kind: {', '.join(unknown)}; there are {known}")
    if reason := why_no_hosts():
        raise typer.BadParameter(reason)
    bad = 0
    for seed in range(first, first + runs):
        with TemporaryDirectory(prefix="gearpy-hosts-") as folder:
            run = run_hosts(Path(folder), seed=seed, faults=faults, kinds=kinds)
            if logs is not None:
                private = shutil.ignore_patterns("checkpoints", "results", "certs", "secret")
                shutil.copytree(folder, logs / f"run{seed}", ignore=private)
        bad += bool(run.problem)
        longest = max((took_s for _, took_s in run.done), default=0.0)
        typer.echo(
            f"run {seed}: {len(run.done)} faults, {run.leaders} leaders, {run.records} records; "
            f"all were there again after {longest:.1f} s at most: {run.problem or 'exact'}"
        )
        for fault, took_s in run.done:
            typer.echo(f"  {took_s:6.1f} s after: {fault}")
    raise typer.Exit(1 if bad else 0)


def consensus(
    seeds: Annotated[int, typer.Option(help="how many")] = 100_000,
    first: Annotated[int, typer.Option(help="the first one")] = 0,
    processes: Annotated[int, typer.Option(help="that share the work")] = 2,
    events: Annotated[int, typer.Option(help="of each, before all is healed; 0: no limit")] = 0,
) -> None:
    """Members that agree on a log, in virtual time with faults; says which seeds went wrong."""
    from tests.bench.consensus import run_consensus_seeds

    done, bad, faults, leaders, committed = 0, 0, 0, 0, 0
    for result in run_consensus_seeds(first, seeds, events, processes=processes):
        done, faults, leaders = done + 1, faults + result.faults, leaders + result.leaders
        committed += result.committed
        if result.problem:
            bad += 1
            typer.echo(f"seed {result.seed}: {result.problem}")
        if done % 10_000 == 0:
            typer.echo(f"{done} seeds, {bad} went wrong")
    typer.echo(
        f"{done} seeds, {faults} faults, {leaders} leaders, {committed} entries committed: "
        f"{bad} went wrong"
    )
    raise typer.Exit(1 if bad else 0)


def upgrade(
    revision: Annotated[str, typer.Argument(help="the commit that all processes are of at first")],
    *,
    back: Annotated[bool, typer.Option(help="and back again, workers first")] = False,
    rate: Annotated[float, typer.Option(help="records per second")] = 1000,
    folder: Annotated[
        Path | None, typer.Option(help="an empty one, for all that is written; kept then")
    ] = None,
) -> None:
    """Replace a running cluster of an earlier commit by this one, process by process."""
    from tests.bench.compare import MeasuredVersion
    from tests.bench.upgrade import Gearpy, measure_upgrade

    with TemporaryDirectory(prefix="gearpy-upgrade-") as temporary:
        version = MeasuredVersion.unpack(revision, Path(temporary) / "before")
        before, now = Gearpy(version.name, str(version.python)), Gearpy("this one", sys.executable)
        place = folder or Path(temporary) / "cluster"
        place.mkdir(exist_ok=True)
        gearpys = [before, now, before] if back else [before, now]
        result = measure_upgrade(place, gearpys, rate=rate, say=typer.echo)
    for line in result.lines():
        typer.echo(line)
    raise typer.Exit(0 if result.is_good else 1)
