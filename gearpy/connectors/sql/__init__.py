"""Tables of any database as a sink and as a source: by SQLAlchemy, of DuckDB by its own library.

Start with `sink` and `source`. Both libraries are imported in this room only, when they are needed.
"""
