"""Epochs that stay although newer ones are complete: for savepoints, and those before a failure."""

from collections.abc import Mapping

from msgspec import Struct


class BeforeFailure(Struct, frozen=True):
    """A task has failed in the second of these epochs, and had gone on from the first."""

    after: int
    epoch: int


class KeptEpochs:
    """Gives names to epochs of an application that goes on, and says which ones stay.

    A savepoint is made of the next epoch of each region that begins to end after it was asked for.
    What is not made when the app master is launched again must be asked for again.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, dict[int, int]] = {}  # Name -> region -> the first epoch that does.
        self._made: dict[str, dict[int, int]] = {}
        self._failures: dict[int, BeforeFailure] = {}  # The last one of each region.

    def is_wanted(self, name: str) -> bool:
        return name in self._wanted

    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(self._wanted)

    def begin(self, name: str, running: Mapping[int, int], ended: Mapping[int, int]) -> None:
        self._wanted[name] = dict(running)
        self._made[name] = dict(ended)

    def on_stored(self, region: int, epoch: int) -> dict[str, dict[int, int]]:
        for name, regions in self._wanted.items():
            if region in regions and epoch >= regions[region]:
                self._made[name].setdefault(region, epoch)
        return self.whole()

    def whole(self) -> dict[str, dict[int, int]]:
        return {
            name: self._made[name]
            for name, regions in self._wanted.items()
            if regions.keys() <= self._made[name].keys()
        }

    def on_named(self, name: str) -> None:
        self._wanted.pop(name, None)
        self._made.pop(name, None)

    def on_failure(self, region: int, failure: BeforeFailure) -> None:
        """Keep the epoch that a task had gone on from when it failed, until it fails again."""
        self._failures[region] = failure

    def kept(self, region: int) -> frozenset[int]:
        found = {each[region] for each in self._made.values() if region in each}
        if (failure := self._failures.get(region)) is not None:
            found.add(failure.after)
        return frozenset(found)

    def failure(self, region: int) -> BeforeFailure | None:
        return self._failures.get(region)
