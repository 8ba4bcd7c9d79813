"""The protocol of a coordinator log, in steps: only its latest opening may append.

The log of an application is a folder of a checkpoint store, whose files are there whole or not at
all. An app master *opens* the log, and of two openings the one of the later launch counts. Files:

- ``open-<opening>``: this opening has begun. It never counts again what an earlier one appends.
  The acknowledgements of this opening are written into it later: its *mark*.
- ``base-<opening>-<serial>``: the state, in place of everything before it.
- ``segment-<opening>-<serial>``: the messages of one append.

The newest base counts, and the segments of its opening that follow it without a gap.

To open: save the marker, *then* list, read what counts, and save it as the opening's first base.
To append: save a segment, *then* list; if there is the marker of a later opening, the append does
not count, and no other will be made; if not, save the mark with the segment's number. To compact:
save a base, list and mark in the same way, and drop what it replaces. To read: list, load the marks
of the newest base's opening and of later ones, *then* list again: each file that a mark has counted
is there, or a later base. So a newest file that is gone is noticed.

Why that is safe, if a listing has every file that was saved before it began and not dropped:
let an append of opening V return normally, and let W be a later opening. The listing of V has
begun before the marker of W was there, and its segment was there before that; so the listing of W,
which begins after its marker is there, has the segment, or a base of V that stands for it. Hence
everything for which `append` returned is in the first base of W; and if W opens normally, so that
at the end there was no marker of a still later opening, in that of each later one by the same
argument. What V appends afterwards is listed by nobody, or does not follow the newest base. An
append that was refused may be in that first base or not; after that nobody can change which. Only
who merely reads may have seen it before, between the marker of W and its first base.

Dropping is safe at any later time: V drops only what comes before a base of its own that a listing
without a later marker has confirmed, so that each later opening has that base or a newer one.

Everything here is a generator of steps; a shell does them, and sends back what came of them or
throws what they raised. So tests can put the steps of two launches in every order.
"""

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from gearpy.core.coordinator.codec import (
    ADVICE,
    CommitMark,
    decode_mark,
    decode_segment,
    encode_mark,
    encode_segment,
)
from gearpy.core.coordinator.log import EPOCH, CoordinatorMessage, CoordinatorState
from gearpy.errors import LogAbsent, LogDamaged, LogSuperseded, SnapshotDamaged, StoreAway

#: A log that is compacted while it is read is read again so often.
_READS_MAX: Final = 100
_Kind: TypeAlias = Literal["open", "base", "segment"]
_KINDS: Final[dict[str, _Kind]] = {"open": "open", "base": "base", "segment": "segment"}
_OPENING: Final = r"(\d{10,})-(\d{4,})-([0-9a-f]{8})"
_NAME: Final = re.compile(rf"(open|base|segment)-{_OPENING}(?:-(\d{{10,}}))?", re.ASCII)

_T = TypeVar("_T")


class Save(Struct, frozen=True):
    """Store a file, durably; it replaces the one that has the name."""

    name: str
    data: bytes


class ListNames(Struct, frozen=True):
    """Return the names of all files."""


class Load(Struct, frozen=True):
    """Return a file; raises `SnapshotDamaged` if it is not there."""

    name: str


class Drop(Struct, frozen=True):
    """Remove a file."""

    name: str


Step: TypeAlias = Save | ListNames | Load | Drop
Steps: TypeAlias = Generator[Step, Any, _T]


def run_steps(steps: Steps[_T], do: Callable[[Step], object]) -> _T:
    """Do steps until there are no more, and return their result.

    Errors of the world that ``do`` raises are for the steps to handle, or are raised from here.
    """
    answer: object = None
    problem: Exception | None = None
    while True:
        try:
            step = steps.send(answer) if problem is None else steps.throw(problem)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return] # It is what they return.
        answer = problem = None
        try:
            answer = do(step)
        except (OSError, SnapshotDamaged) as error:
            problem = error


class Opening(NamedTuple):
    """One time that the log was opened to append to it. Later ones are greater.

    ``number`` counts those of one launch: the app master's, and those of tools after it. Where two
    have chosen the same number at the same time, ``nonce`` decides, which is random.
    """

    launch: int
    number: int
    nonce: str

    def __str__(self) -> str:
        return f"launch {self.launch}, opening {self.number} ({self.nonce})"


class CoordinatorLogFile(NamedTuple):
    """The parsed name of a file. Markers have the serial 0."""

    opening: Opening
    serial: int
    kind: _Kind

    @property
    def name(self) -> str:
        opening = self.opening
        text = f"{self.kind}-{opening.launch:010}-{opening.number:04}-{opening.nonce}"
        return text if self.kind == "open" else f"{text}-{self.serial:010}"


