"""Records as columns: schemas, types, and the edge of rows and columns.

- `row_schema`: what the rows of a stream have in them, and the way from rows to columns and back.
- `column_types`: which column keeps the values of a Python type, exactly.
"""
