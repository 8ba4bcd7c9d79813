"""Repair of a damaged coordinator log: finds the readable messages and names the lost ones.

Each message stands for itself, so that damage costs only the messages that it hits. An epoch that
a lost message has deleted must not come back, as sinks may have gone back before it: the mark of
the log says which epochs count.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from gearpy.core.coordinator.codec import ADVICE, CommitMark, Salvaged, decode_mark, salvage_segment
from gearpy.core.coordinator.log import EPOCH, CoordinatorState, draft
from gearpy.core.coordinator.segments import (
    CoordinatorLogFile,
    ListNames,
    Load,
    Opening,
    Steps,
    files_of,
    missing_file,
)
from gearpy.errors import LogDamaged, SnapshotDamaged


class SalvagedLog(Struct, frozen=True, kw_only=True):
    """The readable part of a log.

    ``lost_epochs`` are keys, such as ``0/17``, of epochs that count and cannot be read;
    ``lost_messages`` is None if their number cannot be told.
    """

    damage: tuple[LogDamaged, ...]
    state: CoordinatorState
    lost_epochs: tuple[str, ...]
    lost_messages: int | None
    files: tuple[str, ...]

    @property
    def hopeless_regions(self) -> tuple[int, ...]:
        """Regions that have lost all their epochs: they could only begin from the beginning."""
        left = {_region(each.key) for each in self.state.messages(EPOCH)}
        return tuple(sorted({_region(each) for each in self.lost_epochs} - left))


def salvage_log(log: str) -> Steps[SalvagedLog]:
    """Read the undamaged part of a log that nobody appends to; ``log`` is the folder, for texts."""
    names: Sequence[str] = yield ListNames()
    files = files_of(names)
    marks, found = dict[Opening, CommitMark](), dict[CoordinatorLogFile, Salvaged]()
    damage = dict[CoordinatorLogFile, LogDamaged]()
    for file in files:
        try:
            data: bytes = yield Load(file.name)
            if file.kind == "open":
                marks[file.opening] = decode_mark(data, name=file.name, log=log)
            else:
                found[file] = salvage_segment(data, name=file.name, log=log)
                if (wrong := found[file].damage) is not None:
                    damage[file] = wrong
        except LogDamaged as error:
            damage[file] = error
        except SnapshotDamaged as error:
            damage[file] = LogDamaged(
                file=error.location, offset=0, reason=error.reason, fix=ADVICE
            )
    foreign = [each for each in damage.values() if each.fix != ADVICE]
    if foreign and len(foreign) == len(files):
        raise foreign[0]
    newest = max((opening for opening, mark in marks.items() if mark.serial), default=None)
    whole = [
        each
        for each in found
        if each.kind == "base"
        and found[each].damage is None
        and (newest is None or each.opening == newest)
    ]
    first = max(whole, default=None)
    counting = {each: found[each] for each in sorted(found) if first is None or each >= first}
    missing = list(_missing(counting, marks, files, log))
    begin = min(counting).opening if counting else None
    state = CoordinatorState(each for file in counting.values() for each in file.messages)
    counts = _epochs_that_count(counting, marks, state)
    for message in state.messages(EPOCH):
        if message.key not in counts:
            state.on_message(draft(EPOCH, message.key, None))
    readable = {each.key for each in state.messages(EPOCH)}
    lost = [each.lost for each in counting.values()]
    return SalvagedLog(
        damage=(
            *(error for file, error in damage.items() if begin is None or file.opening >= begin),
            *missing,
        ),
        state=state,
        lost_epochs=tuple(each for each in counts if each not in readable),
        lost_messages=None if missing or None in lost else sum(filter(None, lost)),
        files=tuple(each.name for each in files),
    )


def _missing(
    counting: Mapping[CoordinatorLogFile, Salvaged],
    marks: Mapping[Opening, CommitMark],
    files: Sequence[CoordinatorLogFile],
    log: str,
) -> Iterator[LogDamaged]:
    openings = [opening for opening, mark in marks.items() if mark.serial]
    openings += [each.opening for each in counting]
    if not openings:
        return
    opening = max(openings)
    marker, mark = CoordinatorLogFile(opening, 0, "open"), marks.get(opening, CommitMark())
    there = {each.serial: each for each in counting if each.opening == opening}
    if marker not in files:
        yield missing_file(marker, log, because=there[max(there)])
    bases = [serial for serial, each in there.items() if each.kind == "base"]
    first = max(bases, default=mark.base or max(min(there) - 1, 1))
    for serial in range(first, max([*there, mark.serial]) + 1):
        if serial not in there:
            because = marker if serial <= mark.serial else there[max(there)]
            file = CoordinatorLogFile(opening, serial, "base" if serial == first else "segment")
            yield missing_file(file, log, because=because)


def _epochs_that_count(
    counting: Mapping[CoordinatorLogFile, Salvaged],
    marks: Mapping[Opening, CommitMark],
    state: CoordinatorState,
) -> tuple[str, ...]:
    last = max(counting, default=None)
    openings = [each for each, mark in marks.items() if mark.serial]
    newest = max(openings, default=None)
    if newest is None or (last is not None and last.opening > newest):
        return tuple(each.key for each in state.messages(EPOCH))
    mark = marks[newest]
    keys = dict.fromkeys(mark.epochs)
    for file, salvaged in counting.items():
        if file.opening == newest and file.serial > mark.serial:
            for each in salvaged.messages:
                if each.type == EPOCH and each.values is None:
                    keys.pop(each.key, None)
                elif each.type == EPOCH:
                    keys[each.key] = None
    return tuple(keys)


def _region(key: str) -> int:
    region = key.partition("/")[0]
    return int(region) if region.isdecimal() else -1
