"""From the configuration to how a master keeps applications alive."""

from gearpy.cluster.net.limits import transport_limits
from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.core.master.app_masters import AppMasterTimes
from gearpy.errors import ConfigError
from gearpy.messages.client import SubmitApplication


def app_master_times(config: Config) -> AppMasterTimes:
    """Return the times that the master waits for app masters."""
    transport = transport_limits(config)
    return AppMasterTimes(
        start_timeout_ms=config.executor.start_timeout_s * 1000,
        # Whoever lives has noticed by then that the master was away, and tried once more.
        return_timeout_ms=transport.heartbeat_timeout_ms + transport.reconnect_max_ms,
        word_timeout_ms=transport.heartbeat_interval_ms,
    )


def config_of(config: Config, request: SubmitApplication) -> Config:
    """Return the cluster's configuration, changed by the application's own settings.

    Raises:
        ConfigError: a setting of the application is wrong.
    """
    return from_overrides({**as_overrides(config), **request.config})


def mistakes_in(config: Config, request: SubmitApplication) -> str:
    """Return the mistakes in an application's settings, or an empty text."""
    try:
        config_of(config, request)
    except ConfigError as error:
        return f"application {request.name!r} has a wrong configuration: {error}"
    return ""
