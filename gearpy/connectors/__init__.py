"""Sources and sinks that come with gearpy.

- `files`: lines of text files, to the end or followed as they grow; text and JSON files out.
- `memory`: a collection in, a list out; for tests and first steps.
- `generator`: records made by a function, at a given rate.
- `folder_sinks`, `parquet`: folders of JSON lines or Parquet files, exactly once.
- `epoch_writer`: a writer to subclass, for exactly once into a database.
- `console`: lines and tables on standard output.

Behind them:
- `file_bytes`: blocks of a file, complete or still growing.
- `lines`: cuts lines out of large blocks and knows their place in the file.
- `stamps`: which event time a record gets; blames the record when user code raises.
- `writers`: the writing half of the file sinks.
- `folder_writer`: the writing half of the folder sinks; `folder_files` are its files and names.
- `arrow_columns`: from records to Arrow columns.
- `columns`: from records to the rows of a table.

Start with `memory`. May be imported by dsl, cluster and above; uses the task layer below.
"""
