"""``gear checkpoint ...``: prints, checks and changes the stored epochs of applications."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from gearpy.cli.stored.applications import (
    OR_FORCE,
    STOP_FIRST,
    StoredApplication,
    find_stored,
    refuse_while_running,
)
from gearpy.cli.terminal.exits import FAILED, HELP
from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, StoredAppId, storing
from gearpy.cli.terminal.output import print_hints, print_json, print_lines, table
from gearpy.clocks import wall_ms
from gearpy.cluster.checkpoints.changing import (
    SOURCE,
    Orphan,
    PlannedPlace,
    check_unused,
    find_orphans,
    needed_files,
    plan_places,
    set_places,
)
from gearpy.cluster.checkpoints.reading import (
    EpochContents,
    EpochDifference,
    EpochSummary,
    EpochVerdict,
    StoredEpochs,
    compare,
    open_store,
    plain,
    stored_prefixes,
)
from gearpy.cluster.checkpoints.reading import verify as verified
from gearpy.config.schema import Config
from gearpy.core.coordinator.repair import SalvagedLog
from gearpy.core.coordinator.views import EpochManifests
from gearpy.errors import ConfigError, GearpyError
from gearpy.storage.coordinator_log import read_log, repair_log, salvage
from gearpy.views import text

commands = group("What is stored of applications; no cluster is needed.")

_Epoch: TypeAlias = Annotated[
    int | None,
    typer.Argument(metavar="[EPOCH]", min=1, help="Default: the newest.", show_default=False),
]
_Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Do it; without this, only what would be done is told.")
]
_SHOWN_CHARS_MAX: Final = 100

#: Places by task and partition, as JSON has them.
_Places: TypeAlias = Mapping[str, Mapping[str, Any]]


@commands.command("list", epilog=HELP)
@storing
def list_(
    given: Given,
    app: StoredAppId,
) -> None:
    """List the complete epochs of an application, the oldest first."""
    stored = find_stored(given, app)
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    summaries = [epochs.summary(each) for each in epochs]
    if given.as_json:
        _print_json(stored, epochs=plain(summaries))
    elif summaries:
        _print_epochs(stored, summaries)
    else:
        print(f"{stored.prefix} has no complete epoch")


@commands.command(epilog=HELP)
@storing
def show(
    given: Given,
    app: StoredAppId,
    epoch: _Epoch = None,
) -> None:
    """Show what is in an epoch: where its sources are, its tasks with sizes, its files."""
    stored = find_stored(given, app)
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    found = [epochs.contents(each) for each in epochs.find(epoch)]
    if given.as_json:
        _print_json(stored, epochs=[_contents_values(each) for each in found])
        return
    for at, each in enumerate(found):
        if at:
            print()
        _print_contents(each, epochs)


@commands.command(epilog=HELP)
@storing
def verify(
    given: Given,
    app: StoredAppId,
    epoch: Annotated[
        int | None,
        typer.Argument(metavar="[EPOCH]", min=1, help="Default: all.", show_default=False),
    ] = None,
) -> None:
    """Read all files of an application's epochs; exit code 1 if one is missing or damaged."""
    stored = find_stored(given, app)
    verdicts = verified(StoredEpochs(stored.checkpoints, stored.prefix), epoch)
    if given.as_json:
        regions = sorted({each.region for each in verdicts})
        resumes = [{"region": each, "epoch": _resumes(verdicts, each)} for each in regions]
        _print_json(stored, epochs=plain(verdicts), resumes=resumes)
    else:
        print_lines(_verdict_lines(verdicts))
    if any(each.is_damaged for each in verdicts):
        raise typer.Exit(FAILED)


@commands.command(epilog=HELP)
@storing
def diff(
    given: Given,
    app: StoredAppId,
    old: Annotated[int, typer.Argument(metavar="EPOCH", min=1, show_default=False)],
    new: Annotated[int, typer.Argument(metavar="EPOCH", min=1, show_default=False)],
) -> None:
    """Tell in what two epochs differ: places of sources, sizes and cells of state."""
    stored = find_stored(given, app)
    with _store_errors(stored):
        found = compare(StoredEpochs(stored.checkpoints, stored.prefix), old, new)
    if given.as_json:
        _print_json(stored, regions=plain(found))
        return
    for at, each in enumerate(found):
        if at:
            print()
        _print_difference(each)


