"""State of applications, looked at from outside: as tables of Arrow.

- `columns`: cells of keyed state as columns.
- `packed`: cells straight from the bytes of sections, many at once.
- `stored`: the states of stored epochs, exactly. Start here.
- `query`: SQL over such tables, by DuckDB.
"""
