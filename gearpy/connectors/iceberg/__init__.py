"""Iceberg tables as a sink, by PyIceberg, which is imported in this room only, when it is needed.

Start with `table`.
"""
