"""Sources and sinks that come with gearpy.

- `files`: files of lines and of rows as sources.
- `streams`: sources that go on: lines over TCP and standard input, records made by a function.
- `folders`: folders in which readers see each record once.
- `partitioned`: tables in partitions: a folder for each value, as Hive and Spark have them.
- `delta`: delta tables in which readers see each record once.
- `iceberg`: Iceberg tables in which readers see each record once.
- `kafka`: topics of Kafka.
- `postgres`: tables of PostgreSQL as a sink and as a source.
- `sql`: tables of SQLite, DuckDB, MySQL and others as a sink and as a source; `database`: what is
  one for all of them.
- `http_sink`: records as requests of HTTP.
- `window_log`: window logs as a sink and as a source.

Start with `memory`. May be imported by dsl, cluster and above; uses the task layer below.
"""
