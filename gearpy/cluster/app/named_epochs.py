"""Savepoints of an application that goes on; and the epochs before failures, which stay."""

import logging
from collections.abc import Mapping
from typing import Final

from gearpy.cluster.app.checkpoints import AppCheckpoints
from gearpy.cluster.app.quarantine import task_of
from gearpy.core.app.application import ApplicationCore
from gearpy.core.app.regions.region import Region
from gearpy.core.epoch.kept import BeforeFailure
from gearpy.errors import ConfigError, LogBroken
from gearpy.ids import AppId
from gearpy.messages.client import MakeSavepoint, Refused, SavepointMade
from gearpy.messages.summaries import ErrorCard

_log = logging.getLogger(__name__)
IN_MEMORY: Final = (
    "checkpoints are in memory here, so a savepoint would end with this process: drain without "
    'one, give the run a folder (--resume NAME; checkpoint="folder" in Python), or submit it to a '
    "cluster such as bin/local"
)


class NamedEpochs:
    """Keeps epochs under names."""

    def __init__(self, app_id: AppId, checkpoints: AppCheckpoints) -> None:
        self._app_id = app_id
        self._checkpoints = checkpoints

    def make(self, core: ApplicationCore, message: MakeSavepoint) -> SavepointMade | Refused:
        """Let the next epoch of each region have a name; say whether it has one by now."""
        kept, name = self._checkpoints.epochs, message.name
        if self._checkpoints.are_in_memory:
            return Refused(reason=IN_MEMORY)
        if message.begins:
            try:
                self._checkpoints.check_free(name)
            except (ConfigError, LogBroken) as error:
                return Refused(reason=str(error))
            if core.succession.change is not None:
                return Refused(reason="it is being changed: ask again when the new version runs")
            kept.begin(name, *core.begin_epochs())
            self._name(kept.whole())
        epochs = self._checkpoints.made(name)
        if not epochs and not kept.is_wanted(name):
            reason = f"savepoint {name!r} is not being made: the app master was started again, or"
            return Refused(reason=f"{reason} a change has gone back; ask for it once more")
        return SavepointMade(app_id=self._app_id, name=name, epochs=tuple(epochs.items()))

    def on_stored(self, region: Region, epoch: int) -> None:
        self._name(self._checkpoints.epochs.on_stored(region.number, epoch))
        region.history.kept = self._checkpoints.epochs.kept(region.number)

    def of_drain(self, core: ApplicationCore | None) -> str | ErrorCard:
        """Give the last epoch its name, if it is to have one; return the name, or why it has none.

        Empty if there is to be none.
        """
        if core is None or not core.is_drained:
            return ""
        newest = {each.number: each.epochs.history.newest for each in core.regions}
        epochs = {number: each.epoch for number, each in newest.items() if each is not None}
        try:
            return self._checkpoints.end_drain(epochs)
        except LogBroken as error:
            return ErrorCard(cause=f"it is drained, but its last epoch has got no name: {error}")

    def keep_before(self, core: ApplicationCore, card: ErrorCard) -> None:
        region = core.regions.of_task(task_of(card.task)) if card.epoch else None
        if region is None:
            return
        before = [each.epoch for each in region.history.manifests if each.epoch < card.epoch]
        if before:
            failure = BeforeFailure(before[-1], card.epoch)
            self._checkpoints.epochs.on_failure(region.number, failure)

    def _name(self, savepoints: Mapping[str, Mapping[int, int]]) -> None:
        if not savepoints:
            return
        try:
            self._checkpoints.name_epochs(savepoints)
        except LogBroken as error:
            _log.warning("application %s: %s", self._app_id, error)
