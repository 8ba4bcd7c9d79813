"""The source and sink ``format("gearpy")`` of Spark, which reads and writes window logs."""
