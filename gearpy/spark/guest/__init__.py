"""A cluster of gearpy inside an application of Spark: workers as tasks, and masters, if several."""

from gearpy.distribution import require

require("Spark", "pyspark")
