"""From the configuration to how a master keeps applications alive."""

from gearpy.config.load import as_overrides, from_overrides
from gearpy.config.schema import Config
from gearpy.core.master.app_masters import AppMasterTimes
from gearpy.errors import ConfigError
from gearpy.messages.client import SubmitApplication
from gearpy.transport.api import TransportLimits


def app_master_times(config: Config) -> AppMasterTimes:
    """Return the times that the master waits for app masters."""
    cluster = config.cluster
    return AppMasterTimes(
        start_timeout_ms=config.executor.start_timeout_s * 1000,
        # Whoever lives has noticed by then that the master was away, and tried once more.
        return_timeout_ms=cluster.heartbeat_timeout_ms + TransportLimits().reconnect_max_ms,
        word_timeout_ms=cluster.heartbeat_interval_ms,
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
