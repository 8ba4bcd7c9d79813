"""``gear sql``: a query over files, or a whole file of SQL."""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gearpy.cli.programs.plan import plan_lines
from gearpy.cli.terminal.absent import leave_out
from gearpy.cli.terminal.log import log_to_stderr
from gearpy.cli.terminal.options import ROWS_MAX, Given, Limit, argument, takes
from gearpy.cli.terminal.output import headings, print_hints, print_lines, table
from gearpy.cluster.checkpoints.reading import plain
from gearpy.cluster.embedded.run import run
from gearpy.connectors.console import console
from gearpy.dsl.application import StreamApp
from gearpy.dsl.operators.routes import WriteOperator
from gearpy.sql.job import Job, text_of
from gearpy.sql.parse.tokens import SqlText
from gearpy.sql.plan.relations import Relation
from gearpy.views import text


class AnswerForm(StrEnum):
    """Forms of an answer."""

    table = "table"
    csv = "csv"
    jsonl = "jsonl"


@takes("verbose")
def sql(
    given: Given,
    query: Annotated[
        str,
        argument(
            metavar="SQL|FILE.sql",
            help="\"select shop, sum(price) from 'sales/*.parquet' group by shop\"; or a file of "
            "statements, each with a semicolon behind it.",
        ),
    ],
    *,
    form: Annotated[AnswerForm, typer.Option("--format", help="Of the answer.")] = AnswerForm.table,
    limit: Limit = None,
) -> None:
    """Answer a query in SQL over files, or run a whole file of SQL."""
    log_to_stderr(verbose=given.verbose, quiet=True)
    path = Path(query) if query.endswith(".sql") and len(query.split()) == 1 else None
    if path is None:  # No program of a user runs, and Arrow would import pandas for it.
        leave_out("pandas", "dateutil")
    said = SqlText(query) if path is None else text_of(path)
    app = StreamApp("sql" if path is None else path.stem)
    job = Job(said, app, {})
    for answer, is_plan in job.answers:
        if is_plan:
            print_lines(plan_lines(answer.plan()))
        elif answer.is_bounded:
            _print(answer, form, limit)
        else:
            answer.stream.write(console(), name="answer")
    if any(isinstance(step, WriteOperator) for step in app.plan):
        run(app)


def _print(answer: Relation, form: AnswerForm, limit: int | None) -> None:
    wanted = [each for each in (limit, answer.most) if each]
    rows: Sequence[Mapping[str, Any]] = answer.stream.to_list(min(wanted, default=None))
    names = answer.schema.names
    if form is AnswerForm.jsonl:
        for row in rows:
            print(json.dumps({name: plain(row[name]) for name in names}, ensure_ascii=False))
        return
    if form is AnswerForm.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(row[name], "") for name in names] for row in rows)
        return
    most = limit or ROWS_MAX
    cells = [[_cell(row[name], "null") for name in names] for row in rows[:most]]
    table("", headings(answer.schema), cells)
    if len(rows) > most:
        print_hints([f"{text.count(len(rows))} rows; {most} are shown, see --limit and --format"])


def _cell(value: Any, null: str) -> str:
    """Return a value as people read it; times of UTC as ISO texts."""
    if value is None:
        return null
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(" ").removesuffix("+00:00")
    if isinstance(value, date | time | Decimal):
        return str(value)
    return json.dumps(plain(value), ensure_ascii=False)
