"""``gear verify``: runs a program here and as a Spark query, and prints the differences."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from gearpy.cli.programs.program import load_program
from gearpy.cli.terminal.exits import FAILED
from gearpy.cli.terminal.options import AppArgs, Given, Target, configured
from gearpy.cli.terminal.output import print_json, print_lines, table
from gearpy.cluster.embedded.run import run
from gearpy.config.schema import Config
from gearpy.connectors.files.lines_files import FileSource
from gearpy.connectors.files.partitions import RowFiles
from gearpy.dsl.application import StreamApp, written_as
from gearpy.dsl.lower.rewired import Gathering, gathering
from gearpy.dsl.plan.linear import linear_plans
from gearpy.errors import ConfigError
from gearpy.messages.data import Message
from gearpy.spark.query.difference import Difference, difference
from gearpy.spark.query.frame import twin_frame
from gearpy.spark.query.plan import LinearPlan
from gearpy.spark.query.recorded import HeldSource, record
from gearpy.spark.sessions.driver import DRIVER
from gearpy.spark.sessions.sessions import session, stop
from gearpy.task.api.interfaces import Source
from gearpy.views import text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Late = Literal["as written", "keep", "gather"]

_LATE: Final = (
    "for the comparison it took them: give the source a larger out_of_order, or add --allow-late"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinAnswer:
    """The records for one sink, computed twice."""

    sink: str
    gearpy: int
    spark: int
    spark_s: float
    found: Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinVerdict:
    app: str
    gearpy_s: float
    answers: Sequence[TwinAnswer]
    late: Mapping[str, Sequence[Message]]
    late_records: int

    @property
    def agrees(self) -> bool:
        """Whether both give the same, of the records that are not late."""
        return all(answer.found.is_empty for answer in self.answers)


@configured
def verify(
    given: Given,
    target: Target,
    args: AppArgs = None,
    *,
    against: Annotated[
        Literal["spark"], typer.Option("--against", help="What computes the same once more.")
    ] = "spark",
    records: Annotated[
        int | None,
        typer.Option(
            "--records",
            min=1,
            metavar="N",
            help="Take so many records of each source; sources without an end need it.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        int, typer.Option("--show", min=0, metavar="N", help="Differences to print, of each kind.")
    ] = 5,
    allow_late: Annotated[
        bool,
        typer.Option("--allow-late", help="Records that the stream leaves out as late are right."),
    ] = False,
    spark: Annotated[
        str | None,
        typer.Option(
            "--spark",
            metavar="URL",
            help="Which Spark: local[2], spark://HOST:PORT, or sc://HOST:PORT; default: one here.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a program and the same as a Spark query, on the same records; print what differs.

    Files are read as they are; what other sources give is recorded first. The exit code is 1 if
    the answers differ, or if the stream leaves records out as late.
    """
    assert against == "spark", "there is no other yet"
    config = given.config()
    _, application = load_program(target, args or ())
    app = written_as(application)
    if app is None:
        raise ConfigError(
            f"{target}: its graph was made by hand, and only programs in the stream language have "
            "a Spark query"
        )
    linear_plans(app.name, app.plan, endless=records is not None)  # Refused before Spark starts.
    remote = spark if spark is not None and spark.startswith("sc://") else None
    is_own = DRIVER.session is None
    started = session("gear verify", master=None if remote else spark, remote=remote)
    try:
        verdict = verify_application(app, started, config=config, records=records)
    finally:
        if is_own:
            stop()
    if given.as_json:
        print_json(_as_data(verdict, show))
    else:
        rows = [
            [
                each.sink,
                text.count(each.gearpy),
                text.count(each.spark),
                f"{verdict.gearpy_s:.1f}",
                f"{each.spark_s:.1f}",
                _told(each.found),
            ]
            for each in verdict.answers
        ]
        columns = ["sink", "#gearpy", "#spark", "#gearpy s", "#spark s", "verdict"]
        table(f"{verdict.app}: gearpy and Spark on the same records", columns, rows)
        print_lines(line for each in verdict.answers for line in _differences(each, show))
        print_lines(_late_lines(verdict, show))
    if not verdict.agrees or (verdict.late_records and not allow_late):
        raise typer.Exit(FAILED)


