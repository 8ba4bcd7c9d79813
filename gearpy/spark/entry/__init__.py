"""The folder of the module by which Spark finds ``format("gearpy")``.

- `pyspark_gearpy`: is at the top of an installation; in a clone this folder is on the path.
"""
