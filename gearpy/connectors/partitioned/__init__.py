"""Tables in partitions: a folder for each value, as Hive and Spark have them."""
