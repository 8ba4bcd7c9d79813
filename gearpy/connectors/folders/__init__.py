"""Folders in which readers see each record once.

- `json`: folders of JSON lines in which readers see each record once.
- `tables`: folders of Parquet, Arrow and CSV files in which readers see each record once.
- `part_names`: names of the files of one sink in a folder.
- `writer`: writes a folder so that readers see each record once: a file for each task and epoch.
- `parts`: the files of one task in a folder: begun, prepared, shown, and what earlier starts have
  left.
- `columns`: the writing half of folders of columns: records or tables to record batches of one
  schema.
- `text_columns`: from records to the aligned rows of a table, as text.
"""
