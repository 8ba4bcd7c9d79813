"""The command `bin/bench`."""

from typing import Annotated

import typer

from gearpy.bench import pair
from gearpy.bench.slow_sink import measure_slow_sink
from gearpy.bench.start import measure_start

__all__ = ["main"]

_app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@_app.command()
def sol(
    seconds: Annotated[float, typer.Option(help="measured time of each run")] = 5,
    runs: Annotated[int, typer.Option(help="runs of each kind")] = 3,
    fixed_rate: Annotated[float, typer.Option(help="msg/s at which to take latency, too")] = 5e5,
) -> None:
    """Messages per second and latency of one hop, in process and over TCP between processes.

    Each kind runs at full speed, at half of that, at a fixed rate, and with `on_batch`.
    """
    typer.echo(f"{'':34} {'msg/s':>12} {'p50 ms':>8} {'p99 ms':>8} {'MB begin':>9} {'MB end':>7}")
    for name, run in (("in process", pair.run_in_process), ("tcp", pair.run_in_two_processes)):
        full = [_show(f"{name}, full speed", run({"seconds": seconds})) for _ in range(runs)]
        half = sorted(full)[len(full) // 2] / 2
        for rate in (half, fixed_rate):
            for _ in range(runs):
                _show(f"{name}, at {rate:,.0f}/s", run({"seconds": seconds, "rate": rate}))
        for _ in range(runs):
            _show(f"{name}, on_batch", run({"seconds": seconds, "batch": True}))


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


@_app.command(hidden=True)
def sol_child(options: str) -> None:
    """Run the consumer of `sol` (used by the command itself)."""
    pair.child_main(options)


def _show(name: str, result: dict[str, float]) -> float:
    typer.echo(
        f"{name:34} {result['rate']:12,.0f} {result['p50_ms']:8.2f} {result['p99_ms']:8.2f} "
        f"{result['rss_begin_mb']:9.1f} {result['rss_end_mb']:7.1f}"
    )
    return result["rate"]


def main() -> None:
    """Run the command."""
    _app()
