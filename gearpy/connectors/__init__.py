"""Sources and sinks that come with gearpy.

- `files`: lines of text files, to the end or followed as they grow; text and JSON files out.
- `datasets`: files of rows: CSV, lines of JSON, Parquet, Arrow; to the end, or as files come.
- `memory`: a collection in, a list out; for tests and first steps.
- `tables`: a table in memory; tables made by a function.
- `generator`: records made by a function, at a given rate.
- `tcp`, `stdin`: lines that come once.
- `folder_sinks`, `parquet`, `table_folders`: folders of JSON lines, Parquet, CSV or Arrow files,
  exactly once.
- `window_log_sink`: a log of finished windows for Spark and others, exactly once.
- `hive_folder`: Parquet files in partitions, exactly once; `delta_table`: a Delta table.
- `epoch_writer`: a writer to subclass, for exactly once into a database.
- `window_log_source`: reads what Spark, or another application, has written into a window log.
- `console`: lines and tables on standard output.

Behind them:
- `file_bytes`: blocks of a file, complete or still growing.
- `lines`: cuts lines out of large blocks and knows their place in the file.
- `live_lines`: lines of bytes that come in pieces.
- `stamps`: which event time a record gets; blames the record when user code raises.
- `locations`: looks files up, here or at a URL.
- `file_sources`: files of rows as partitions; `file_queue` says which file is next.
- `file_tables`: what all formats of rows share; `line_formats` and `column_formats` are those.
- `line_tables`: tables out of blocks of lines.
- `column_times`: event times out of a column.
- `writers`: the writing half of the file sinks.
- `folder_writer`: the writing half of the folder sinks; `folder_files` are its files and names,
  and `part_folder` shows those of one task and removes what a failure has left.
- `column_parts`: from records or tables to the columns of a file.
- `arrow_columns`: from records to Arrow columns.
- `columns`: from records to the rows of a table.
- `partition_rows`: from records to files of partitions; `table_partitions` cuts rows into those,
  and `partition_files` are their files.
- `delta_writer`: the writing half of a Delta table; `delta_log` is its log, `delta_files` its
  files.

Start with `memory`. May be imported by dsl, cluster and above; uses the task layer below.
"""
