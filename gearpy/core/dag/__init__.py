"""The graph of an application, and all that is derived from it.

- `graph`: the graph of one application as the cluster sees it: processors, edges, tasks; its
  regions, each of which restarts as a whole, and which executor hosts which task.
- `difference`: differences between the graphs that two processes built from one program.
- `state_moves`: moves of each step's state when a graph takes the place of another one.
- `taken_state`: the stored state that tasks of another graph go on from, and what of it needs no
  copy.
"""
