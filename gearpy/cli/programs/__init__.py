"""Commands about a program: run it, draw its plan, compare it with Spark.

- `program`: loads the program that ``FILE[:ATTR]`` or ``MODULE[:ATTR]`` names.
- `run`: ``gear run``: one application in this process, until its input ends.
- `main`: ``gear main``: a program of any kind, which finds the cluster by its environment.
- `page`: the page of a run in this process.
- `plan`: ``gear plan``: the plan of a program, and the moves of its state into another program.
- `chaos`: ``gear chaos``: runs a program with crashes, and prints the first step that differs.
- `verify`: ``gear verify``: runs a program here and as a Spark query, and prints the differences.
"""
