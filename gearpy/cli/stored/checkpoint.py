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
from gearpy.cli.terminal.options import Given, StoredAppId, argument, option, storing
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
    int | None, argument(metavar="[EPOCH]", min=1, help="Default: the newest.")
]
_Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Do it; without this, only what would be done is told.")
]
_SHOWN_CHARS_MAX: Final = 100

#: Places by task and partition, as JSON has them.
_Places: TypeAlias = Mapping[str, Mapping[str, Any]]


@commands.command("list", epilog=HELP)
@storing
def list_(given: Given, app: StoredAppId) -> None:
    """List the complete epochs of an application, the oldest first."""
    stored = find_stored(given, app)
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    summaries = [epochs.summary(each) for each in epochs]
    if given.as_json:
        _print_json(stored, epochs=plain(summaries))
    elif summaries:
        cut = ["cut"] if any(each.cut_time_ms is not None for each in summaries) else []
        columns = ["#region", "#epoch", "#attempt", "clock", *cut, "#files", "#bytes", "stored"]
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
        table(f"epochs of {stored.prefix}", [*columns, "#age", ""], rows)
    else:
        print(f"{stored.prefix} has no complete epoch")


@commands.command(epilog=HELP)
@storing
def show(given: Given, app: StoredAppId, epoch: _Epoch = None) -> None:
    """Show what is in an epoch: where its sources are, its tasks with sizes, its files."""
    stored = find_stored(given, app)
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    found = [epochs.contents(each) for each in epochs.find(epoch)]
    if given.as_json:
        values = [plain(each) for each in found]
        for each in values:
            for file in each["files"]:
                del file["partition"]
        _print_json(stored, epochs=[{**each.pop("summary"), **each} for each in values])
        return
    for at, each in enumerate(found):
        if at:
            print()
        print_lines(_summary_lines(each.summary))
        by_hand = each.overrides
        columns = ["task", "operator", "partition", "place", *(["set by hand"] if by_hand else [])]
        rows = [
            [
                str(task),
                epochs.operator(task),
                name,
                _place_text(place),
                _place_text(by_hand[task][name]) if name in by_hand.get(task, {}) else "",
            ][: len(columns)]
            for task, places in each.offsets.items()
            for name, place in places.items()
        ]
        if rows:
            print()
            table("sources", columns, rows)
        tasks = [
            [str(one.task), one.operator, text.count(one.head_bytes), text.count(one.state_bytes)]
            for one in each.tasks
        ]
        print()
        if each.damage:
            print_lines([f"error: {each.damage}", "sizes of tasks are not known"])
        else:
            table("tasks", ("task", "operator", "#head", "#keyed state"), tasks)
        print()
        files = [
            [one.location, text.count(one.size_bytes), ", ".join(map(str, one.tasks))]
            for one in each.files
        ]
        table("files", ("location", "#bytes", "tasks"), files)


@commands.command(epilog=HELP)
@storing
def verify(
    given: Given,
    app: StoredAppId,
    epoch: Annotated[int | None, argument(metavar="[EPOCH]", min=1, help="Default: all.")] = None,
) -> None:
    """Read all files of an application's epochs; exit code 1 if one is missing or damaged."""
    stored = find_stored(given, app)
    verdicts = verified(StoredEpochs(stored.checkpoints, stored.prefix), epoch)
    if given.as_json:
        regions = sorted({each.region for each in verdicts})
        resumes = [{"region": each, "epoch": _resumes(verdicts, each)} for each in regions]
        _print_json(stored, epochs=plain(verdicts), resumes=resumes)
    else:
        for each in verdicts:
            verdict = "damaged" if each.damage else "whole"
            files = text.plural(each.files, "file")
            if each.segments:
                files += f", {text.plural(each.segments, 'segment')} of the changelog"
            lines = [f"epoch {each.epoch} of region {each.region}: {verdict}, {files}"]
            lines += [f"error: {damage}" for damage in (*each.damage, *each.changelog_damage)]
            lines += ["a restart rebuilds it from the changelog"] * each.is_rebuildable
            print_lines(lines)
        for region in sorted({each.region for each in verdicts if each.damage}):
            epoch = _resumes(verdicts, region)
            where = "begin from the beginning" if epoch is None else f"go back to epoch {epoch}"
            print_lines([f"region {region} would {where}"])
    if any(each.is_damaged for each in verdicts):
        raise typer.Exit(FAILED)


