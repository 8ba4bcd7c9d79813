"""Prints what is stored of an application: its epochs, what is in them, whether they are whole."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from gearpy.cli.stored.applications import StoredApplication
from gearpy.cli.terminal import text
from gearpy.cli.terminal.output import print_json, print_lines, table
from gearpy.cluster.checkpoints.tool import (
    EpochContents,
    EpochDifference,
    EpochSummary,
    EpochVerdict,
    StoredEpochs,
    compare,
    plain_place,
    verify,
)
from gearpy.errors import GearpyError
from gearpy.messages.app import SnapshotFile

__all__ = [
    "compare_epochs",
    "list_epochs",
    "place_text",
    "show_epoch",
    "store_errors",
    "verify_epochs",
]


def list_epochs(stored: StoredApplication, *, as_json: bool) -> None:
    """Print the complete epochs of an application.

    Raises:
        GearpyError: its log cannot be read.
    """
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    summaries = [epochs.summary(each) for each in epochs]
    if as_json:
        _print_json(stored, epochs=[asdict(each) for each in summaries])
    elif summaries:
        _print_epochs(stored, summaries)
    else:
        print(f"{stored.prefix} has no complete epoch")


def show_epoch(stored: StoredApplication, epoch: int | None, *, as_json: bool) -> None:
    """Print what is in an epoch of each region that has it; None is the newest.

    Raises:
        GearpyError: there is no such epoch, or the log cannot be read.
    """
    epochs = StoredEpochs(stored.checkpoints, stored.prefix)
    found = [epochs.contents(each) for each in epochs.find(epoch)]
    if as_json:
        _print_json(stored, epochs=[_contents_values(each) for each in found])
        return
    for at, each in enumerate(found):
        if at:
            print()
        _print_contents(each, epochs)


def verify_epochs(stored: StoredApplication, epoch: int | None, *, as_json: bool) -> bool:
    """Print which epochs are whole, and what is wrong with the others.

    Returns:
        Whether nothing is wrong.

    Raises:
        GearpyError: there is no such epoch, or the log cannot be read.
    """
    verdicts = verify(StoredEpochs(stored.checkpoints, stored.prefix), epoch)
    if as_json:
        regions = sorted({each.region for each in verdicts})
        resumes = [{"region": each, "epoch": _resumes(verdicts, each)} for each in regions]
        _print_json(stored, epochs=[asdict(each) for each in verdicts], resumes=resumes)
    else:
        print_lines(_verdict_lines(verdicts))
    return not any(each.is_damaged for each in verdicts)


def compare_epochs(stored: StoredApplication, old: int, new: int, *, as_json: bool) -> None:
    """Print in what two epochs differ.

    Raises:
        GearpyError: there are no such epochs, or a file of them is damaged.
    """
    with store_errors(stored):
        found = compare(StoredEpochs(stored.checkpoints, stored.prefix), old, new)
    if as_json:
        _print_json(stored, regions=[_difference_values(each) for each in found])
        return
    for at, each in enumerate(found):
        if at:
            print()
        _print_difference(each)


@contextmanager
def store_errors(stored: StoredApplication) -> Iterator[None]:
    """Tell an error of the store as one of ours."""
    try:
        yield
    except OSError as error:
        raise GearpyError(f"{stored.prefix}: the checkpoint store fails: {error}") from error


def place_text(place: Any) -> str:
    """Return a place as people read it, and as they write it."""
    return "finished" if place is None else json.dumps(plain_place(place), ensure_ascii=False)


def _print_json(stored: StoredApplication, **values: Any) -> None:
    print_json({"app_id": stored.app_id, "prefix": stored.prefix, **values})


# -- list and show ---------------------------------------------------------------------------


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
    return text.duration(max(0, time.time_ns() // 1_000_000 - epoch.stored_ms))


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
    table("files", ("location", "#bytes", "tasks"), [_file_row(each) for each in contents.files])


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
    by_hand = contents.overridden
    columns = ["task", "operator", "partition", "place", *(["set by hand"] if by_hand else [])]
    rows = [
        [
            str(task),
            epochs.operator(task),
            name,
            place_text(place),
            place_text(by_hand[task][name]) if name in by_hand.get(task, {}) else "",
        ][: len(columns)]
        for task, places in contents.places.items()
        for name, place in places.items()
    ]
    if rows:
        print()
        table("sources", columns, rows)


def _file_row(file: SnapshotFile) -> list[str]:
    return [file.location, text.count(file.size_bytes), ", ".join(map(str, file.tasks))]


def _contents_values(contents: EpochContents) -> dict[str, Any]:
    return {
        **asdict(contents.summary),
        "offsets": _places_values(contents.places),
        "overrides": _places_values(contents.overridden),
        "tasks": [{**asdict(each), "task": str(each.task)} for each in contents.tasks],
        "files": [_file_values(each) for each in contents.files],
        "damage": contents.damage,
    }


def _file_values(file: SnapshotFile) -> dict[str, Any]:
    return {
        "location": file.location,
        "sha256": file.sha256,
        "tasks": [str(task) for task in file.tasks],
        "size_bytes": file.size_bytes,
    }


def _places_values(places: Any) -> dict[str, Any]:
    return {
        str(task): {name: plain_place(place) for name, place in by_name.items()}
        for task, by_name in places.items()
    }


# -- verify and diff -------------------------------------------------------------------------


def _resumes(verdicts: Sequence[EpochVerdict], region: int) -> int | None:
    """Return the epoch that a restart goes back to; None: the beginning."""
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
        [str(each.task), each.operator, each.partition, place_text(each.old), place_text(each.new)]
        for each in difference.places
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


def _difference_values(difference: EpochDifference) -> dict[str, Any]:
    return {
        "region": difference.region,
        "old": difference.old,
        "new": difference.new,
        "offsets": [
            {
                **asdict(each),
                "task": str(each.task),
                "old": plain_place(each.old),
                "new": plain_place(each.new),
            }
            for each in difference.places
        ],
        "tasks": [{**asdict(each), "task": str(each.task)} for each in difference.tasks],
    }
