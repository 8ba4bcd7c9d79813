"""The complete epochs of one region, and which files nobody needs any more.

Epochs share files: one stores what has changed since the one before. So a file is garbage only
when neither an epoch that is kept lists it nor tasks that run may go on from it.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from gearpy.core.epoch.epochs import Manifest
from gearpy.ids import MIN_MS, ExecutorId
from gearpy.messages.app import EpochStored, SnapshotFile


class EpochHistory:
    """The complete epochs of a region: the newest one, and all that are kept.

    Invariant: what a relaunched app master would go back to, the newest *stored* epoch, and all
    that are newer are kept; so is the newest stored one without a file that is known to be damaged.
    A file is given out when the last epoch that lists it goes, once.
    """

    def __init__(self, *, retained: int, manifests: Iterable[Manifest] = ()) -> None:
        assert retained >= 1, retained
        self._retained = retained
        self._damaged: set[str] = set()
        self.kept: frozenset[int] = frozenset()  #: These stay whatever comes after them.
        self._manifests = sorted(manifests, key=lambda each: each.epoch)
        self._stored_epoch = self._manifests[-1].epoch if self._manifests else 0
        self._listed = Counter(f.location for each in self._manifests for f in each.snapshots)

    @property
    def newest(self) -> Manifest | None:
        return self._manifests[-1] if self._manifests else None

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        return tuple(self._manifests)

    @property
    def clock_ms(self) -> int:
        return self._manifests[-1].clock_ms if self._manifests else MIN_MS

    @property
    def cut_time_ms(self) -> int:
        cuts = (each.cut_time_ms for each in self._manifests)
        return max((each for each in cuts if each is not None), default=MIN_MS)

    @property
    def unstored(self) -> Manifest | None:
        newest = self.newest
        return newest if newest is not None and newest.epoch > self._stored_epoch else None

    def needs(self, file: SnapshotFile) -> bool:
        return file.location in self._listed

    def listing(self, location: str) -> list[Manifest]:
        return [
            each
            for each in self._manifests
            if any(file.location == location for file in each.snapshots)
        ]

    @property
    def newest_whole(self) -> Manifest | None:
        stored = (each for each in reversed(self._manifests) if each.epoch <= self._stored_epoch)
        return next(
            (
                each
                for each in stored
                if not any(file.location in self._damaged for file in each.snapshots)
            ),
            None,
        )

    def on_damage(self, location: str) -> bool:
        """Note that a file is damaged, though no restart has needed it yet; tell if that is new."""
        if location not in self._listed or location in self._damaged:
            return False
        self._damaged.add(location)
        return True

    def on_complete(self, manifest: Manifest) -> None:
        assert self.unstored is None, self.unstored
        assert self.newest is None or manifest.epoch > self.newest.epoch, manifest.epoch
        self._manifests.append(manifest)
        self._listed.update(file.location for file in manifest.snapshots)

    def on_stored(self, epoch: int) -> tuple[int, ...]:
        """Note that a manifest is stored durably; return the epochs that may be discarded."""
        self._stored_epoch = max(self._stored_epoch, epoch)
        stored = [each.epoch for each in self._manifests if each.epoch <= self._stored_epoch]
        whole = self.newest_whole
        staying = self.kept if whole is None else self.kept | {whole.epoch}
        return tuple(each for each in stored[: -self._retained] if each not in staying)

    def discard(self, epochs: Collection[int]) -> list[SnapshotFile]:
        gone = [each for each in self._manifests if each.epoch in epochs]
        self._manifests = [each for each in self._manifests if each.epoch not in epochs]
        files = {file.location: file for each in gone for file in each.snapshots}
        self._listed.subtract(file.location for each in gone for file in each.snapshots)
        self._listed = +self._listed  # Those at 0 go.
        self._damaged &= self._listed.keys()
        return [file for file in files.values() if not self.needs(file)]


class AttemptFiles:
    """The files that executors have told of in one attempt, until an epoch lists them.

    A file of an epoch that was given up may be one that its tasks go on from, and the next epochs
    list.

    Invariant: each file that was told of is listed by an epoch, awaits one, or is given out once.
    """

    def __init__(self, base: Iterable[SnapshotFile]) -> None:
        self._known = {file.location for file in base}
        self._waiting: dict[str, SnapshotFile] = {}
        self._told: dict[ExecutorId, int] = {}  # The newest epoch of each.
        self._is_over = False

    def on_stored(self, message: EpochStored) -> list[SnapshotFile]:
        """Note the files that an executor reports; return the files that come too late."""
        if message.epoch <= self._told.get(message.executor_id, 0):
            return []  # Told again: the same files, or some that it has given up since.
        self._told[message.executor_id] = message.epoch
        new = {
            file.location: file for file in message.snapshots if file.location not in self._known
        }
        self._known |= new.keys()
        if self._is_over:
            return list(new.values())
        self._waiting |= new
        return []

    def on_complete(self, manifest: Manifest) -> list[SnapshotFile]:
        self._known = {file.location for file in manifest.snapshots}
        waiting, self._waiting = self._waiting, {}
        return [file for file in waiting.values() if file.location not in self._known]

    def on_over(self) -> list[SnapshotFile]:
        self._is_over = True
        waiting, self._waiting = self._waiting, {}
        return list(waiting.values())
