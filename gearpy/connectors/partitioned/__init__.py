"""Tables in partitions: a folder for each value, as Hive and Spark have them.

- `hive`: folders of Parquet files in partitions, as Hive and Spark have them; each record once.
- `files`: parquet files of one epoch, one for each partition of a table that brings rows.
- `rows`: from the records of a sink to files of partitions.
- `columns`: columns that a table is partitioned by: taken out of its files, or derived from other
  columns.
"""