def files_of(names: Iterable[str]) -> list[CoordinatorLogFile]:
    return sorted(filter(None, map(_file_of, names)))


@lru_cache(maxsize=1024)  # The same names are listed at each append.
def _file_of(name: str) -> CoordinatorLogFile | None:
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    kind, launch, number, nonce, serial = found.groups()
    opening = Opening(int(launch), int(number), nonce)
    if (kind == "open") == (serial is None):
        return CoordinatorLogFile(opening, int(serial or 0), _KINDS[kind])
    return None


def newest_launch(names: Iterable[str]) -> int:
    return max((each.opening.launch for each in files_of(names)), default=0)


def files_that_count(names: Iterable[str], *, log: str = "") -> list[CoordinatorLogFile]:
    """Return the newest base and the segments that follow it; empty for a new log."""
    files = [each for each in files_of(names) if each.kind != "open"]
    bases = [each for each in files if each.kind == "base"]
    if not files:
        return []
    if not bases or bases[-1].opening != files[-1].opening:
        opening = files[-1].opening
        first = min(each.serial for each in files if each.opening == opening)
        missing = CoordinatorLogFile(opening, max(first - 1, 1), "base")
        raise missing_file(missing, log, because=files[-1])
    base = bases[-1]
    segments = [each for each in files if each > base]
    for serial, each in enumerate(segments, base.serial + 1):
        if each.serial != serial:
            missing = CoordinatorLogFile(base.opening, serial, "segment")
            raise missing_file(missing, log, because=each)
    return [base, *segments]


def missing_file(file: CoordinatorLogFile, log: str, *, because: CoordinatorLogFile) -> LogDamaged:
    reason = f"it is not there, and {because.name} is"
    if because.kind == "open":
        reason = f"it is not there, and {because.name} says that it was stored"
    return LogDamaged(file=f"{log}/{file.name}", offset=0, reason=reason, fix=ADVICE)


class LogContents(Struct, frozen=True):
    """The contents of a log.

    ``history`` is all messages of the files that count, the oldest first; of the time before the
    base, which is the first of the files, only the state in the base is known.
    """

    names: Sequence[str] = ()  # The last listing begins after all before it was done.
    files: Sequence[CoordinatorLogFile] = ()
    history: Sequence[CoordinatorMessage] = ()
    state: CoordinatorState = field(default_factory=CoordinatorState)


def read_log(log: str) -> Steps[LogContents]:
    """Read the files that count; ``log`` is the folder, for texts.

    If a file was dropped meanwhile, it was replaced: reading begins anew.
    """
    names: Sequence[str] = yield ListNames()
    for _ in range(_READS_MAX):
        try:
            return (yield from _contents(names, log))
        except (SnapshotDamaged, LogDamaged) as error:
            damage, before = error, names
        names = yield ListNames()
        if names == before:
            break
    if isinstance(damage, LogDamaged):
        raise damage
    raise LogDamaged(file=damage.location, offset=0, reason=damage.reason) from damage


def _contents(names: Sequence[str], log: str) -> Steps[LogContents]:
    data: bytes
    # Older openings than that of the newest base say nothing more.
    bases = [each.opening for each in files_of(names) if each.kind == "base"]
    marks = dict[CoordinatorLogFile, CommitMark]()
    for file in files_of(names):
        if file.kind == "open" and (not bases or file.opening >= max(bases)):
            data = yield Load(file.name)
            marks[file] = decode_mark(data, name=file.name, log=log)
    if marks:
        names = yield ListNames()
    files = files_that_count(names, log=log)
    # Less than was acknowledged must not be read.
    newest = files[-1] if files else None
    if newest is not None and CoordinatorLogFile(newest.opening, 0, "open") not in marks:
        raise missing_file(CoordinatorLogFile(newest.opening, 0, "open"), log, because=newest)
    for file, mark in marks.items():
        if newest is None or newest.opening < file.opening:
            if mark.serial:
                base = CoordinatorLogFile(file.opening, mark.base, "base")
                raise missing_file(base, log, because=file)
        elif newest.opening == file.opening and newest.serial < mark.serial:
            missing = CoordinatorLogFile(file.opening, mark.serial, "segment")
            raise missing_file(missing, log, because=file)
    history: list[CoordinatorMessage] = []
    for file in files:
        data = yield Load(file.name)
        history += decode_segment(data, name=file.name, log=log)
    return LogContents(names, files, history, CoordinatorState(history))


