"""A Delta table in which readers see each record once."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gearpy.connectors.partitioned.columns import PartitionBy, key_names, partition_fields
from gearpy.connectors.partitioned.files import PARTITIONS_MAX
from gearpy.connectors.partitioned.rows import TableOptions, table_schema
from gearpy.distribution import require
from gearpy.task.api.interfaces import Sink

if TYPE_CHECKING:
    from gearpy.connectors.delta.writer import DeltaWriter

_NAME: Final = "delta_table"
_WRITER: Final = "gearpy.connectors.delta.writer"  # Loads deltalake, 50 ms.


def delta_table(
    url: str | Path,
    *,
    schema: Any = None,
    key: str | Sequence[str] | None = None,
    partition_by: PartitionBy | None = None,
    add_columns: bool = False,
    compression: str = "snappy",
    partitions_max: int = PARTITIONS_MAX,
    prefix: str = "part",
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    keep_rewritten: bool = False,
) -> Sink:
    """Write records into a Delta table: exactly once, whatever fails. Needs the extra ``delta``.

    Each task writes files at the end of an epoch and, when the epoch is complete, adds them to the
    table in one transaction, which also notes the epoch. Who has to repeat it finds the note.
    Readers see all rows of an epoch of a task or none. A transaction takes some 10 ms, so a table
    with many tasks or short epochs grows a long log: set ``checkpoint.interval-ms = 60000``.

    Results of windows become rows as by `window_log_folder`, with ``window_start`` and
    ``window_end``; other records give their fields. Partition columns are as by `hive_folder`.

    Only when a checkpoint turns out to be damaged, and the application goes back before what it has
    shown, are files taken out of the table again, in one transaction for each task; this is logged.
    That fails if somebody has merged them with others meanwhile (``OPTIMIZE``). So merge partitions
    that get no more rows, and vacuum with a retention of days, as files that wait for their epoch
    are not in the log yet.

    Files of earlier runs stay, so a program that is started again adds to them.

    Args:
        url: of the table, which is made if there is none: a path, or a URL that `deltalake` knows.
        schema: a `pyarrow.Schema`, a dataclass, NamedTuple or TypedDict class, or a dict of names
            and types; None to take that of the first epoch's.
        key: names for the columns of the key of windows.
        partition_by: columns, or a dict of names and where their values come from:
            ``{"date": "date(window_start)"}``.
        add_columns: whether a table gets columns that records have and it has not.
        compression: "snappy", "zstd", "gzip", "lz4", "brotli" or "none".
        partitions_max: of one task in one epoch; more are a failure.
        prefix: of the names of files. Two sinks of one application that write into one table need
            different ones.
        properties: of the table if it is made, such as ``delta.logRetentionDuration``.
        storage_options: of the store, as `deltalake` takes them.
        keep_rewritten: whether to go on, and to let rows stand twice, where files cannot be taken
            out of the table again.

    Raises:
        ConfigError: one of these cannot be, or `deltalake` is missing.

    Example:
        >>> import gearpy as gp
        >>> import deltalake
        >>> app = gp.StreamApp("table")
        >>> app.read(gp.collection([{"n": 1}, {"n": 2}])).write(gp.delta_table("numbers"))
        >>> _ = gp.run(app)
        >>> deltalake.DeltaTable("numbers").to_pyarrow_table().to_pylist()
        [{'n': 1}, {'n': 2}]
    """
    require(_NAME, "deltalake")
    options = TableOptions(
        operator=_NAME,
        schema=table_schema(_NAME, schema),
        key=key_names(key),
        fields=partition_fields(_NAME, partition_by),
        compression=compression,
        partitions_max=partitions_max,
        prefix=prefix,
    )
    return DeltaSink(
        options,
        url=str(url),
        storage=storage_options,
        properties=properties or {},
        add_columns=add_columns,
        keep_rewritten=keep_rewritten,
    )


class DeltaSink(Sink):
    transactional = True
    waits_for_store = True
    columnar = True

    def __init__(self, table: TableOptions, *, url: str, **more: Any) -> None:
        self._table = table
        self._url = url
        self._more = more

    @property
    def description(self) -> str:
        prefix = "" if self._table.prefix == "part" else f", {self._table.prefix}"
        return f"{_NAME}({self._url}{prefix})"

    def open(self, task_index: int, parallelism: int) -> "DeltaWriter":
        home: Any = import_module(_WRITER)
        options = home.DeltaOptions(url=self._url, **self._more)
        writer: DeltaWriter = home.delta_writer(self._table, options, task=task_index)
        return writer
