"""A Spark session that works on this machine: Java, JVM, settings."""

from gearpy.distribution import require

require("Spark", "pyspark")
