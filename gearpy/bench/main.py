"""The command `bin/bench`."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from gearpy.bench.chaos import run_chaos
from gearpy.bench.checkpoint import (
    NEVER_MS,
    PIPELINES,
    measure_overhead,
    measure_pauses,
    measure_state_recovery,
)
from gearpy.bench.exactly_once import run_exactly_once
from gearpy.bench.recovery import measure_recovery
from gearpy.bench.simulate import run_seeds
from gearpy.bench.slow_sink import measure_slow_sink
from gearpy.bench.sol import run_sol
from gearpy.bench.start import measure_start

__all__ = ["main"]

_app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@_app.command()
def sol(
    seconds: Annotated[float, typer.Option(help="measured time of each run")] = 5,
    runs: Annotated[int, typer.Option(help="runs of each kind")] = 3,
    fixed_rate: Annotated[float, typer.Option(help="msg/s at which to take latency, too")] = 5e5,
    executors: Annotated[
        str, typer.Option(help="thread: one executor; process: two, joined by TCP; or both")
    ] = "both",
) -> None:
    """Messages per second and latency of one hop, in process and over TCP between processes.

    Each kind runs at full speed, at half of that, at a fixed rate, and with whole batches.
    """
    typer.echo(f"{'':34} {'msg/s':>12} {'p50 ms':>8} {'p99 ms':>8} {'MB begin':>9} {'MB end':>7}")
    for kind in ("thread", "process"):
        if executors not in {kind, "both"}:
            continue
        run = partial(run_sol, kind)
        full = [_show(f"{kind}, full speed", run({"seconds": seconds})) for _ in range(runs)]
        half = sorted(full)[len(full) // 2] / 2
        for rate in (half, fixed_rate):
            for _ in range(runs):
                _show(f"{kind}, at {rate:,.0f}/s", run({"seconds": seconds, "rate": rate}))
        for _ in range(runs):
            _show(f"{kind}, batches", run({"seconds": seconds, "batch": True}))


@_app.command()
def start() -> None:
    """Start-up of a local cluster and of a thousand tasks, with their memory."""
    for what, seconds, memory_mb in measure_start():
        typer.echo(f"{what:48} {seconds:6.2f} s {memory_mb:6.0f} MB")


@_app.command()
def slow_sink(
    seconds: Annotated[int, typer.Option(help="how long to run")] = 60,
) -> None:
    """Back-pressure: a fast source into a sink that takes 10 ms for each batch."""
    typer.echo(f"{'second':>6} {'records read':>13} {'written':>13} {'MB':>6}")
    for second, read, written, memory_mb in measure_slow_sink(seconds):
        typer.echo(f"{second:6} {read:13,} {written:13,} {memory_mb:6.1f}")


@_app.command()
def recovery(
    times: Annotated[int, typer.Option(help="how often each kind of failure happens")] = 10,
) -> None:
    """How long records stop flowing after a failure, on a cluster of processes."""
    with TemporaryDirectory(prefix="gearpy-recovery-") as folder:
        typer.echo(f"{'failure':24} {'times':>5} {'p50 s':>7} {'p95 s':>7} {'max s':>7}")
        for each in measure_recovery(Path(folder), times=times):
            typer.echo(
                f"{each.kind:24} {len(each.seconds):5} {each.quantile(0.5):7.2f} "
                f"{each.quantile(0.95):7.2f} {max(each.seconds):7.2f}"
            )


@_app.command()
def chaos(
    faults: Annotated[int, typer.Option(help="how many")] = 30,
    seconds: Annotated[float, typer.Option(help="length of the stream")] = 60,
    seed: Annotated[int, typer.Option(help="decides which faults, and when")] = 1,
) -> None:
    """Kill and freeze processes of a cluster while it counts words; compare the answer."""
    with TemporaryDirectory(prefix="gearpy-chaos-") as folder:
        report = run_chaos(Path(folder), seed=seed, faults=faults, seconds=seconds, say=typer.echo)
    for line in report.lines():
        typer.echo(line)
    raise typer.Exit(1 if report.lost or report.status != "succeeded" else 0)


@_app.command()
def exactly_once(
    faults: Annotated[int, typer.Option(help="how many")] = 100,
    seed: Annotated[int, typer.Option(help="decides which faults, and when")] = 1,
    rate: Annotated[float, typer.Option(help="records per second")] = 2000,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="key=value of the configuration")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="an empty one, for all that is written; kept then")
    ] = None,
) -> None:
    """Kill and freeze processes of a cluster, in recoveries and epochs too; each result is once."""
    with TemporaryDirectory(prefix="gearpy-exactly-once-") as temporary:
        report = run_exactly_once(
            folder or Path(temporary),
            seed=seed,
            faults=faults,
            rate=rate,
            settings=dict(each.split("=", 1) for each in sets or ()),
            say=typer.echo,
        )
    for line in report.lines():
        typer.echo(line)
    raise typer.Exit(0 if report.is_good else 1)


@_app.command()
def checkpoint(
    seconds: Annotated[float, typer.Option(help="measured time of each run")] = 10,
    runs: Annotated[int, typer.Option(help="pairs of runs of each pipeline")] = 3,
    keys: Annotated[int, typer.Option(help="keys with a large value")] = 1_000_000,
    value_bytes: Annotated[int, typer.Option(help="size of such a value")] = 1000,
    only: Annotated[str, typer.Option(help="overhead, pauses, recovery; or all")] = "all",
) -> None:
    """What epochs cost: throughput, pauses with much state, and the time to get it back."""
    if only in {"overhead", "all"}:
        for pipeline, count in PIPELINES:
            for on, off in measure_overhead(pipeline, count, seconds=seconds, runs=runs):
                name = f"{pipeline}, {count:,} keys"
                typer.echo(f"{name:28} {on / off:6.1%} of {off:12,.0f} records/s")
    if only in {"pauses", "all"}:
        for name, settings in _EPOCHS.items():
            pauses = measure_pauses(settings, keys=keys, value_bytes=value_bytes, seconds=seconds)
            longest = " ".join(f"{gap_ms:6.1f}" for gap_ms in pauses.gaps_ms)
            typer.echo(f"{name:28} longest pauses {longest} ms, {pauses.rate:10,.0f} records/s")
    if only in {"recovery", "all"}:
        with TemporaryDirectory(prefix="gearpy-checkpoint-") as folder:
            for took_s in measure_state_recovery(
                Path(folder), keys=keys, value_bytes=value_bytes, times=runs
            ):
                typer.echo(f"executor killed, {keys:,} keys   {took_s:6.2f} s")


_EPOCHS: Final = {
    "no epochs": {"checkpoint.interval-ms": NEVER_MS},
    "epochs 1 s apart": {},
    "each written as a whole": {"checkpoint.chain-files-max": 1},
}


@_app.command()
def simulate(
    seeds: Annotated[int, typer.Option(help="how many")] = 10_000,
    first: Annotated[int, typer.Option(help="the first one")] = 0,
    processes: Annotated[int, typer.Option(help="that share the work")] = 2,
) -> None:
    """Clusters, and tasks alone, in virtual time with faults; says which seeds went wrong."""
    done, bad, faults, restarts, virtual_ms = 0, 0, 0, 0, 0
    for result in run_seeds(first, seeds, processes=processes):
        done, faults = done + 1, faults + len(result.faults)
        restarts, virtual_ms = restarts + result.restarts, virtual_ms + result.virtual_ms
        if result.problem:
            bad += 1
            name = f"seed {result.seed}, {result.kind}"
            typer.echo(f"{name}: {result.problem}; {', '.join(result.faults)}")
        if done % 2000 == 0:
            typer.echo(f"{done // 2} seeds, {bad} went wrong")
    typer.echo(
        f"{done // 2} seeds, each a cluster and tasks alone, {faults} faults, "
        f"{restarts} restarts of tasks, "
        f"{virtual_ms / 3_600_000:.1f} virtual hours: {bad} went wrong"
    )
    raise typer.Exit(1 if bad else 0)


def _show(name: str, result: dict[str, float]) -> float:
    typer.echo(
        f"{name:34} {result['rate']:12,.0f} {result['p50_ms']:8.2f} {result['p99_ms']:8.2f} "
        f"{result['rss_begin_mb']:9.1f} {result['rss_end_mb']:7.1f}"
    )
    return result["rate"]


def main() -> None:
    """Run the command."""
    _app()
