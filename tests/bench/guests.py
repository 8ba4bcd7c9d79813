"""Commands of `bin/bench` about clusters inside Spark."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer


def add_guests(app: typer.Typer) -> None:
    app.command()(guest_crash)


def guest_crash(
    faults: Annotated[int, typer.Option(help="how many")] = 30,
    seed: Annotated[int, typer.Option(help="decides which faults, and when")] = 1,
) -> None:
    """Kill processes of a cluster inside Spark, and of its Spark; each number counts once."""
    from tests.bench.guest_crash import guest_crash as crash  # noqa: PLC0415 - needs Spark

    with TemporaryDirectory(prefix="gearpy-guest-") as folder:
        for line in crash(Path(folder), kills=faults, seed=seed):
            typer.echo(line)
