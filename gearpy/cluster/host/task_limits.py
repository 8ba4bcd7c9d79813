"""Makes the limits of tasks from the configuration. Only processes that run tasks load it."""

from typing import Final

from gearpy.config.schema import Config
from gearpy.core.flow.link import FlowLimits
from gearpy.state.open import StateSettings
from gearpy.task.api.interfaces import TaskLimits
from gearpy.task.runtime.outlet import OutputLimits

#: On a link that is never quiet a sender asks for an acknowledgement at least this often, however
#: few its records are. The clock of a thin stream is so far behind its watermark.
_ACK_INTERVAL_MS: Final = 100
#: A link without new records for so long asks for all that is still unacknowledged.
_QUIET_ACK_MS: Final = 20
#: A request for an acknowledgement that stays unanswered is sent again after so long.
_REPEAT_ACK_MS: Final = 1000
#: A batch above this size is split, down to single records.
_BATCH_BYTES: Final = 1 << 20
#: A link that carries no records tells its watermark this often: so late at most closes a window
#: on a thin stream.
_WATERMARK_INTERVAL_MS: Final = 20
#: A source that has just given something, and has no more, is asked again after so long.
_BRISK_POLL_MS: Final = 1
#: One that has been silent for long is asked this often: to ask it takes a third of a ms.
_IDLE_POLL_MS: Final = 100
#: One that tells when there is more is asked behind each epoch, and otherwise this often: what
#: tells may be wrong.
_WOKEN_POLL_MS: Final = 2000


def output_limits(config: Config) -> OutputLimits:
    streaming = config.streaming
    batch = streaming.batch_max_records
    return OutputLimits(
        flow=FlowLimits(
            window_records=streaming.max_pending_records,
            window_bytes=streaming.max_pending_bytes,
            ack_interval_records=streaming.ack_interval_records,
            ack_interval_ms=_ACK_INTERVAL_MS,
            quiet_ack_ms=_QUIET_ACK_MS,
            repeat_ack_ms=_REPEAT_ACK_MS,
            least_records=min(batch, streaming.max_pending_records),
        ),
        batch_records=batch,
        # A full batch must fit into the window of a link, and into a frame.
        batch_bytes=min(
            _BATCH_BYTES, streaming.max_pending_bytes, config.transport.frame_max_bytes
        ),
        watermark_interval_ms=_WATERMARK_INTERVAL_MS,
        columnar_batch_records=streaming.columnar_batch_records,
    )


def task_limits(config: Config) -> TaskLimits:
    return TaskLimits(
        batch_records=config.streaming.batch_max_records,
        read_batch_records=config.source.read_batch_records,
        columnar_batch_records=config.streaming.columnar_batch_records,
        idle_poll_ms=_IDLE_POLL_MS,
        brisk_poll_ms=_BRISK_POLL_MS,
        woken_poll_ms=_WOKEN_POLL_MS,
        spark=config.spark,
    )


def state_settings(config: Config) -> StateSettings:
    state = config.state
    return StateSettings(
        backend=state.backend, folder=state.folder, disk_max_bytes=state.disk_max_bytes
    )
