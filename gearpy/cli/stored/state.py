"""``gear state ...``: the state of the steps of an application, as tables."""

import json
import sys
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa  # type: ignore[import-untyped]
import typer
from msgspec import to_builtins

from gearpy.cli.stored.applications import find_stored
from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import ROWS_MAX, Given, Limit, argument, option, storing
from gearpy.cli.terminal.output import headings, print_hints, print_json, table
from gearpy.cluster.checkpoints.reading import plain
from gearpy.cluster.states.query import query as queried
from gearpy.cluster.states.stored import StateMoment, StoredStates, moment_of, rows_of
from gearpy.errors import ConfigError
from gearpy.views import text

if TYPE_CHECKING:
    from gearpy.cluster.client.client import StateAt

commands = group("The state of the steps of an application, as tables.")


class Format(StrEnum):
    """Forms of what a query gives."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


_App = Annotated[
    str,
    argument(
        metavar="ID",
        help="Number or name of the application. With --checkpoints it is looked for in that "
        "store, without a cluster.",
    ),
]
_Epoch = Annotated[int | None, option("--epoch", min=1, metavar="N", help="Default: the newest.")]


@commands.command("list", epilog=HELP)
@storing
def list_(given: Given, app: _App, *, epoch: _Epoch = None) -> None:
    """List the states of each step: their names, kinds and sizes."""
    with ExitStack() as stack:
        found = _states(given, app, stack).summaries(epoch)
    if given.as_json:
        print_json({"states": [to_builtins(each) for each in found]})
    elif found:
        columns = ["step", "id", "#processor", "state", "kind", "coder", "#cells", "#bytes"]
        table(
            f"state of {app}",
            columns,
            [
                [
                    each.name,
                    each.step,
                    str(each.processor),
                    each.state,
                    each.kind,
                    each.coder,
                    text.count(each.cells),
                    text.count(each.size_bytes),
                ]
                for each in found
            ],
        )
    else:
        print("no step has kept anything yet")


@commands.command(epilog=HELP)
@storing
def query(
    given: Given,
    app: _App,
    step: Annotated[
        str,
        argument(
            metavar="STEP",
            help="Its name or id in 'gear state list', or the number of its processor.",
        ),
    ],
    sql: Annotated[
        str,
        argument(
            metavar="[SQL]",
            help='Such as "select key, value from state where value > 3"; needs the extra sql. '
            "Default: all.",
        ),
    ] = "",
    *,
    state: Annotated[
        str, typer.Option("--state", metavar="NAME", help="If the step has several.")
    ] = "",
    epoch: _Epoch = None,
    now: Annotated[
        bool, typer.Option("--now", help="Of an epoch that is ended for it, with all until now.")
    ] = False,
    limit: Limit = None,
    form: Annotated[Format, typer.Option("--format", help="Of the result.")] = Format.table,
    output: Annotated[
        Path | None, option("--output", "-o", metavar="FILE", help="Default: standard output.")
    ] = None,
) -> None:
    """Print the state of a step, exactly as at the end of an epoch, or the result of a query."""
    form = Format.json if given.as_json else form
    if form in {Format.parquet, Format.arrow} and output is None and sys.stdout.isatty():
        raise ConfigError(f"{form} is nothing to read: name a file with --output, or use a pipe")
    with ExitStack() as stack:
        states = _states(given, app, stack, at="now" if now else "epoch")
        if sql:
            found = states.tables(step, state, epoch=epoch)
        else:
            whole = states.table(step, state, epoch=epoch)
            found = {moment_of(whole).state: whole}
    moment = replace(moment_of(next(iter(found.values()))), state=", ".join(found))
    result = queried(found, sql) if sql else next(iter(found.values()))
    most = limit or (ROWS_MAX if form is Format.table else None)
    shown = result if most is None else result.slice(0, most)
    if form is Format.table:
        cells = [
            [
                cell if isinstance(cell, str) else json.dumps(plain(cell), ensure_ascii=False)
                for cell in (row[name] for name in shown.column_names)
            ]
            for row in shown.to_pylist()
        ]
        when = f"epoch {moment.epoch}, event time {text.watermark(moment.clock_ms)}"
        print(f"{moment.state} of {moment.step}, {when}")
        table("", headings(shown.schema), cells)
        if limit is None and result.num_rows > shown.num_rows:
            print_hints(
                [f"{text.count(result.num_rows)} rows; {shown.num_rows} are shown, see --limit"]
            )
    else:
        _write(shown, moment, form, output)


def _states(given: Given, app: str, stack: ExitStack, *, at: "StateAt" = "epoch") -> StoredStates:
    """Return the states of an application: in a store that is named, or where the cluster says."""
    if given.checkpoints is not None:
        if at == "now":
            raise ConfigError("--now asks a cluster, and --checkpoints none: leave out one of them")
        stored = find_stored(given, app)
        return StoredStates(stored.checkpoints, stored.prefix)
    client = stack.enter_context(given.client(app))
    return client.states(client.find(app), at=at)


def _write(shown: pa.Table, moment: StateMoment, form: Format, output: Path | None) -> None:
    try:
        with output.open("wb") if output else nullcontext(sys.stdout.buffer) as file:
            if form is Format.json:
                values = {**to_builtins(moment), "rows": rows_of(shown)[0]}
                file.write(json.dumps(values, ensure_ascii=False).encode() + b"\n")
            elif form is Format.csv:
                import pyarrow.csv as pc  # type: ignore[import-untyped]

                pc.write_csv(shown, file)
            elif form is Format.parquet:
                import pyarrow.parquet as pq  # type: ignore[import-untyped]

                pq.write_table(shown, file)
            else:
                with pa.ipc.new_stream(file, shown.schema) as stream:
                    stream.write_table(shown)
            file.flush()
    except BrokenPipeError:
        raise  # The reader has had enough, as in ``gear state query ... | head``.
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}") from error
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"{form} cannot hold these columns: {error}; take json, parquet or arrow"
        ) from error