@commands.command("set", epilog=HELP)
@storing
def set_offsets(
    given: Given,
    app: StoredAppId,
    task: Annotated[
        str | None,
        typer.Argument(metavar="[TASK]", help="Such as 0.1; see 'show'.", show_default=False),
    ] = None,
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PARTITION=PLACE]...",
            help="A place is JSON, of the kind that 'show' has there.",
            show_default=False,
        ),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help='Places of several tasks, as JSON: {"0.1": {"PARTITION": PLACE}}; or what '
            "'show --json' has printed, with other places in it.",
            show_default=False,
        ),
    ] = None,
    apply: _Apply = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also if the application runs: its app master then ends, and is launched again.",
        ),
    ] = False,
) -> None:
    """Let the next launch of a stopped application read its sources from other places.

    State stays as it is: what is read again counts again, what is left out is missing.
    """
    config = given.config()
    stored = find_stored(given, app, config)
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    if (file is None) == (task is None):
        raise ConfigError("name a task and PARTITION=PLACE, or a file with --from, and not both")
    wanted = _of_file(file) if file else {task or "": _assigned(places or (), task or "", epochs)}
    planned = plan_places(epochs, wanted)
    if apply and planned:
        now_ms = wall_ms()
        if not force:
            _refuse_while_running(config, stored, OR_FORCE)
        set_places(epochs, planned, wall_ms=lambda: now_ms)
    if given.as_json:
        _print_json(stored, applied=apply, offsets=plain(planned))
    else:
        _print_planned(stored, planned, apply=apply)


@commands.command(epilog=HELP)
@storing
def clean(
    given: Given,
    app: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Default: all stopped.", show_default=False),
    ] = None,
    *,
    apply: _Apply = False,
) -> None:
    """Remove files that no epoch needs any more, as crashes leave behind."""
    config = given.config()
    if app is None:
        applications = _stored_applications(given.checkpoints or config.checkpoint.folder)
    else:
        applications = [find_stored(given, app, config)]
    found, passed = dict[StoredApplication, list[Orphan]](), dict[StoredApplication, str]()
    for stored in applications:
        try:
            # What it writes at this moment is in no log yet.
            _refuse_while_running(config, stored, STOP_FIRST)
            found[stored] = _cleaned(stored, apply=apply)
        except ConfigError as error:
            if len(applications) == 1:
                raise
            passed[stored] = str(error)
    if given.as_json:
        values = [
            *(
                {**_of(each), "files": plain(files), "passed_over": ""}
                for each, files in found.items()
            ),
            *({**_of(each), "files": [], "passed_over": why} for each, why in passed.items()),
        ]
        print_json({"applied": apply, "applications": values})
        return
    print_hints(f"{stored.prefix} is passed over: {why}" for stored, why in passed.items())
    _print_orphans([each for files in found.values() for each in files], apply=apply)


@commands.command(epilog=HELP)
@storing
def drop(
    given: Given,
    app: StoredAppId,
    *,
    apply: _Apply = False,
) -> None:
    """Remove everything that is stored of a stopped application: nothing can go on from it."""
    config = given.config()
    stored = find_stored(given, app, config)
    _refuse_while_running(config, stored, STOP_FIRST)
    with _store_errors(stored):
        check_unused(stored.checkpoints, stored.prefix)
        files = len(stored.checkpoints.names(stored.prefix))
        if apply:
            stored.checkpoints.drop_all(stored.prefix)
    if given.as_json:
        _print_json(stored, applied=apply, files=files)
        return
    done = "removed" if apply else "would be removed; --apply removes them"
    print(f"{stored.prefix}: {text.plural(files, 'file')} {done}")


