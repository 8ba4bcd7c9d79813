"""Lets Spark find ``format("gearpy")``; see `gearpy.spark.source`.

Spark imports every module at the top that is called `pyspark_*` when the first source in Python is
used, and takes its `DefaultSource`. So this file is at the top of an installation. A module that
raises then would break all such sources of the session, so this one never does: without its
packages there just is no such format.
"""

import logging

__all__ = ["DefaultSource"]

try:
    from gearpy.spark.source.format import DefaultSource
except Exception as _error:  # noqa: BLE001 - whatever it is, other sources of the session must work
    logging.getLogger(__name__).debug("no format 'gearpy': %s", _error)
