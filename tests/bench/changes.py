"""Commands of `bin/bench` about changes of applications that run."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer


def add_changes(app: typer.Typer) -> None:
    app.command()(update)
    app.command()(change_crash)


def update(
    change: Annotated[str, typer.Option(help="update: other code; scale: 4 tasks to 8")] = "update",
    rate: Annotated[int, typer.Option(help="records per second, of both pipelines")] = 100_000,
    keys: Annotated[int, typer.Option(help="keys with a value")] = 1000,
    value_bytes: Annotated[int, typer.Option(help="size of such a value")] = 1000,
    times: Annotated[int, typer.Option(help="changes")] = 5,
) -> None:
    """How long records pause when an application is changed: where it is, and beside it."""
    from tests.bench.update import measure_update  # noqa: PLC0415 - when it is run

    assert change in {"update", "scale"}, change
    with TemporaryDirectory(prefix="gearpy-update-") as folder:
        typer.echo(f"{'change':8} {'lasted s':>9} {'pause s':>8} {'beside s':>9} {'usual s':>8}")
        measured = measure_update(
            Path(folder),
            "scale" if change == "scale" else "update",
            rate=rate,
            keys=keys,
            value_bytes=value_bytes,
            times=times,
        )
        for each in measured:
            typer.echo(
                f"{change:8} {each.lasted:9.2f} {each.of_changed:8.2f} {each.of_beside:9.2f} "
                f"{each.usual:8.2f}  {each.parts}"
            )


def change_crash(
    faults: Annotated[int, typer.Option(help="how many")] = 24,
    seed: Annotated[int, typer.Option(help="decides which faults, and when")] = 1,
) -> None:
    """Kill a process in the middle of each change of an application; each number counts once."""
    from tests.bench.change_crash import change_crash as crash  # noqa: PLC0415 - when it is run

    with TemporaryDirectory(prefix="gearpy-change-") as folder:
        for line in crash(Path(folder), kills=faults, seed=seed):
            typer.echo(line)
