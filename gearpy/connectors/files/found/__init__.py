"""Types of columns that files tell, and values that these types would change.

- `sampling`: the columns of files without a schema: of all, or of parts of large ones. Start here.
- `exact`: numbers that a column would change, found after a parser has read them.
- `json_types`: the columns of JSON that Arrow does not read, or takes otherwise.
"""
