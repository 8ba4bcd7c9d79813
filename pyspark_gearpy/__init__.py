"""Spark reads and writes WindowLogs by `format("gearpy")`, without being told where that is.

Spark imports every module at the top that is called `pyspark_*` when the first source in Python is
used, and takes its `DefaultSource`. One that raises then would break all such sources of the
session, so this one never does: without what it needs there just is no such format.

- `source`: what Spark asks for readers and writers.
- `options`: what `.option(...)` may say.
- `planning`: positions, and what is read from one to the next; knows no Spark.
- `reading`: what all readers do, and reading once.
- `stream`: reading on and on.
- `writing`: what tasks write, and what the driver shows of it.
- `committing`: from files of tasks to a batch of the log, once; knows no Spark.
"""

import logging

try:
    from pyspark_gearpy.source import DefaultSource
except Exception as _error:  # noqa: BLE001 - whatever it is, other sources of the session must work
    logging.getLogger(__name__).debug("no format 'gearpy': %s", _error)
    __all__ = []
else:
    __all__ = ["DefaultSource"]
