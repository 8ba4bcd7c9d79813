"""The graph of an application, and what follows from it.

- `graph`: the graph of one application as the cluster sees it: processors, edges, tasks.
- `difference`: in what the graphs that two processes built from one program differ.
- `regions`: the connected parts of a dag: what has to restart together when one of its tasks is
  lost.
- `placement`: which executor hosts which task.
- `progress`: how far an application is, from the reports of its tasks.
- `state_moves`: what becomes of the state of each step when a graph takes the place of another one.
"""
