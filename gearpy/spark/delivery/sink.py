"""The sink that keeps finished windows in a log and calls a function with them on Spark."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gearpy.connectors.window_log.sink import (
    LogOptions,
    WindowLogSink,
    WindowLogWriter,
    window_log_folder,
)
from gearpy.core.base.times import Duration, duration_ms
from gearpy.core.handover.window_log import lane_name
from gearpy.errors import ConfigError
from gearpy.messages.data import Batch
from gearpy.messages.summaries import ConsumerReport
from gearpy.spark.delivery.thread import READER_PREFIX, Delivery, DeliverySpec, Function
from gearpy.spark.sessions.sessions import SparkTarget, target_of
from gearpy.task.api.interfaces import PacedWriter, Sink, SinkContext
from gearpy.windowlog.log import WindowLog

_ROWS: Final = "rows"  # Keys of prepared data.
_KEPT: Final = "kept"
_CLOSE_S: Final = 5.0
_NAME_CHARS_MAX: Final = 50


class SparkSink(Sink):
    """Calls ``function(df, batch)`` with finished windows, on a Spark; see `Stream.to_spark`.

    Args:
        function: gets a frame of Spark and a `SparkBatch`.
        path: of the window log, which keeps batches until they are handed over: a folder or a URL.
        spark: where; see `SparkTarget`.
        retain: files are kept for so long, and until they are handed over; None: for ever.
        options: of `window_log_folder`, such as ``key`` and ``schema``.

    Raises:
        ConfigError: the function is none, or an option is wrong.
    """

    transactional = True
    paced = True
    columnar = True
    of_program = True  # So are its function, and a session that it may be given.

    def __init__(
        self,
        function: Function,
        path: str | Path,
        *,
        spark: SparkTarget = None,
        name: str = "spark",
        retain: Duration | None = "7d",
        **options: Any,
    ) -> None:
        if not callable(function):
            raise ConfigError(f"to_spark needs a function of a frame and a batch, not {function!r}")
        target_of(spark)  # It checks it.

        is_word = name.isascii() and name.replace("-", "_").isidentifier()
        if not is_word or len(name) > _NAME_CHARS_MAX:
            raise ConfigError(
                f"to_spark: name {name!r} cannot be that of files: take letters, digits, dashes "
                f"and underscores, a letter first, {_NAME_CHARS_MAX} at most"
            )

        if options.get("compact_files") is not None:
            raise ConfigError(
                "to_spark: compact_files would remove files while Spark reads them: leave it out, "
                "and call `gear window-log compact` now and then"
            )
        self._function = function
        self._path = str(path)
        self._spark = spark
        self._name = name
        self._retain_ms = None if retain is None else duration_ms(retain)
        self._options = options.get("storage_options")
        log = window_log_folder(path, **options)
        assert isinstance(log, WindowLogSink)
        self._log, self._writer = log, log.options.writer

    @property
    def description(self) -> str:
        """The function and the folder."""
        function = getattr(self._function, "__name__", type(self._function).__name__)
        return f"to_spark({function}, {self._path})"

    @property
    def writes(self) -> Sequence[str]:
        """The places that this sink writes: its lane, and the log of its batches."""
        return *self._log.writes, f"batches of name {self._name!r} in {self._path}"

    def open(self, task_index: int, parallelism: int) -> "SparkWriter":
        """Return the writer of one task.

        Raises:
            ConfigError: there is more than one task, or the log cannot be written there.
        """
        if parallelism != 1:
            raise ConfigError(f"to_spark runs in one task, not in {parallelism}")
        return SparkWriter(self._log.options, self._log.log(), self._delivery)

    def _delivery(self, context: SinkContext) -> Delivery:
        return Delivery(
            DeliverySpec(
                path=self._path,
                options=self._options,
                name=self._name,
                lane=lane_name(self._writer, 0),
                app=context.app_name,
                operator=context.operator,
                function=self._function,
                target=target_of(self._spark),
                config=context.limits.spark,
                retain_ms=self._retain_ms,
            ),
            context.wake,
        )


class SparkWriter(WindowLogWriter, PacedWriter):
    """Writes a window log, and lets a `Delivery` hand over the committed batches."""

    def __init__(
        self, options: LogOptions, log: WindowLog, deliver: Callable[[SinkContext], Delivery]
    ) -> None:
        super().__init__(options, log, task=0)
        self._deliver = deliver
        self._context: SinkContext | None = None
        self._delivery: Delivery | None = None
        self._rows = 0  # Written and not prepared.

    def begin(self, context: SinkContext) -> None:
        self._context = context
        super().begin(context)

    def recover(
        self, prepared: Mapping[int, Any], *, epoch: int, run: str, incarnation: int
    ) -> None:
        kept = {each: prepared[each][_KEPT] for each in prepared}
        super().recover(kept, epoch=epoch, run=run, incarnation=incarnation)
        assert self._context is not None, "begin() comes first"
        self._delivery = self._deliver(self._context)
        self._delivery.start()

    def write_batch(self, batch: Batch) -> None:
        super().write_batch(batch)
        self._rows += len(batch.values)

    def prepare(self, epoch: int) -> Any:
        rows, self._rows = self._rows, 0
        kept = super().prepare(epoch)
        return None if kept is None else {_ROWS: rows, _KEPT: kept}

    def commit(self, epoch: int, prepared: Any) -> None:
        super().commit(epoch, prepared[_KEPT])
        self._running.backlog.on_shown(prepared[_ROWS])

    def consumers(self) -> Sequence[ConsumerReport]:
        if self._delivery is None:
            return ()
        own = self._delivery.report()
        # Other functions are told of by their own sinks.
        others = super().consumers()
        return own, *(each for each in others if not each.name.startswith(READER_PREFIX))

    def close(self, *, completed: bool) -> None:
        if self._delivery is not None:
            self._delivery.close(wait_s=_CLOSE_S if completed else 0.0)
        super().close(completed=completed)

    @property
    def has_room(self) -> bool:
        return self._running.backlog.has_room

    @property
    def is_delivered(self) -> bool:
        return self._running.backlog.is_empty

    @property
    def failure(self) -> BaseException | None:
        return None if self._delivery is None else self._delivery.failure

    @property
    def _running(self) -> Delivery:
        assert self._delivery is not None, "recover() comes first"
        return self._delivery
