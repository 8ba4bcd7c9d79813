"""Configuration: every key with its default and its limits, in one place.

Any layer above may import this; it keeps no state, and only `load` reads files or the
environment. Keys that exist in Gearpump have Gearpump's names, below ``gearpy`` in place of
``gearpump``.
"""
