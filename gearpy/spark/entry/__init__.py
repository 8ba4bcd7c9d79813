"""The folder of the module by which Spark finds ``format("gearpy")``."""