@commands.command(epilog=HELP)
@storing
def repair(
    given: Given,
    app: StoredAppId,
    *,
    apply: _Apply = False,
) -> None:
    """Name the losses of a damaged coordinator log, and write it anew without them.

    Exit code 1 if it is damaged and stays so.
    """
    config = given.config()
    stored = find_stored(given, app, config)
    found, aside = salvage(stored.checkpoints, stored.prefix), ""
    if apply and found.damage:
        _refuse_hopeless(stored, found)
        now_ms, messages = wall_ms(), found.state.messages()
        refuse_while_running(config, stored, messages, now_ms=now_ms, advice=STOP_FIRST)
        aside = repair_log(
            stored.checkpoints,
            stored.prefix,
            found,
            source=SOURCE,
            wall_ms=lambda: now_ms,
        )
    if given.as_json:
        _print_json(stored, applied=bool(aside), **_repair_values(found), aside=aside)
    else:
        print_lines(_repair_lines(stored, found, aside))
    if found.damage and not aside:
        raise typer.Exit(FAILED)


# -- all ---------------------------------------------------------------------------------------


@contextmanager
def _store_errors(stored: StoredApplication) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GearpyError(f"{stored.prefix}: the checkpoint store fails: {error}") from error


def _refuse_while_running(config: Config, stored: StoredApplication, advice: str) -> None:
    messages = read_log(stored.checkpoints, stored.prefix).history
    refuse_while_running(config, stored, messages, now_ms=wall_ms(), advice=advice)


def _place_text(place: Any) -> str:
    return "finished" if place is None else json.dumps(plain(place), ensure_ascii=False)


def _of(stored: StoredApplication) -> dict[str, Any]:
    return {"app_id": stored.app_id, "prefix": stored.prefix}


def _print_json(stored: StoredApplication, **values: Any) -> None:
    print_json({**_of(stored), **values})


# -- list and show -----------------------------------------------------------------------------


def _print_epochs(stored: StoredApplication, summaries: Sequence[EpochSummary]) -> None:
    cut = ["cut"] if any(each.cut_time_ms is not None for each in summaries) else []
    columns = ["#region", "#epoch", "#attempt", "clock", *cut, "#files", "#bytes", "stored", "#age"]
    rows = [
        [
            str(each.region),
            str(each.epoch),
            str(each.attempt),
            text.watermark(each.clock_ms),
            *([text.watermark(each.cut_time_ms)] if cut else []),
            text.count(each.files),
            text.count(each.size_bytes),
            text.moment(each.stored_ms),
            _age(each),
            "newest" if each.newest else "",
        ]
        for each in summaries
    ]
    table(f"epochs of {stored.prefix}", [*columns, ""], rows)


def _age(epoch: EpochSummary) -> str:
    return text.duration(max(0, wall_ms() - epoch.stored_ms))


def _print_contents(contents: EpochContents, epochs: StoredEpochs) -> None:
    print_lines(_summary_lines(contents.summary))
    _print_places(contents, epochs)
    tasks = [
        [str(each.task), each.operator, text.count(each.head_bytes), text.count(each.state_bytes)]
        for each in contents.tasks
    ]
    print()
    if contents.damage:
        print_lines([f"error: {contents.damage}", "sizes of tasks are not known"])
    else:
        table("tasks", ("task", "operator", "#head", "#keyed state"), tasks)
    print()
    files = [
        [each.location, text.count(each.size_bytes), ", ".join(map(str, each.tasks))]
        for each in contents.files
    ]
    table("files", ("location", "#bytes", "tasks"), files)


def _summary_lines(epoch: EpochSummary) -> Iterator[str]:
    newest = ", the newest" if epoch.newest else ""
    yield f"epoch {epoch.epoch} of region {epoch.region}, attempt {epoch.attempt}{newest}"
    yield f"  clock   {text.watermark(epoch.clock_ms)}"
    if epoch.cut_time_ms is not None:
        yield f"  cut     {text.watermark(epoch.cut_time_ms)}"
    yield f"  stored  {text.moment(epoch.stored_ms)}, {_age(epoch)} ago"
    size = text.plural(epoch.size_bytes, "byte")
    yield f"  size    {size} in {text.plural(epoch.files, 'file')}"


def _print_places(contents: EpochContents, epochs: StoredEpochs) -> None:
    by_hand = contents.overrides
    columns = ["task", "operator", "partition", "place", *(["set by hand"] if by_hand else [])]
    rows = [
        [
            str(task),
            epochs.operator(task),
            name,
            _place_text(place),
            _place_text(by_hand[task][name]) if name in by_hand.get(task, {}) else "",
        ][: len(columns)]
        for task, places in contents.offsets.items()
        for name, place in places.items()
    ]
    if rows:
        print()
        table("sources", columns, rows)