@commands.command(epilog=HELP)
@storing
def diff(
    given: Given,
    app: StoredAppId,
    old: Annotated[int, argument(metavar="EPOCH", min=1)],
    new: Annotated[int, argument(metavar="EPOCH", min=1)],
) -> None:
    """Tell in what two epochs differ: places of sources, sizes and cells of state."""
    stored = find_stored(given, app)
    with _store_errors(stored):
        found = compare(StoredEpochs(stored.checkpoints, stored.prefix), old, new)
    if given.as_json:
        _print_json(stored, regions=plain(found))
        return
    counts = ("#head", "#keyed state", "#cells", "#added", "#changed", "#deleted")
    for at, each in enumerate(found):
        if at:
            print()
        print(f"region {each.region}, from epoch {each.old} to {each.new}\n")
        if each.offsets:
            places = [
                [str(one.task), one.operator, one.partition, *map(_place_text, (one.old, one.new))]
                for one in each.offsets
            ]
            table("sources", ("task", "operator", "partition", "from", "to"), places)
            print()
        rows = [
            [
                str(one.task),
                one.operator,
                *(_change(*pair) for pair in (one.head_bytes, one.state_bytes, one.cells)),
                *map(text.count, (one.added, one.changed, one.deleted)),
            ]
            for one in each.tasks
        ]
        table("tasks", ("task", "operator", *counts), rows)


