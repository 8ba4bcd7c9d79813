"""Files of lines and of rows as sources.

- `lines_files`: lines of text files, and files of text or JSON lines.
- `datasets`: files of rows: CSV, lines of JSON, Parquet and Arrow, as tables wherever that can be.
- `bytes`: where lines have their bytes from: a file that is complete, or one that is still written
  to.
- `rotation`: the files that a log was rotated into: what was read is found again.
- `following`: which files are followed, also those that come later.
- `queue`: which file of a partition is read next: each once, by name, also those that come later.
- `partitions`: files of rows as a source: the partitions, and what reads one of them.
- `tables`: one file as a row of tables: what every format does alike, and what becomes of bad rows.
- `line_formats`: CSV and lines of JSON as formats of files.
- `dialects`: what CSV files have that Arrow does not read itself.
- `line_tables`: tables out of files of lines: large blocks are cut at the end of a line and parsed
  by Arrow.
- `lines`: cuts lines out of large blocks of bytes and knows the place of each in the file.
- `found`: types of columns that files tell, and values that these would change.
- `column_formats`: parquet and Arrow files as formats of files: both are read by groups of rows.
- `column_times`: event times out of a column, all at once.
- `stamps`: which event time a record gets, and how far a partition's watermark has come by it.
- `writers`: the writing half of the file sinks: records to lines, lines to a file.
"""
