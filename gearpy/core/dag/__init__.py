"""The graph of an application, and all that is derived from it.

- `graph`: the graph of one application as the cluster sees it: processors, edges, tasks.
- `difference`: differences between the graphs that two processes built from one program.
- `regions`: the connected parts of a dag, each of which restarts as a whole.
- `placement`: which executor hosts which task.
- `progress`: how far an application is, from the reports of its tasks.
- `state_moves`: moves of each step's state when a graph takes the place of another one.
"""
