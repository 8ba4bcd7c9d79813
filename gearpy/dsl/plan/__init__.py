"""Functions of the plan of a program.

- `physical`: from the plan as it was written to the one that runs: conversions, and steps in
  several parts.
- `operator_ids`: ids of steps, which stay the same while a program changes around them.
- `linear`: the way from a source to a sink as a plan that another engine can run, or why it cannot.
"""
