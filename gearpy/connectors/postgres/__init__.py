"""Tables of PostgreSQL as a sink and as a source.

- `sink`: `postgres_sink`, which writes an epoch in one transaction; `writer`: its writer.
- `source`: `postgres`, which reads a table, once or over and over.
- `columns`: the columns of a table as Arrow has them, and rows as PostgreSQL copies them.
- `connection`: connects, and tells errors that pass from those that stay.

Start with `sink`. The client library is imported in this room only, and when it is needed.
"""
