"""Sources and sinks that come with gearpy.

- `memory`: a collection in, a list out; for tests and first steps.
- `gather`: keeps the first or the last records, for a look at a stream.
- `tables`: a table in memory; tables made by a function.
- `console`: lines and tables on standard output.
- `epoch_writer`: a writer to subclass, for exactly once into a database.
- `locations`: looks files up, here or at a URL.
- `json_checks`: what parsers of JSON do not check themselves, or die of.
- `zstd_files`: reads what was packed by zstd.
- `shared_options`: options that several functions share, as each shows them.

Rooms:

- `files`: files of lines and of rows as sources.
- `streams`: sources that go on: lines over TCP and standard input, records made by a function.
- `folders`: folders in which readers see each record once.
- `partitioned`: tables in partitions: a folder for each value, as Hive and Spark have them.
- `delta`: delta tables in which readers see each record once.
- `kafka`: topics of Kafka.
- `postgres`: tables of PostgreSQL as a sink and as a source.
- `window_log`: window logs as a sink and as a source.

Start with `memory`. May be imported by dsl, cluster and above; uses the task layer below.
"""
