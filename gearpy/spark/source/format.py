"""The format "gearpy", which Spark asks for readers and writers; each is loaded on first use."""

import sys
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from gearpy.errors import ConfigError
from gearpy.spark.source.options import read_options, write_options

if TYPE_CHECKING:
    from gearpy.spark.source.reading import SourceLogReader
    from gearpy.spark.source.stream import LogStreamReader, LogStreamWriter
    from gearpy.spark.source.writing import SourceLogWriter

#: Spark runs this only where ``spark.sql.python.filterPushdown.enabled`` is on. A reader that takes
#: filters makes every query fail where it is off, and is not told which it is.
_PUSHDOWN = "pyspark.sql.worker.data_source_pushdown_filters"


class DefaultSource(DataSource):
    """`format("gearpy")`: a window log to read or to write, once or on and on.

    Runs on: processes that Spark starts for planning, committing and the tasks.
    """

    @classmethod
    def name(cls) -> str:
        return "gearpy"

    def schema(self) -> StructType:
        from gearpy.spark.source.reading import log_at  # noqa: PLC0415

        options = read_options(self.options)
        log = log_at(options)
        if not log.exists:
            raise ConfigError(
                f'format "gearpy": there is no window log at {options.path} yet: start what writes '
                "it first, or tell the columns by .schema(...)"
            )
        return StructType.fromJson(dict(log.schema.spark))

    def reader(self, schema: StructType) -> "SourceLogReader":
        from gearpy.spark.source.reading import FilteringLogReader, SourceLogReader  # noqa: PLC0415

        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        takes_filters = _PUSHDOWN in sys.modules or getattr(main, "name", "") == _PUSHDOWN
        make = FilteringLogReader if takes_filters else SourceLogReader
        return make(read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> "LogStreamReader":  # noqa: N802 - as Spark has it
        try:
            from gearpy.spark.source.stream import LogStreamReader  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                'format "gearpy": readStream needs Spark 4.2 or newer; read works with 4.0'
            ) from error
        return LogStreamReader(read_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> "SourceLogWriter":  # noqa: FBT001 - Spark's
        from gearpy.spark.source.writing import SourceLogWriter, check_append  # noqa: PLC0415

        check_append(overwrite=overwrite)
        return SourceLogWriter(write_options(self.options), schema)

    def streamWriter(  # noqa: N802 - as Spark has it
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - as Spark has it
    ) -> "LogStreamWriter":
        try:
            from gearpy.spark.source.stream import LogStreamWriter  # noqa: PLC0415
            from gearpy.spark.source.writing import check_append  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                'format "gearpy": writeStream needs Spark 4.2 or newer; write works with 4.0'
            ) from error
        check_append(overwrite=overwrite)
        return LogStreamWriter(write_options(self.options), schema)
