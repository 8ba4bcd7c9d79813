"""Commands of `bin/bench` about clusters inside Spark."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer


def add_guests(app: typer.Typer) -> None:
    app.command()(guest_crash)
    app.command()(guest_speed)


def guest_crash(
    faults: Annotated[int, typer.Option(help="how many")] = 30,
    seed: Annotated[int, typer.Option(help="decides which faults, and when")] = 1,
) -> None:
    """Kill processes of a cluster inside Spark, and of its Spark; each number counts once."""
    from tests.bench.guest_crash import guest_crash as crash  # noqa: PLC0415 - needs Spark

    with TemporaryDirectory(prefix="gearpy-guest-") as folder:
        for line in crash(Path(folder), kills=faults, seed=seed):
            typer.echo(line)


def guest_speed(
    rounds: Annotated[int, typer.Option(help="turns of each side")] = 3,
    seconds: Annotated[float, typer.Option(help="measured time of each turn")] = 8,
) -> None:
    """Records between two executors: those of daemons, and those inside Spark, by turns."""
    from tests.bench.guest_speed import guest_speed as speed  # noqa: PLC0415 - likewise
    from tests.bench.guest_speed import lines_of  # noqa: PLC0415

    with TemporaryDirectory(prefix="gearpy-guest-") as folder:
        for line in lines_of(speed(Path(folder), rounds=rounds, seconds=seconds)):
            typer.echo(line)
