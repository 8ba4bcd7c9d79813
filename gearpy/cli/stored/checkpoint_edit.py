"""Changes what is stored of applications, or tells what it would change."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from gearpy.cli.stored.applications import (
    OR_FORCE,
    STOP_FIRST,
    StoredApplication,
    refuse_while_running,
)
from gearpy.cli.stored.checkpoint import place_text, store_errors
from gearpy.cli.terminal import text
from gearpy.cli.terminal.output import print_hints, print_json, print_lines, table
from gearpy.cluster.checkpoints.changes import (
    SOURCE,
    Orphan,
    PlannedPlace,
    check_unused,
    find_orphans,
    needed_files,
    plan_places,
    set_places,
    stored_prefixes,
)
from gearpy.cluster.checkpoints.tool import StoredEpochs, open_store, plain_place
from gearpy.config.schema import Config
from gearpy.core.coordinator.log import EpochManifests
from gearpy.core.coordinator.repair import SalvagedLog
from gearpy.errors import ConfigError
from gearpy.storage.coordinator_log import read_log, repair_log, salvage

__all__ = ["clean_stored", "drop_stored", "repair_stored", "set_sources", "stored_applications"]

_SHOWN_CHARS_MAX: Final = 100

#: Places by task and partition, as JSON has them.
_Places = Mapping[str, Mapping[str, Any]]


# -- set -------------------------------------------------------------------------------------


def set_sources(
    config: Config,
    stored: StoredApplication,
    *,
    task: str | None,
    assignments: Sequence[str],
    file: Path | None,
    apply: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Let the next launch read its sources from other places; print them.

    Args:
        config: says where the master is.
        stored: the application.
        task: such as ``0.1``, for the assignments.
        assignments: ``PARTITION=PLACE``, with places as JSON.
        file: has places of several tasks, instead.
        apply: write them.
        force: also if it runs.
        as_json: print JSON.

    Raises:
        ConfigError: a place cannot be understood or used, or the application runs.
        GearpyError: the log cannot be read, or not be written.
    """
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    if (file is None) == (task is None):
        raise ConfigError("name a task and PARTITION=PLACE, or a file with --from, and not both")
    wanted = _of_file(file) if file else {task or "": _assigned(assignments, task or "", epochs)}
    planned = plan_places(epochs, wanted)
    if apply and planned:
        now_ms = _now_ms()
        if not force:
            _refuse_while_running(config, stored, OR_FORCE)
        set_places(epochs, planned, wall_ms=lambda: now_ms)
    if as_json:
        values = [_planned_values(each) for each in planned]
        print_json({**_of(stored), "applied": apply, "offsets": values})
    else:
        _print_planned(stored, planned, apply=apply)


def _of_file(file: Path) -> _Places:
    """Return the places of a file, which may be what ``show --json`` has printed."""
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
    """Return partition and place; both may have ``=`` in them."""
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


def _planned_values(planned: PlannedPlace) -> dict[str, Any]:
    return {
        **asdict(planned),
        "task": str(planned.task),
        "old": plain_place(planned.old),
        "new": plain_place(planned.new),
    }


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
            place_text(each.old),
            place_text(each.new),
        ]
        for each in planned
    ]
    table(f"places of application {stored.app_id}", columns, rows)
    number = text.plural(len(planned), "place")
    if apply:
        print(f"\n{number} set; they count when it is launched again, or another goes on from it")
    else:
        print(f"\n{number} would be set; --apply sets them")


# -- clean and drop --------------------------------------------------------------------------


def stored_applications(place: str) -> list[StoredApplication]:
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


def clean_stored(
    config: Config,
    applications: Sequence[StoredApplication],
    *,
    apply: bool,
    as_json: bool,
) -> None:
    """Remove the files of stopped applications that no epoch needs; print them.

    Those that run, or have no log, are passed over; if there is only one, that is an error.

    Raises:
        ConfigError: the only one cannot be cleaned.
        GearpyError: the log of an application in the store cannot be read.
    """
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
    if as_json:
        values = [*_cleaned_values(found, passed)]
        print_json({"applied": apply, "applications": values})
        return
    print_hints(f"{stored.prefix} is passed over: {why}" for stored, why in passed.items())
    _print_orphans([each for files in found.values() for each in files], apply=apply)


