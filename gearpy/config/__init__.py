"""Configuration: every key with its default and its limits, in one place.

- `schema`: dataclasses, one annotated field for each key with its default, unit, bounds and
  reason. Start here to learn which keys there are, or to add one.
- `setting`: one key, and how dataclass fields become keys.
- `load`: files, environment and flags into a `Config`; all mistakes are reported together.
- `hidden`: texts as people and logs may see them: without secrets.
- `render`: a `Config` as a commented file; ``conf/gear.toml`` is the file of the defaults.

Any layer above may import this; it keeps no state, and only `load` reads files or the
environment. Keys that exist in Gearpump have Gearpump's names, below ``gearpy`` in place of
``gearpump``.
"""
