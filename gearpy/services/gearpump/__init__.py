"""The answers of Gearpump's routes, field by field, with its names.

- `shapes`: the models of the answers; a name such as ``app_id`` is ``appId`` in JSON.
- `answers`: makes them of what a cluster tells.
- `replacing`: what can be had of a replaced processor.
- `configuration`: a configuration as nested tables, without what must not be shown.
"""
