"""Tables of any database as a sink: by SQLAlchemy, and of DuckDB by its own library.

Start with `sink`. Both libraries are imported in this room only, and when they are needed.
"""
