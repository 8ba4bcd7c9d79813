"""Finished windows to a function over DataFrames, each batch once."""

from gearpy.distribution import require

require("Spark", "pyspark")
