"""From the configuration to the limits of transports and restarts."""

from typing import Final

from gearpy.config.schema import Config
from gearpy.core.base.restart import RestartPolicy
from gearpy.transport.api import TransportLimits

#: Executors report the clocks of their tasks this often; progress shown is so old at most.
REPORT_INTERVAL_MS: Final = 100
#: So often in the time-out of heartbeats a process asks whether another is there.
_HEARTBEATS: Final = 6
#: So many times the first pause between restarts is the longest.
_BACKOFF_GROWTH: Final = 50


def restart_policy(config: Config) -> RestartPolicy:
    application = config.application
    return RestartPolicy(
        max_restarts=application.retries,
        window_ms=application.retry_window_s * 1000,
        backoff_ms=application.backoff_base_ms,
        backoff_max_ms=_BACKOFF_GROWTH * application.backoff_base_ms,
    )


def transport_limits(config: Config) -> TransportLimits:
    timeout_ms = config.cluster.heartbeat_timeout_ms
    return TransportLimits(
        frame_bytes_max=config.transport.frame_max_bytes,
        heartbeat_interval_ms=timeout_ms // _HEARTBEATS,
        heartbeat_timeout_ms=timeout_ms,
    )
