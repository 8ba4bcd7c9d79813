"""``gear window-log ...``: lists, shows, checks, compacts and purges window logs."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

import typer

from gearpy.cli.terminal.exits import HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, argument, option, takes
from gearpy.cli.terminal.output import print_json, print_lines, table
from gearpy.clocks import wall_ms
from gearpy.core.base.times import duration_ms
from gearpy.core.handover.window_log import LogPiece, LogSegment, LogView
from gearpy.errors import ConfigError, GearpyError
from gearpy.views import text
from gearpy.windowlog.bodies import SegmentInfo
from gearpy.windowlog.compaction import compact_all
from gearpy.windowlog.log import ReaderReport, WindowLog, positions_of
from gearpy.windowlog.verify import verify as verify_log

commands = group("Window logs: finished windows, stored for readers such as Spark.")

_Path: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="Folder of the log, or its URL.")
]
_about_a_log = takes("as_json", "verbose")


@commands.command("list", epilog=HELP)
@_about_a_log
def list_(given: Given, path: _Path) -> None:
    """List the files of a log with their batches, lane by lane, and how far readers are."""
    log = _begun(path)
    view = log.view()
    listed = [
        (piece, log.info(piece.segment)) for lane in view.lanes for piece in view.pieces(lane)
    ]
    readers = log.readers()
    if given.as_json:
        print_json(
            {
                "path": log.place,
                "columns": {field.name: str(field.type) for field in log.schema.arrow},
                "files": [_file_values(log, piece, info) for piece, info in listed],
                "readers": [_reader_values(view, each) for each in readers],
            }
        )
        return
    columns = ("lane", "#batches", "#windows", "#rows", "from", "to", "#epoch", "run", "file")
    table(f"files of {log.place}", columns, [_file_row(piece, info) for piece, info in listed])
    if readers:
        print()
        rows = []
        for each in readers:
            values, rate = _reader_values(view, each), each.rows_per_s
            left = map(text.count, (values["batches_left"], values["rows_left"]))
            per_s = "" if rate is None else text.count(rate)
            rows.append([each.name, text.moment(each.at_ms), *left, per_s])
        table("readers", ("reader", "reported", "#batches left", "#rows left", "#rows/s"), rows)


@commands.command(epilog=HELP)
@_about_a_log
def show(
    given: Given,
    path: _Path,
    lane: Annotated[str | None, argument(metavar="[LANE]", help="Default: the first one.")] = None,
    batch: Annotated[
        int | None, typer.Argument(metavar="[BATCH]", help="Its number; default: the last.", min=1)
    ] = None,
    *,
    rows: Annotated[int, typer.Option("--rows", min=0, help="So many at most; 0 for all.")] = 20,
) -> None:
    log = _begun(path)
    ends = log.view().ends()
    lane = lane or next(iter(ends), "")
    if lane not in ends:
        known = ", ".join(ends) or "none"
        raise ConfigError(f"window log {log.place} has no lane {lane!r}: there are {known}")
    number = batch or ends[lane]
    found = log.read_range(lane, number, number)
    shown = found.slice(0, rows) if rows else found
    if given.as_json:
        values = [{name: _plain(cell) for name, cell in row.items()} for row in shown.to_pylist()]
        print_json({"lane": lane, "batch": number, "rows": found.num_rows, "shown": values})
        return
    columns = [
        f"#{name}"
        if str(found.schema.field(name).type).startswith(("int", "float", "double", "decimal"))
        else name
        for name in found.schema.names
    ]
    title = f"batch {number} of lane {lane}: {text.plural(found.num_rows, 'row')}"
    table(
        title,
        columns,
        [
            ["" if cell is None else str(_plain(cell)) for cell in row.values()]
            for row in shown.to_pylist()
        ],
    )
    if shown.num_rows < found.num_rows:
        print(f"\nthese are {shown.num_rows}; for more, --rows")


@commands.command(epilog=HELP)
@_about_a_log
def verify(given: Given, path: _Path) -> None:
    """Read everything: are batches missing, files damaged, windows twice? Exit code 1 if so."""
    log = _begun(path)
    checked = verify_log(log)
    if given.as_json:
        print_json(
            {
                "path": log.place,
                "files": checked.files,
                "batches": checked.batches,
                "rows": checked.rows,
                "findings": [each._asdict() for each in checked.findings],
            }
        )
    else:
        files, rows = text.plural(checked.files, "file"), text.plural(checked.rows, "row")
        batches = text.count(checked.batches)
        lines = [f"{log.place}: {files}, {batches} batch{'es' * (checked.batches != 1)}, {rows}"]
        lines += [f"error: {each.place}: {each.problem}" for each in checked.findings]
        print_lines(
            lines if checked.findings else [*lines, "all batches are there, and each row once"]
        )
    if checked.findings:
        raise GearpyError(
            f"window log {log.place}: {text.plural(len(checked.findings), 'finding')}"
        )


@commands.command(epilog=HELP)
@_about_a_log
def compact(
    given: Given,
    path: _Path,
    *,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="So many has a file at most.")
    ] = 1_000_000,
) -> None:
    """Make few large files of many small ones; readers and writers may go on meanwhile."""
    log = _begun(path)
    before = len(log.segments())
    made = compact_all(log, rows_max=rows)
    after = len(log.segments())
    given.answer(
        {"path": log.place, "before": before, "after": after, "made": _names(made)},
        f"{log.place}: {text.plural(before, 'file')} before, {after} now",
    )


@commands.command(epilog=HELP)
@_about_a_log
def purge(
    given: Given,
    path: _Path,
    *,
    reader: Annotated[
        list[str] | None,
        option(
            "--reader",
            help="Remove what this reader has done with; may be given again: then what all have "
            "done with. Default: all readers.",
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        option(
            "--older-than",
            metavar="TIME",
            help="Remove what was committed longer ago, such as 7d, even if readers lack it.",
        ),
    ] = None,
) -> None:
    """Remove the oldest files; the last one of each lane stays."""
    log = _begun(path)
    if older_than is None:
        names = reader or ()
        reports = {each.name: each for each in log.readers()}
        missing = [name for name in names if name not in reports]
        if missing or not reports:
            known = ", ".join(reports) or "none"
            wanted = f"no reader {missing[0]!r}" if missing else "no reader that has reported"
            raise ConfigError(
                f"window log {log.place} has {wanted}, there are {known}: nobody knows what may "
                "go; give another one, or --older-than"
            )
        removed = log.purge(
            positions_of([reports[name] for name in names] if names else list(reports.values()))
        )
    elif reader:
        raise ConfigError("give --reader or --older-than, not both")
    else:
        before_ms = wall_ms() - duration_ms(older_than)
        removed = log.expire(log.view().ends(), before_ms=before_ms)
    given.answer(
        {"path": log.place, "removed": _names(removed)},
        f"{log.place}: {text.plural(len(removed), 'file')} removed",
    )


def _begun(path: str) -> WindowLog:
    log = WindowLog(path)
    log.schema  # noqa: B018 - it says what is wrong with the path
    return log


# -- as people see it --------------------------------------------------------------------------


def _file_row(piece: LogPiece, info: SegmentInfo) -> list[str]:
    segment = piece.segment
    starts = [batch.starts for batch in info.batches if batch.starts is not None]
    ends = [batch.ends for batch in info.batches if batch.ends is not None]
    return [
        segment.lane,
        str(piece.first) if piece.first == piece.last else f"{piece.first}-{piece.last}",
        text.count(sum(batch.windows for batch in info.batches)),
        text.count(segment.rows),
        text.watermark(min(starts, default=None)),
        text.watermark(max(ends, default=None)),
        str(segment.epoch),
        segment.run,
        segment.name,
    ]


# -- as programs see it ------------------------------------------------------------------------


def _file_values(log: WindowLog, piece: LogPiece, info: SegmentInfo) -> dict[str, Any]:
    segment = piece.segment
    return {
        "lane": segment.lane,
        "first": piece.first,
        "last": piece.last,
        "rows": segment.rows,
        "epoch": segment.epoch,
        "run": segment.run,
        "file": log.path_of(segment),
        "app": info.app,
        "app_id": info.app_id,
        "batches": [batch._asdict() for batch in info.batches],
    }


def _reader_values(view: LogView, report: ReaderReport) -> dict[str, Any]:
    ends = view.ends()
    return {
        "name": report.name,
        "at_ms": report.at_ms,
        "lanes": dict(report.lanes),
        "batches_left": view.batches_between(report.lanes, ends),
        "rows_left": view.rows_between(report.lanes, ends),
        "rows_per_s": report.rows_per_s,
        "batch_id": report.batch_id,
    }


def _names(segments: Iterable[LogSegment]) -> list[str]:
    return [segment.name for segment in segments]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; a time in ISO form, all other types as text."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if hasattr(value, "isoformat"):
        moment: str = value.isoformat().replace("+00:00", "Z")
        return moment
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