def _cleaned(stored: StoredApplication, *, apply: bool) -> list[Orphan]:
    with store_errors(stored):
        needed = needed_files(stored.checkpoints)
        files = find_orphans(stored.checkpoints, stored.prefix, needed)
        if apply:
            for file in files:
                stored.checkpoints.drop(file.location)
    return files


def _cleaned_values(
    found: Mapping[StoredApplication, Sequence[Orphan]], passed: Mapping[StoredApplication, str]
) -> Iterator[dict[str, Any]]:
    for stored, files in found.items():
        orphans = [each._asdict() for each in files]
        yield {**_of(stored), "files": orphans, "passed_over": ""}
    for stored, why in passed.items():
        yield {**_of(stored), "files": [], "passed_over": why}


def _print_orphans(files: Sequence[Orphan], *, apply: bool) -> None:
    if not files:
        print("there is nothing to remove")
        return
    rows = [[each.location, text.count(each.size_bytes)] for each in files]
    table("files that no epoch needs", ("location", "#bytes"), rows)
    size = text.plural(sum(each.size_bytes for each in files), "byte")
    done = "removed" if apply else "would be removed; --apply removes them"
    print(f"\n{text.plural(len(files), 'file')}, {size} {done}")


def drop_stored(config: Config, stored: StoredApplication, *, apply: bool, as_json: bool) -> None:
    """Remove everything of an application; print how much that is.

    Raises:
        ConfigError: it runs, or another application needs it.
        GearpyError: the log of another application in the store cannot be read.
    """
    _refuse_while_running(config, stored, STOP_FIRST)
    with store_errors(stored):
        check_unused(stored.checkpoints, stored.prefix)
        files = len(stored.checkpoints.names(stored.prefix))
        if apply:
            stored.checkpoints.drop_all(stored.prefix)
    if as_json:
        print_json({**_of(stored), "applied": apply, "files": files})
        return
    done = "removed" if apply else "would be removed; --apply removes them"
    print(f"{stored.prefix}: {text.plural(files, 'file')} {done}")


# -- repair ----------------------------------------------------------------------------------


def repair_stored(config: Config, stored: StoredApplication, *, apply: bool, as_json: bool) -> bool:
    """Write the coordinator log of an application anew without what is damaged; print what is lost.

    All files of the log are kept as they were, aside.

    Returns:
        Whether the log is whole now.

    Raises:
        ConfigError: the application runs, or nothing would be left that it could go on from.
        GearpyError: another version of gearpy has written the log, or the store cannot be used.
    """
    found, aside = salvage(stored.checkpoints, stored.prefix), ""
    if apply and found.damage:
        _refuse_hopeless(stored, found)
        now_ms, messages = _now_ms(), found.state.messages()
        refuse_while_running(config, stored, messages, now_ms=now_ms, advice=STOP_FIRST)
        aside = repair_log(
            stored.checkpoints,
            stored.prefix,
            found,
            source=SOURCE,
            wall_ms=lambda: now_ms,
        )
    if as_json:
        print_json({**_of(stored), "applied": bool(aside), **_repair_values(found), "aside": aside})
    else:
        print_lines(_repair_lines(stored, found, aside))
    return not found.damage or bool(aside)


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


# --------------------------------------------------------------------------------------------


def _refuse_while_running(config: Config, stored: StoredApplication, advice: str) -> None:
    messages = read_log(stored.checkpoints, stored.prefix).history
    refuse_while_running(config, stored, messages, now_ms=_now_ms(), advice=advice)


def _of(stored: StoredApplication) -> dict[str, Any]:
    return {"app_id": stored.app_id, "prefix": stored.prefix}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