def verify_application(
    app: StreamApp,
    spark: "SparkSession",
    *,
    config: Config | None = None,
    records: int | None = None,
) -> TwinVerdict:
    """Compute the records for the sinks of an application here and by Spark, and compare them.

    The stream runs as it was written. If it leaves records out as late, they are found by a second
    run, and a third one, in which event time stands still until all records are there, is compared
    with the query, which knows of no late records.
    """
    plans = linear_plans(app.name, app.plan, endless=records is not None)
    with TemporaryDirectory(prefix="gear-verify-") as folder:
        sources = _recorded([plan.source for plan in plans], Path(folder), records)
        begun = time.perf_counter()
        written, late_records = _gathered(app, sources, config, "as written")
        gearpy_s = time.perf_counter() - begun
        late: Mapping[str, Sequence[Message]] = {}
        if late_records:
            found, _ = _gathered(app, sources, config, "gather")
            late = {step: records for step, records in found.late.items() if records}
            held = {source: HeldSource(kept) for source, kept in sources.items()}
            written, _ = _gathered(app, held, config, "keep")
        answers = [
            _answer(replace(plan, source=sources[plan.source]), spark, mine)
            for plan, mine in zip(plans, written.written, strict=True)
        ]
    return TwinVerdict(
        app=app.name, gearpy_s=gearpy_s, answers=answers, late=late, late_records=late_records
    )


def _recorded(sources: Sequence[Source], folder: Path, records: int | None) -> dict[Source, Source]:
    """Map each source to the one that both sides read: a file that ends, or a recording."""
    return {
        source: source
        if records is None and source.bounded and isinstance(source, FileSource | RowFiles)
        else record(source, folder / f"{at:03d}", limit=records)
        for at, source in enumerate(dict.fromkeys(sources))
    }


def _gathered(
    app: StreamApp, sources: Mapping[Source, Source], config: Config | None, late: Late
) -> tuple[Gathering, int]:
    gathered = gathering(
        app.name, app.plan, parallelism=app.parallelism, sources=sources, late=late
    )
    summary = run(gathered.application, config=config)
    return gathered, summary.progress.late_records


def _answer(plan: LinearPlan, spark: "SparkSession", mine: Sequence[Message]) -> TwinAnswer:
    begun = time.perf_counter()
    theirs = [m for batch in twin_frame(spark, plan).batches() for m in batch.messages()]
    spark_s = time.perf_counter() - begun
    return TwinAnswer(
        sink=plan.sink,
        gearpy=len(mine),
        spark=len(theirs),
        spark_s=spark_s,
        found=difference(mine, theirs),
    )


# -- what is printed -------------------------------------------------------------------------------


def _told(found: Difference) -> str:
    if found.is_empty:
        return "equal"
    counts = {
        "missing": found.missing, "extra": found.extra, "different": found.different
    }  # fmt: skip
    return ", ".join(f"{len(of)} {name}" for name, of in counts.items() if of)


def _differences(answer: TwinAnswer, show: int) -> list[str]:
    found = answer.found
    lines = [f"  only gearpy: {_shown(each)}" for each in found.missing[:show]]
    lines += [f"  only Spark:  {_shown(each)}" for each in found.extra[:show]]
    for mine, theirs in found.different[:show]:
        lines += [f"  gearpy: {_shown(mine)}", f"  Spark:  {_shown(theirs)}"]
    return [f"differences of {answer.sink}:", *lines] if lines else []


def _late_lines(verdict: TwinVerdict, show: int) -> list[str]:
    if not verdict.late_records:
        return []
    lines = [f"late: the stream leaves out {verdict.late_records} records that came late; {_LATE}"]
    for step, records in verdict.late.items():
        lines.append(f"  {step}: {len(records)}")
        lines += [f"    {_shown(each)}" for each in records[:show]]
    return lines


def _shown(message: Message) -> str:
    return f"{message.value!r:.300} at {message.timestamp}"


def _as_data(verdict: TwinVerdict, show: int) -> dict[str, Any]:
    return {
        "app": verdict.app,
        "agrees": verdict.agrees,
        "late_records": verdict.late_records,
        "late": {step: [_shown(m) for m in of[:show]] for step, of in verdict.late.items()},
        "gearpy_seconds": round(verdict.gearpy_s, 3),
        "sinks": [
            {
                "sink": each.sink,
                "gearpy": each.gearpy,
                "spark": each.spark,
                "spark_seconds": round(each.spark_s, 3),
                "equal": each.found.same,
                "missing": len(each.found.missing),
                "extra": len(each.found.extra),
                "different": len(each.found.different),
                "first_missing": [_shown(m) for m in each.found.missing[:show]],
                "first_extra": [_shown(m) for m in each.found.extra[:show]],
                "first_different": [[_shown(a), _shown(b)] for a, b in each.found.different[:show]],
            }
            for each in verdict.answers
        ],
    }