class CoordinatorLogWriter:
    """One opening of a log: its app master, or a tool, appends as long as no later one is there.

    A file of which nobody knows whether it was stored is saved again first, under the same name and
    with the same content.

    Invariant: `state` is what a reader finds, if nobody else has opened the log.
    """

    def __init__(
        self, *, log: str, launch: int, nonce: str, segments_max: int, known_launch: int = 0
    ) -> None:
        self.state = CoordinatorState()
        self._log = log
        self._known_launch = known_launch
        self.opening = Opening(launch, 1, nonce)
        self._segments_max = segments_max
        self._last = self._marker
        self._segments = 0  # Their number since the base.
        self._unsettled: tuple[CoordinatorLogFile, bytes, list[CoordinatorMessage]] | None = None
        self._waiting: list[CoordinatorMessage] = []  # Nobody has tried to store these yet.
        self._newer = ""  # The opening that has superseded this one.

    @property
    def _marker(self) -> CoordinatorLogFile:
        return CoordinatorLogFile(self.opening, 0, "open")

    def open(self, *, instead: CoordinatorState | None = None) -> Steps[None]:
        """Open the log; appends of earlier openings do not count from now on.

        It begins with ``instead`` where the files are damaged. Raises `LogAbsent` if a launch is
        known to have opened it and it is gone, `LogSuperseded` if a later launch has opened it, and
        `LogDamaged`.
        """
        names: Sequence[str] = yield ListNames()
        opened = [each.opening.launch for each in files_of(names) if each.kind != "segment"]
        if self._known_launch > max(opened, default=0):
            raise LogAbsent(log=self._log, launch=self._known_launch, found=max(opened, default=0))
        launch = self.opening.launch
        known = [e.opening.number for e in files_of(names) if e.opening.launch == launch]
        self.opening = self.opening._replace(number=max(known, default=0) + 1)
        self._last = self._marker
        self._check(names, is_listed=False)
        yield self._save_mark(CommitMark())
        if instead is None:
            contents = yield from read_log(self._log)
            self._check(contents.names)
            instead = contents.state
        self.state = instead
        yield from self._compact()

    def _save_mark(self, mark: CommitMark) -> Save:
        name = self._marker.name
        return Save(name, encode_mark(mark, name=name))

    def append(self, messages: Sequence[CoordinatorMessage]) -> Steps[None]:
        """Add messages, all or none; they count when this returns.

        Messages that an error has stopped come first. Raises `LogSuperseded` if a later opening is
        there, which decides whether they count, and `StoreAway` if earlier ones are not there at
        present.
        """
        if self._newer:
            raise self._superseded()
        self._waiting += messages
        if self._unsettled is not None:
            yield from self._settle()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._write("segment", waiting)
            yield from self._settle()
        if self._segments >= self._segments_max:
            try:  # An error says nothing about the append: it is left to the next one.
                yield from self._compact()
            except (OSError, LogSuperseded):
                return

    def _compact(self) -> Steps[None]:
        self._write("base", self.state.messages())
        yield from self._settle()

    def _write(self, kind: _Kind, messages: Sequence[CoordinatorMessage]) -> None:
        file = CoordinatorLogFile(self.opening, self._last.serial + 1, kind)
        self._unsettled = (file, encode_segment(messages, name=file.name), list(messages))

    def _settle(self) -> Steps[None]:
        assert self._unsettled is not None
        file, data, messages = self._unsettled
        yield Save(file.name, data)
        names: Sequence[str] = yield ListNames()
        self._check(names)
        base = file.serial if file.kind == "base" else file.serial - self._segments - 1
        epochs = dict.fromkeys(each.key for each in self.state.messages(EPOCH))
        for each in messages:
            if each.type == EPOCH:
                epochs.pop(each.key, None)
                if each.values is not None:
                    epochs[each.key] = None
        yield self._save_mark(CommitMark(file.serial, base, tuple(epochs)))
        self._unsettled, self._last = None, file
        if file.kind == "base":
            self._segments = 0
            for old in files_of(names):
                if old < file and old != self._marker:
                    try:
                        yield Drop(old.name)
                    except OSError:
                        return  # The next base will replace them, too.
        else:
            self._segments += 1
            for each in messages:
                self.state.on_message(each)

    def _check(self, names: Sequence[str], *, is_listed: bool = True) -> None:
        """Refuse to go on if there is a later opening, or what was stored before is away."""
        files = files_of(names)
        if files and files[-1].opening > self.opening:
            self._newer = str(files[-1].opening)
        if self._newer:
            raise self._superseded()
        if is_listed and not {self._marker, self._last} <= {*files}:
            raise StoreAway(f"{self._last.name} is not there any more: bring it back")

    def _superseded(self) -> LogSuperseded:
        return LogSuperseded(log=self._log, opening=str(self.opening), newer=self._newer)
