"""From the configuration to the limits of tasks and transports, and the clocks they run on."""

import time

from gearpy.config.schema import Config
from gearpy.core.flow.link import FlowLimits
from gearpy.state.open import StateSettings
from gearpy.task.api.interfaces import TaskLimits
from gearpy.task.runtime.outlet import OutputLimits
from gearpy.transport.api import TransportLimits

__all__ = [
    "monotonic_ms",
    "output_limits",
    "state_settings",
    "task_limits",
    "transport_limits",
    "wall_ms",
]


def monotonic_ms() -> int:
    """Return monotonic ms."""
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Return ms since the epoch."""
    return time.time_ns() // 1_000_000


def output_limits(config: Config) -> OutputLimits:
    """Return the limits of tasks' output that a configuration sets."""
    streaming = config.streaming
    return OutputLimits(
        flow=FlowLimits(
            window_records=streaming.max_pending_records,
            window_bytes=streaming.max_pending_bytes,
            ack_interval_records=streaming.ack_interval_records,
            ack_interval_ms=streaming.ack_interval_ms,
            quiet_ack_ms=streaming.quiet_ack_ms,
            repeat_ack_ms=streaming.repeat_ack_ms,
        ),
        batch_records=streaming.batch_max_records,
        batch_bytes=streaming.batch_max_bytes,
        watermark_interval_ms=streaming.watermark_interval_ms,
        columnar_batch_records=streaming.columnar_batch_records,
    )


def task_limits(config: Config) -> TaskLimits:
    """Return what a configuration says to tasks."""
    return TaskLimits(
        batch_records=config.streaming.batch_max_records,
        read_batch_records=config.source.read_batch_records,
        idle_poll_ms=config.source.idle_poll_ms,
        held_records_max=config.checkpoint.held_max_records,
        columnar_batch_records=config.streaming.columnar_batch_records,
        spark=config.spark,
    )


def state_settings(config: Config) -> StateSettings:
    """Return where tasks keep keyed state."""
    state = config.state
    return StateSettings(
        backend=state.backend, folder=state.folder, disk_max_bytes=state.disk_max_bytes
    )


def transport_limits(config: Config) -> TransportLimits:
    """Return the limits of transports that a configuration sets."""
    cluster, transport = config.cluster, config.transport
    return TransportLimits(
        frame_bytes_max=transport.frame_max_bytes,
        control_frame_bytes_max=transport.control_frame_max_bytes,
        handshake_timeout_ms=transport.handshake_timeout_ms,
        handshake_bytes_max=transport.handshake_max_bytes,
        unauthenticated_max=transport.unauthenticated_connections_max,
        write_buffer_bytes=transport.write_buffer_bytes,
        queue_bytes_max=transport.queue_max_bytes,
        close_timeout_ms=transport.close_timeout_ms,
        reconnect_base_ms=transport.reconnect_base_ms,
        reconnect_max_ms=transport.reconnect_max_ms,
        reconnect_retries=transport.reconnect_retries,
        heartbeat_interval_ms=cluster.heartbeat_interval_ms,
        heartbeat_timeout_ms=cluster.heartbeat_timeout_ms,
        letters_max=config.actor.mailbox_max,
    )
