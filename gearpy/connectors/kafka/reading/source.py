"""Topics of Kafka as a source."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final, TypedDict, Unpack, overload

# Ships no type information.
import pyarrow as pa  # type: ignore[import-untyped]

from gearpy.clocks import wall_ms
from gearpy.columns.row_schema import RowSchema, SchemaLike, row_schema_of
from gearpy.connectors.files.column_times import TimeUnit, check_time_column, time_form
from gearpy.connectors.files.found.json_types import check_json
from gearpy.connectors.files.tables import Fit, OnBad, known_on_bad
from gearpy.connectors.kafka.cluster import KafkaCluster, cluster_of
from gearpy.connectors.kafka.reading.decoding import RECORD_COLUMNS, Reading
from gearpy.connectors.kafka.reading.discovery import (
    KafkaDiscovery,
    KafkaReader,
    KafkaReading,
    Looked,
)
from gearpy.connectors.kafka.reading.positions import OutOfRange, Start, Until, bounds_of, topics_of
from gearpy.connectors.kafka.values import FormName, ValueForm, form_of
from gearpy.core.base.times import Duration, EventTime, duration_ms
from gearpy.core.base.zones import ZoneName
from gearpy.distribution import require
from gearpy.errors import ConfigError
from gearpy.messages.type_variables import Row
from gearpy.task.api.interfaces import Source
from gearpy.task.sources.share import Share

_NAME: Final = "kafka"


class _KafkaOptions(TypedDict, total=False):
    pattern: str | None
    value: FormName | ValueForm
    key: FormName | ValueForm
    records: bool
    time: str | Callable[[Any], EventTime] | None
    time_unit: TimeUnit
    zone: ZoneName | None
    out_of_order: Duration
    start: Start
    until: Until | None
    group: str | None
    on_bad: OnBad
    out_of_range: OutOfRange
    poll: Duration
    idle: Duration


@overload
def kafka(
    *topics: str, servers: str | KafkaCluster, schema: None = None, **options: Unpack[_KafkaOptions]
) -> Source[Any]: ...


@overload
def kafka(
    *topics: str,
    servers: str | KafkaCluster,
    schema: SchemaLike[Row],
    **options: Unpack[_KafkaOptions],
) -> Source[Row]: ...


def kafka(
    *topics: str,
    servers: str | KafkaCluster,
    pattern: str | None = None,
    value: FormName | ValueForm = "bytes",
    key: FormName | ValueForm = "bytes",
    records: bool = False,
    schema: object = None,
    time: str | Callable[[Any], EventTime] | None = None,
    time_unit: TimeUnit = "ms",
    zone: ZoneName | None = None,
    out_of_order: Duration = "0s",
    start: Start = "earliest",
    until: Until | None = None,
    group: str | None = None,
    on_bad: OnBad = "fail",
    out_of_range: OutOfRange = "fail",
    poll: Duration = "10s",
    idle: Duration = "10s",
) -> Source[Any]:
    """Read topics of Kafka; each partition of a topic is a partition of the source.

    Offsets belong to the epochs of the application, so each record counts once, also after a
    crash. Only records of committed transactions are read. Partitions that are added while the
    application runs are found within ``poll``, and read from their first record.

    Args:
        topics: names of the topics.
        servers: ``host:port`` of some brokers, with commas between, or a `KafkaCluster`.
        pattern: a regular expression instead of names: all topics whose whole name fits, also
            those that come later.
        value: the form of the values: "bytes", "text", "json", "msgpack", `avro` or `protobuf`.
        key: the form of the keys, for ``records``.
        records: give each record as a `KafkaRecord`, with key, headers, time, partition and offset;
            a table has columns ``kafka_key`` and so on.
        schema: give tables with these columns: a `pyarrow.Schema`, a dataclass, NamedTuple or
            TypedDict class, or a dict of names and types. The values must be objects: JSON is the
            fastest.
        time: field of the value with the event time, such as "at", or "meta.ts" where it is in a
            record; or a function of the value. By default it is the time that Kafka has of the
            record.
        time_unit: what numbers in that field count: "s", "ms", "us" or "ns".
        zone: name of the time zone of times that tell none, such as "Europe/Berlin"; UTC by
            default.
        out_of_order: how far back in time a later record of the same partition may be.
        start: where the first run begins: "earliest", "latest", "committed" by the group; a time,
            from which on records are read, by event time; or offsets such as ``{"orders/0": 15}``.
        until: where reading ends: "now", at the records that are there when it begins; a time, at
            the first record of this Kafka time or later; or offsets, which are not read. None:
            never.
        group: consumer group that offsets are committed to when an epoch is complete, for other
            tools to see. gearpy itself goes on from its epochs.
        on_bad: what becomes of a value that is not of the form: "fail" ends the application
            and names partition and offset; "skip" leaves it out, logs and counts it; "quarantine"
            keeps its text for ``gear quarantine``; "side" gives it to `Stream.errors`, and counts
            it.
        out_of_range: what becomes of a partition whose next record is not there any more, as it was
            too old to be kept: "fail", or go on at the "earliest" or "latest", logged and counted.
        poll: wait between two looks for new partitions.
        idle: so long after it came to its end a partition holds event time back.

    Raises:
        ConfigError: an option is not understood.

    Example:
        >>> import gearpy as gp
        >>> app = gp.StreamApp("orders")
        >>> orders = app.read(gp.kafka("orders", servers="localhost:9092", value="json"))
        >>> totals = orders.key_by(lambda order: order["user"]).window(gp.tumbling("1m")).count()
    """
    operator = f"{_NAME}({', '.join(map(str, topics)) or pattern})"
    require(operator, "confluent_kafka")
    read = topics_of(operator, topics, pattern)
    on_bad = known_on_bad(operator, on_bad)
    times = time_form(operator, time_unit, zone)
    bounds = bounds_of(operator, start, until, out_of_range, group)
    columns = None if schema is None else row_schema_of(schema)
    form = form_of(operator, "value", value)
    _check(operator, form, columns, time, records=records)
    reading = Reading(
        operator=operator,
        form=form,
        key_form=form_of(operator, "key", key),
        schema=columns,
        fit=Fit(None if columns is None else columns.arrow, None, time, times),
        has_time=time is not None,
        records=records,
        on_bad=on_bad,
        bound_ms=duration_ms(out_of_order),
        starts_ms=bounds.starts_ms,
    )
    return KafkaSource(
        KafkaReading(
            cluster=cluster_of(operator, servers),
            topics=read,
            bounds=bounds,
            group=group,
            poll_ms=duration_ms(poll),
            idle_ms=duration_ms(idle),
            records=reading,
        )
    )


def _check(
    operator: str, form: ValueForm, columns: RowSchema | None, time: Any, *, records: bool
) -> None:
    mistakes = []
    if not (time is None or isinstance(time, str) or callable(time)):
        mistakes.append(f"{operator}: time is {time!r:.100}, need a name of a field or a function")
    if isinstance(time, str) and form.name in {"bytes", "text"}:
        mistakes.append(
            f"{operator}: time={time!r} needs values with fields, and these are {form.name}: "
            "choose value='json', or give a function"
        )
    if columns is not None and form.name in {"bytes", "text"}:
        mistakes.append(
            f"{operator}: schema= needs values that are objects, and these are {form.name}: choose "
            "value='json'"
        )
    if mistakes:
        raise ConfigError(*mistakes)
    if columns is not None and form.name == "json":
        check_json(operator, columns.arrow)
    if columns is not None and isinstance(time, str):
        check_time_column(operator, time, columns.arrow)
    if columns is not None and records:
        taken = sorted(set(columns.arrow.names) & set(RECORD_COLUMNS.names))
        if taken:
            raise ConfigError(f"{operator}: schema has {taken[0]!r}, which records=True adds")


class KafkaSource(Source[Any]):
    replayable = True
    discovers = True

    def __init__(self, reading: KafkaReading) -> None:
        self._reading = reading
        self.bounded = reading.bounds.until is not None
        self.sets_bad_aside = reading.records.on_bad == "side"
        self.quarantines_bad = reading.records.on_bad == "quarantine"
        time = reading.records.fit.time
        self.time_column = time if isinstance(time, str) else None

    @property
    def description(self) -> str:
        return self._reading.operator

    @property
    def note(self) -> str:
        fit = self._reading.records.fit
        return fit.form.note(fit.time if isinstance(fit.time, str) else None, fit.schema)

    @property
    def schema(self) -> RowSchema | None:
        records = self._reading.records
        if records.schema is None or not records.records:
            return records.schema
        return RowSchema(pa.schema([*records.schema.arrow, *RECORD_COLUMNS]))

    def up_to_now(self) -> "KafkaSource":
        """Read to the offsets where partitions end when they are opened; a given end stays."""
        bounds = self._reading.bounds
        if bounds.until not in {None, "now"}:
            return self
        other = copy(self)
        bounds = replace(bounds, until=None)
        other._reading = replace(self._reading, bounds=bounds, up_to_now=True)  # noqa: SLF001 - of the same class
        other.bounded = True
        return other

    def partitions(self) -> Sequence[str]:
        return ()

    def open(self, partition: str, resume: Any | None) -> KafkaReader:
        raise ConfigError(f"{self.description}: its partitions are found while an application runs")

    def discover(
        self, task_index: int, parallelism: int, resume: Sequence[Looked]
    ) -> KafkaDiscovery:
        # Where a finder before it has asked the brokers, what is found now came later.
        has_looked = any(each["looked"] for each in resume)
        share = Share(task_index, parallelism)
        return KafkaDiscovery(self._reading, share, wall_ms, has_looked=has_looked)
