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
from gearpy.cli.terminal.options import AppArgs, Given, Records, Target, configured, option
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
    records: Records = None,
    show: Annotated[
        int, typer.Option("--show", min=0, metavar="N", help="Differences to print, of each kind.")
    ] = 5,
    allow_late: Annotated[
        bool,
        typer.Option("--allow-late", help="Records that the stream leaves out as late are right."),
    ] = False,
    spark: Annotated[
        str | None,
        option(
            "--spark",
            metavar="URL",
            help="Which Spark: local[2], spark://HOST:PORT, or sc://HOST:PORT; default: one here.",
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
                _counts(each.found) or "equal",
            ]
            for each in verdict.answers
        ]
        columns = ["sink", "#gearpy", "#spark", "#gearpy s", "#spark s", "verdict"]
        table(f"{verdict.app}: gearpy and Spark on the same records", columns, rows)
        for each in verdict.answers:
            found = each.found
            lines = [f"  only gearpy: {_shown(one)}" for one in found.missing[:show]]
            lines += [f"  only Spark:  {_shown(one)}" for one in found.extra[:show]]
            for mine, theirs in found.different[:show]:
                lines += [f"  gearpy: {_shown(mine)}", f"  Spark:  {_shown(theirs)}"]
            print_lines([f"differences of {each.sink}:", *lines] if lines else [])
        if verdict.late_records:
            left_out = f"the stream leaves out {verdict.late_records} records that came late"
            print_lines([f"late: {left_out}; {_LATE}"])
            for step, late in verdict.late.items():
                print_lines([f"  {step}: {len(late)}", *(f"    {_shown(m)}" for m in late[:show])])
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
        # Both sides read a source that is a file with an end, or else a recording of it.
        sources: dict[Source, Source] = {
            source: source
            if records is None and source.bounded and isinstance(source, FileSource | RowFiles)
            else record(source, Path(folder) / f"{at:03d}", limit=records)
            for at, source in enumerate(dict.fromkeys(plan.source for plan in plans))
        }
        begun = time.perf_counter()
        written, late_records = _gathered(app, sources, config, "as written")
        gearpy_s = time.perf_counter() - begun
        late: Mapping[str, Sequence[Message]] = {}
        if late_records:
            found, _ = _gathered(app, sources, config, "gather")
            late = {step: records for step, records in found.late.items() if records}
            held = {source: HeldSource(kept) for source, kept in sources.items()}
            written, _ = _gathered(app, held, config, "keep")
        answers = []
        for plan, mine in zip(plans, written.written, strict=True):
            begun = time.perf_counter()
            frame = twin_frame(spark, replace(plan, source=sources[plan.source]))
            theirs = [m for batch in frame.batches() for m in batch.messages()]
            answers.append(
                TwinAnswer(
                    sink=plan.sink,
                    gearpy=len(mine),
                    spark=len(theirs),
                    spark_s=time.perf_counter() - begun,
                    found=difference(mine, theirs),
                )
            )
    return TwinVerdict(
        app=app.name, gearpy_s=gearpy_s, answers=answers, late=late, late_records=late_records
    )


def _gathered(
    app: StreamApp, sources: Mapping[Source, Source], config: Config | None, late: Late
) -> tuple[Gathering, int]:
    gathered = gathering(
        app.name, app.plan, parallelism=app.parallelism, sources=sources, late=late
    )
    summary = run(gathered.application, config=config)
    return gathered, summary.progress.late_records


# -- what is printed -------------------------------------------------------------------------------


def _counts(found: Difference) -> str:
    counts = {
        "missing": found.missing, "extra": found.extra, "different": found.different
    }  # fmt: skip
    return ", ".join(f"{len(of)} {name}" for name, of in counts.items() if of)


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
