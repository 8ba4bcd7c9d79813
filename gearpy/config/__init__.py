"""Configuration: every default and every limit, in one place.

- `schema`: frozen dataclasses, one field for each key with its default, unit, bounds and reason.
  Start here to learn what can be set, or to add a key.
- `daemons`: the keys of masters, workers and what they start, `connections`: of what
  is between them, `spark`: of the hand-off to Spark.
- `setting`: what is known about one key, and how dataclass fields become keys.
- `load`: files, environment and flags into a `Config`; all mistakes are reported together.
- `render`: a `Config` as a commented file; ``conf/gear.toml`` is what it makes of the defaults.

Any layer above may import this; it keeps no state, and nobody but `load` reads files or the
environment. Keys that exist in Gearpump have Gearpump's names, below ``gearpy`` in place of
``gearpump``.
"""
