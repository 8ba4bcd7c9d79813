"""The opening of an application's coordinator log, tried again while its store is away."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from gearpy.cluster.app.checkpoints import AppCheckpoints, FoundEpochs
from gearpy.cluster.app.versions import AppVersions, LoadedVersion
from gearpy.config.schema import Config
from gearpy.core.master.checkpoint_names import OPENED_KEY, RESTART
from gearpy.errors import ConfigError
from gearpy.messages.cluster import AppMasterRegistered, LaunchExecutor

#: After so long a store that was away is asked again.
OPEN_AGAIN_MS: Final = 1000


class OpenedLog(Struct, frozen=True):
    """The log as it was opened, and the version of the program that it names."""

    loaded: LoadedVersion
    found: FoundEpochs
    config: Config  # That in the log counts.


class LogOpening:
    """Opens the log of an application when its app master begins."""

    def __init__(
        self,
        launch: LaunchExecutor,
        checkpoints: AppCheckpoints,
        versions: AppVersions,
        config_of: Callable[[Mapping[str, str]], Config],
    ) -> None:
        self._launch = launch
        self._checkpoints = checkpoints
        self._versions = versions
        self._config_of = config_of
        self._waiting: AppMasterRegistered | None = None  # The log could not be opened with it.
        self._again_ms = 0

    def open(self, message: AppMasterRegistered) -> OpenedLog:
        self._checkpoints.begin(
            is_known=OPENED_KEY in message.values, resume_from=self._launch.resume_from
        )
        opened = self._open_newest(message.values)
        if self._versions.current.number != opened.loaded.dag.version:  # It was changed meanwhile.
            opened = self._open_newest(message.values)
        self._waiting = None
        return opened

    def _open_newest(self, values: Mapping[str, bytes]) -> OpenedLog:
        loaded = self._versions.load_stored()
        found = self._checkpoints.open(
            loaded.dag,
            self._launch.config,
            name=self._launch.name,
            resume_from=self._launch.resume_from,
            known_launch=int(values.get(OPENED_KEY, b"0")),
        )
        try:
            config = self._config_of(found.config)
        except ConfigError as error:
            advice = (
                "change it with 'gear coordinator-log append ID set-config', or delete it there"
            )
            wrong = (f"coordinator log: {each}; {advice}" for each in error.mistakes)
            raise ConfigError(*wrong) from error
        if config.checkpoint.changelog == "on":
            self._checkpoints.give_partitions(loaded.dag)
        self._checkpoints.keeps_recordings = config.application.record_input_bytes > 0
        if (before := self._versions.give_up_unloadable()) is not None:
            loaded, found = before
        return OpenedLog(loaded, found, config)

    def waits(self, message: AppMasterRegistered, now_ms: int) -> bool:
        """Take a log that could not be opened; tell whether it is tried again after a while.

        The first launch of an application fails at once, as no state is lost.
        """
        self._waiting, self._again_ms = message, now_ms + OPEN_AGAIN_MS
        return self._launch.launch > 1 or self._launch.resume_from.endswith(RESTART)

    def due(self, now_ms: int) -> AppMasterRegistered | None:
        return self._waiting if now_ms >= self._again_ms else None
