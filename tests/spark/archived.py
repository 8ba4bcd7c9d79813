"""Whether JVMs of tests may start from an archive of classes."""

import os

from gearpy.spark.sessions.archive import archive_file
from gearpy.spark.sessions.driver import spark_home
from gearpy.spark.sessions.java import find_java
from gearpy.spark.sessions.jvm import defaults


def is_archived() -> bool:
    """Return whether the user's cache has one: to make it takes longer than it saves in a run."""
    return archive_file(find_java(), defaults(spark_home(), os.environ)).exists()