def _contents_values(contents: EpochContents) -> dict[str, Any]:
    values: dict[str, Any] = plain(contents)
    for file in values["files"]:
        del file["partition"]
    return {**values.pop("summary"), **values}


# -- verify and diff ---------------------------------------------------------------------------


def _resumes(verdicts: Sequence[EpochVerdict], region: int) -> int | None:
    whole = [each.epoch for each in verdicts if each.region == region and each.is_usable]
    return max(whole, default=None)


def _verdict_lines(verdicts: Sequence[EpochVerdict]) -> Iterator[str]:
    for each in verdicts:
        verdict = "damaged" if each.damage else "whole"
        files = text.plural(each.files, "file")
        if each.segments:
            files += f", {text.plural(each.segments, 'segment')} of the changelog"
        yield f"epoch {each.epoch} of region {each.region}: {verdict}, {files}"
        yield from (f"error: {damage}" for damage in (*each.damage, *each.changelog_damage))
        if each.is_rebuildable:
            yield "a restart rebuilds it from the changelog"
    for region in sorted({each.region for each in verdicts if each.damage}):
        epoch = _resumes(verdicts, region)
        where = "begin from the beginning" if epoch is None else f"go back to epoch {epoch}"
        yield f"region {region} would {where}"


def _print_difference(difference: EpochDifference) -> None:
    print(f"region {difference.region}, from epoch {difference.old} to {difference.new}\n")
    places = [
        [
            str(each.task),
            each.operator,
            each.partition,
            _place_text(each.old),
            _place_text(each.new),
        ]
        for each in difference.offsets
    ]
    if places:
        table("sources", ("task", "operator", "partition", "from", "to"), places)
        print()
    columns = (
        "task",
        "operator",
        "#head",
        "#keyed state",
        "#cells",
        "#added",
        "#changed",
        "#deleted",
    )
    rows = [
        [
            str(each.task),
            each.operator,
            *(_change(*pair) for pair in (each.head_bytes, each.state_bytes, each.cells)),
            *map(text.count, (each.added, each.changed, each.deleted)),
        ]
        for each in difference.tasks
    ]
    table("tasks", columns, rows)


def _change(old: int, new: int) -> str:
    return text.count(old) if old == new else f"{text.count(old)} -> {text.count(new)}"


# -- set ---------------------------------------------------------------------------------------


def _of_file(file: Path) -> _Places:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"file {file} cannot be used: {error}") from error
    epochs = data["epochs"] if isinstance(data, dict) and "epochs" in data else [{"offsets": data}]
    try:
        found = [each for epoch in epochs for each in epoch["offsets"].items()]
        return {task: dict(places.items()) for task, places in found}
    except (TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f'file {file} has no places: write {{"0.1": {{"PARTITION": PLACE}}}}, or what '
            "'gear checkpoint show --json' prints"
        ) from error


def _assigned(assignments: Sequence[str], task: str, epochs: StoredEpochs) -> dict[str, Any]:
    known = {
        partition
        for manifest in epochs.find()
        for each, places in epochs.places(manifest).items()
        for partition in places
        if str(each) == task
    }
    if not assignments:
        raise ConfigError(f"task {task}: say where to read, as PARTITION=PLACE")
    return dict(_split(each, known) for each in assignments)


def _split(assignment: str, known: set[str]) -> tuple[str, Any]:
    shown = assignment[:_SHOWN_CHARS_MAX]
    if "=" not in assignment:
        raise ConfigError(f"{shown!r} is no PARTITION=PLACE")
    pieces = assignment.split("=")
    splits = [("=".join(pieces[:at]), "=".join(pieces[at:])) for at in range(1, len(pieces))]
    partition, place = next((each for each in reversed(splits) if each[0] in known), splits[0])
    try:
        return partition, json.loads(place)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{shown!r}: the place is no JSON: {error}; write a number as it is, and a text in "
            """quotes, as in '"text"'"""
        ) from error


