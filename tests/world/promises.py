"""Promises between the roles of a cluster, checked in every letter of a simulated one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from gearpy.core.coordinator.views import EpochManifests
from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import MIN_MS, SessionId
from gearpy.messages.app import BeginEpoch, CommitEpoch, LaunchTasks
from gearpy.messages.cluster import LaunchExecutor
from gearpy.messages.peer import Letter
from gearpy.messages.versions import NEWEST
from gearpy.storage.checkpoints import Checkpoints
from gearpy.storage.coordinator_log import read_log
from gearpy.wire.codec import decode_control

_COORDINATOR: Final = "/coordinator/"
#: How letters begin that promise something; most others need not be read.
_BEGINNINGS: Final = tuple(
    msgspec.msgpack.encode((NEWEST, each.__name__, None))[:-1]
    for each in (LaunchExecutor, LaunchTasks, BeginEpoch, CommitEpoch)
)


@dataclass(slots=True)
class _Attempt:
    region: int
    sessions: set[SessionId] = field(default_factory=set)
    begun: dict[int, int | None] = field(default_factory=dict)  #: Epochs, and their cut times.


class LetterPromises:
    """Notes every letter of an app master that breaks a promise, even after failures.

    An app master that was given up may still write, so what one promises holds within each of its
    launches. The upper half of an attempt's number is the launch.
    """

    def __init__(self, stored: Checkpoints) -> None:
        self.broken: list[str] = []
        self._stored = stored
        self._attempts: dict[int, _Attempt] = {}
        self._cut_times: dict[tuple[int, int], int] = {}  # By launch and region.
        self._launches: dict[int, int] = {}  # The newest one of each app master; -1: of the master.
        self._logs: dict[str, bytes] = {}  # Files of coordinator logs, as they were last read.
        self._manifests: Sequence[Manifest] = ()  # And what they say.

    def on_letter(self, letter: Letter) -> None:
        if letter.answers or not letter.body.startswith(_BEGINNINGS):
            return
        message: Any = decode_control(letter.body)
        match message:
            case LaunchExecutor():
                self._on_launch(message)
            case LaunchTasks():
                self._on_tasks(message)
            case BeginEpoch():
                self._on_begin(message)
            case CommitEpoch():
                complete = [(each.attempt, each.epoch) for each in self.manifests()]
                is_complete = (message.attempt, message.epoch) in complete
                self._check(is_complete, f"epoch {message.epoch} was committed too early")

    def _check(self, holds: bool, what: str) -> None:  # noqa: FBT001 - as `assert`
        if not holds:
            self.broken.append(what)

    def _on_launch(self, message: LaunchExecutor) -> None:
        who = message.executor_id if message.executor_id < 0 else message.app_master
        before = self._launches.get(who, -1)
        self._check(message.launch > before, f"launch {message.launch} came after {before}")
        self._launches[who] = message.launch

    def _on_tasks(self, message: LaunchTasks) -> None:
        attempt = self._attempts.setdefault(message.attempt, _Attempt(message.region))
        attempt.sessions |= {each.session for each in message.tasks}
        self._check(attempt.region == message.region, f"{message.attempt} is of two regions")
        for number, other in self._attempts.items():
            if number < message.attempt:
                is_later = max(other.sessions) < min(attempt.sessions)
                self._check(is_later, f"sessions of attempt {message.attempt} were used before")
        if message.attempt >> 32 == max(self._attempts) >> 32:  # Else its files may be deleted.
            self._check_begin_of(message)

    def _check_begin_of(self, message: LaunchTasks) -> None:
        """Check the files that an attempt goes on from: they are there, of one complete epoch."""
        manifests = [each for each in self.manifests() if each.region == message.region]
        wanted = {each.location for each in message.snapshots}
        self._check(wanted <= {*self._stored.names("")}, f"some of {wanted} are deleted")
        self._check(
            not manifests or any(wanted <= {f.location for f in m.snapshots} for m in manifests),
            f"{wanted} are of no complete epoch",
        )
        newest = max((each.epoch for each in manifests), default=0)
        self._check(message.epoch > newest, f"epoch {message.epoch} comes again after {newest}")

    def _on_begin(self, message: BeginEpoch) -> None:
        attempt, cut_ms = self._attempts[message.attempt], message.cut_time_ms
        if message.epoch in attempt.begun:
            is_same = attempt.begun[message.epoch] == cut_ms
            self._check(is_same, f"epoch {message.epoch} is cut at two times")
            return
        key = message.attempt >> 32, attempt.region
        begun = [
            epoch
            for number, each in self._attempts.items()
            if (number >> 32, each.region) == key
            for epoch in each.begun
        ]
        newest = max(begun, default=0)
        self._check(message.epoch > newest, f"epoch {message.epoch} begins after {newest}")
        attempt.begun[message.epoch] = cut_ms
        if cut_ms is not None:
            before_ms = self._cut_times.get(key, MIN_MS)
            self._check(cut_ms > before_ms, f"cut time {cut_ms} comes after {before_ms}")
            self._cut_times[key] = cut_ms

    def manifests(self) -> Sequence[Manifest]:
        """Return the complete epochs that an app master would find now.

        Logs that are as they were the last time are not read again.
        """
        names = [name for name in self._stored.names("") if _COORDINATOR in name]
        logs = {name: self._stored.load(name) for name in names}
        if logs != self._logs:
            self._manifests = [*self._found(names)]
            self._logs = logs
        return self._manifests

    def _found(self, names: Sequence[str]) -> Iterator[Manifest]:
        for prefix in sorted({name.partition(_COORDINATOR)[0] for name in names}):
            view = EpochManifests(read_log(self._stored, prefix).state)
            for region in view.regions():
                yield from view.manifests(region)
