"""Tables of PostgreSQL as a sink and as a source.

Start with `sink`. The client library is imported in this room only, and when it is needed.
"""