def _print_planned(
    stored: StoredApplication, planned: Sequence[PlannedPlace], *, apply: bool
) -> None:
    if not planned:
        print(f"application {stored.app_id} reads from there already")
        return
    columns = ("task", "operator", "partition", "after epoch", "from", "to")
    rows = [
        [
            str(each.task),
            each.operator,
            each.partition,
            str(each.epoch),
            _place_text(each.old),
            _place_text(each.new),
        ]
        for each in planned
    ]
    table(f"places of application {stored.app_id}", columns, rows)
    number = text.plural(len(planned), "place")
    if apply:
        print(f"\n{number} set; they count when it is launched again, or another goes on from it")
    else:
        print(f"\n{number} would be set; --apply sets them")


# -- clean -------------------------------------------------------------------------------------


def _stored_applications(place: str) -> list[StoredApplication]:
    """Return all applications in a store, of whatever cluster.

    Raises:
        ConfigError: there is no such store, or it cannot be read.
    """
    store = open_store(place)
    try:
        found = stored_prefixes(store)
    except OSError as error:
        raise ConfigError(f"checkpoint store {place} cannot be read: {error}") from error
    return [StoredApplication(found[prefix], store, prefix) for prefix in sorted(found)]


def _cleaned(stored: StoredApplication, *, apply: bool) -> list[Orphan]:
    with _store_errors(stored):
        needed = needed_files(stored.checkpoints)
        files = find_orphans(stored.checkpoints, stored.prefix, needed)
        if apply:
            for file in files:
                stored.checkpoints.drop(file.location)
    return files


def _print_orphans(files: Sequence[Orphan], *, apply: bool) -> None:
    if not files:
        print("there is nothing to remove")
        return
    rows = [[each.location, text.count(each.size_bytes)] for each in files]
    table("files that no epoch needs", ("location", "#bytes"), rows)
    size = text.plural(sum(each.size_bytes for each in files), "byte")
    done = "removed" if apply else "would be removed; --apply removes them"
    print(f"\n{text.plural(len(files), 'file')}, {size} {done}")


# -- repair ------------------------------------------------------------------------------------


def _refuse_hopeless(stored: StoredApplication, found: SalvagedLog) -> None:
    for region in found.hopeless_regions:
        raise ConfigError(
            f"nothing of region {region} of {stored.prefix} would be left to go on from: bring the "
            "files of its coordinator log back from a copy, or submit the application anew, to "
            "begin from the beginning"
        )


def _repair_values(found: SalvagedLog) -> dict[str, Any]:
    return {
        "damage": [str(each) for each in found.damage],
        "lost_epochs": list(found.lost_epochs),
        "lost_messages": found.lost_messages,
        "epochs": {str(region): epochs for region, epochs in _epochs_left(found).items()},
    }


def _epochs_left(found: SalvagedLog) -> dict[int, list[int]]:
    view = EpochManifests(found.state)
    return {region: [e.epoch for e in view.manifests(region)] for region in view.regions()}


def _repair_lines(stored: StoredApplication, found: SalvagedLog, aside: str) -> Iterator[str]:
    if not found.damage:
        yield f"the coordinator log of {stored.prefix} is whole"
        return
    for damage in found.damage:
        yield f"error: {damage.file}: byte {damage.offset}: {damage.reason}"
    number = found.lost_messages
    messages = "an unknown number of messages" if number is None else text.plural(number, "message")
    yield f"lost: {messages}{_lost_epochs(found)}"
    yield "places set by hand and configuration that were in them must be set again"
    for region, epochs in _epochs_left(found).items():
        yield f"region {region} would go back to epoch {max(epochs)}"
    for region in found.hopeless_regions:
        yield f"region {region} has nothing left to go on from"
    if aside:
        yield f"the log was written anew; its files are kept as they were below {aside}"
    elif not found.hopeless_regions:
        yield "--apply writes the log anew without them, and keeps its files as they are aside"


def _lost_epochs(found: SalvagedLog) -> str:
    if not found.lost_epochs:
        return ", but no epoch that counts"
    by_region = (each.partition("/")[::2] for each in found.lost_epochs)
    return ", with them " + ", ".join(f"epoch {e} of region {region}" for region, e in by_region)
