"""What the stream language must give, computed anew from what it means, and compared with it.

- `streams`: records, promises and pauses as plain data, and a source of them.
- `windows`, `joins`, `aggregates`: the definitions. They look at all records at once, and share no
  code with what runs. `duck`: joins once more, by DuckDB.
- `programs`: a program as plain data, in the stream language, and what a result's value must be.
- `strategies`: streams and programs that Hypothesis draws.
- `driven`: runs step by step, of which each result is known. `simulated`: runs with crashes.
- `examples`: kinds of examples, and how many of one are run.

Start with `windows`. Needs the packages of the ``dev`` extra; imported by tests and `bin/bench`.
"""

__all__: list[str] = []