@commands.command("set", epilog=HELP)
@storing
def set_offsets(
    given: Given,
    app: StoredAppId,
    task: Annotated[str | None, argument(metavar="[TASK]", help="Such as 0.1; see 'show'.")] = None,
    places: Annotated[
        list[str] | None,
        argument(
            metavar="[PARTITION=PLACE]...",
            help="A place is JSON, of the kind that 'show' has there.",
        ),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        option(
            "--from",
            metavar="FILE",
            help='Places of several tasks, as JSON: {"0.1": {"PARTITION": PLACE}}; or what '
            "'show --json' has printed, with other places in it.",
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
    app: Annotated[str | None, argument(metavar="[ID]", help="Default: all stopped.")] = None,
    *,
    apply: _Apply = False,
) -> None:
    """Remove files that no epoch needs any more, as crashes leave behind."""
    config = given.config()
    if app is not None:
        applications = [find_stored(given, app, config)]
    else:
        place = given.checkpoints or config.checkpoint.folder
        store = open_store(place)
        try:
            prefixes = stored_prefixes(store)
        except OSError as error:
            raise ConfigError(f"checkpoint store {place} cannot be read: {error}") from error
        applications = [StoredApplication(prefixes[each], store, each) for each in sorted(prefixes)]
    found, passed = dict[StoredApplication, list[Orphan]](), dict[StoredApplication, str]()
    for stored in applications:
        try:
            # The log lacks yet what it writes at this moment.
            _refuse_while_running(config, stored, STOP_FIRST)
            with _store_errors(stored):
                needed = needed_files(stored.checkpoints)
                found[stored] = find_orphans(stored.checkpoints, stored.prefix, needed)
                for file in found[stored] if apply else ():
                    stored.checkpoints.drop(file.location)
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
    orphans = [each for files in found.values() for each in files]
    if not orphans:
        print("there is nothing to remove")
        return
    rows = [[each.location, text.count(each.size_bytes)] for each in orphans]
    table("files that no epoch needs", ("location", "#bytes"), rows)
    size = text.plural(sum(each.size_bytes for each in orphans), "byte")
    done = "removed" if apply else "would be removed; --apply removes them"
    print(f"\n{text.plural(len(orphans), 'file')}, {size} {done}")


@commands.command(epilog=HELP)
@storing
def drop(given: Given, app: StoredAppId, *, apply: _Apply = False) -> None:
    """Remove everything that is stored of a stopped application: nothing can go on from it."""
    config = given.config()
    stored = find_stored(given, app, config)
    _refuse_while_running(config, stored, STOP_FIRST)
    with _store_errors(stored):
        check_unused(stored.checkpoints, stored.prefix)
        files = len(stored.checkpoints.names(stored.prefix))
        if apply:
            stored.checkpoints.drop_all(stored.prefix)
    done = "removed" if apply else "would be removed; --apply removes them"
    given.answer(
        {**_of(stored), "applied": apply, "files": files},
        f"{stored.prefix}: {text.plural(files, 'file')} {done}",
    )


@commands.command(epilog=HELP)
@storing
def repair(given: Given, app: StoredAppId, *, apply: _Apply = False) -> None:
    """Name the losses of a damaged coordinator log, and write it anew without them.

    Exit code 1 if it is damaged and stays so.
    """
    config = given.config()
    stored = find_stored(given, app, config)
    found, aside = salvage(stored.checkpoints, stored.prefix), ""
    if apply and found.damage:
        for region in found.hopeless_regions:
            raise ConfigError(
                f"nothing of region {region} of {stored.prefix} would be left to go on from: bring "
                "the files of its coordinator log back from a copy, or submit the application "
                "anew, to begin from the beginning"
            )
        now_ms, messages = wall_ms(), found.state.messages()
        refuse_while_running(config, stored, messages, now_ms=now_ms, advice=STOP_FIRST)
        aside = repair_log(
            stored.checkpoints, stored.prefix, found, source=SOURCE, wall_ms=lambda: now_ms
        )
    if given.as_json:
        _print_json(
            stored,
            applied=bool(aside),
            damage=[str(each) for each in found.damage],
            lost_epochs=list(found.lost_epochs),
            lost_messages=found.lost_messages,
            epochs={str(region): epochs for region, epochs in _epochs_left(found).items()},
            aside=aside,
        )
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


def _age(epoch: EpochSummary) -> str:
    return text.duration(max(0, wall_ms() - epoch.stored_ms))


def _summary_lines(epoch: EpochSummary) -> Iterator[str]:
    newest = ", the newest" if epoch.newest else ""
    yield f"epoch {epoch.epoch} of region {epoch.region}, attempt {epoch.attempt}{newest}"
    yield f"  clock   {text.watermark(epoch.clock_ms)}"
    if epoch.cut_time_ms is not None:
        yield f"  cut     {text.watermark(epoch.cut_time_ms)}"
    yield f"  stored  {text.moment(epoch.stored_ms)}, {_age(epoch)} ago"
    size = text.plural(epoch.size_bytes, "byte")
    yield f"  size    {size} in {text.plural(epoch.files, 'file')}"


# -- verify and diff ---------------------------------------------------------------------------


def _resumes(verdicts: Sequence[EpochVerdict], region: int) -> int | None:
    whole = [each.epoch for each in verdicts if each.region == region and each.is_usable]
    return max(whole, default=None)


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
    found = {}
    for assignment in assignments:
        shown = assignment[:_SHOWN_CHARS_MAX]
        if "=" not in assignment:
            raise ConfigError(f"{shown!r} is no PARTITION=PLACE")
        # A name may have an equals sign: a known one counts, the longest first.
        parts = assignment.split("=")
        splits = [("=".join(parts[:at]), "=".join(parts[at:])) for at in range(1, len(parts))]
        partition, place = next((each for each in reversed(splits) if each[0] in known), splits[0])
        try:
            found[partition] = json.loads(place)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{shown!r}: the place is no JSON: {error}; write a number as it is, and a text in "
                """quotes, as in '"text"'"""
            ) from error
    return found


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


# -- repair ------------------------------------------------------------------------------------


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
    epochs = ", but no epoch that counts"
    if found.lost_epochs:
        by_region = (each.partition("/")[::2] for each in found.lost_epochs)
        named = ", ".join(f"epoch {epoch} of region {region}" for region, epoch in by_region)
        epochs = f", with them {named}"
    yield f"lost: {messages}{epochs}"
    yield "places set by hand and configuration that were in them must be set again"
    for region, left in _epochs_left(found).items():
        yield f"region {region} would go back to epoch {max(left)}"
    for region in found.hopeless_regions:
        yield f"region {region} has nothing left to go on from"
    if aside:
        yield f"the log was written anew; its files are kept as they were below {aside}"
    elif not found.hopeless_regions:
        yield "--apply writes the log anew without them, and keeps its files as they are aside"
