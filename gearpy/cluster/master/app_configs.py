"""Makes the limits by which a master keeps applications alive, from the configuration."""

from collections.abc import Mapping
from typing import Final

from gearpy.cluster.net.limits import transport_limits
from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import ROOT, ApplicationConfig, Config
from gearpy.core.master.app_masters import AppMasterTimes
from gearpy.errors import ConfigError
from gearpy.messages.client import SubmitApplication
from gearpy.messages.cluster import SlotWishes

_MADE_MAX: Final = 1000
_WISHES: Final = frozenset(f"application.{name}" for name in SlotWishes.__struct_fields__)


def app_master_times(config: Config, *, can_return: bool = True) -> AppMasterTimes:
    transport = transport_limits(config)
    return AppMasterTimes(
        start_timeout_ms=config.executor.start_timeout_s * 1000,
        # All that live have noticed by then that the master was away, and tried once more.
        return_timeout_ms=(
            transport.heartbeat_timeout_ms + transport.reconnect_max_ms if can_return else 0
        ),
        word_timeout_ms=transport.heartbeat_interval_ms,
    )


class ApplicationConfigs:
    """The configurations of applications: the cluster's, changed by their own settings.

    Thousands of applications have few different settings, and one of each is made.

    Runs on: the master's turns.
    """

    def __init__(self, config: Config) -> None:
        self._own = as_overrides(config)
        self._made: dict[tuple[tuple[str, str], ...], Config] = {}

    def of(self, settings: Mapping[str, str]) -> Config:
        key = tuple(sorted(settings.items()))
        made = self._made.get(key)
        if made is None:
            made = from_overrides({**self._own, **settings})
            while len(self._made) >= _MADE_MAX:
                del self._made[next(iter(self._made))]
            self._made[key] = made
        return made

    def wishes(self, settings: Mapping[str, str]) -> ApplicationConfig:
        wishes = {k: v for k, v in settings.items() if k.removeprefix(f"{ROOT}.") in _WISHES}
        return self.of(wishes).application

    def mistakes_in(self, request: SubmitApplication) -> str:
        try:
            self.of(request.config)
        except ConfigError as error:
            return f"application {request.name!r} has a wrong configuration: {error}"
        return ""
