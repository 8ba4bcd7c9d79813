"""Turns the plan into the graph that runs.

- `lower`: from the plan to the graph that runs: chains of steps become one processor each.
- `rewired`: a program with other sources and sinks: the records of its streams are gathered in
  lists.
"""
