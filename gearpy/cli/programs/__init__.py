"""Commands about a program: run it, draw its plan, compare it with Spark.

- `program`: loads the program that ``FILE[:ATTR]`` or ``MODULE[:ATTR]`` names.
- `run`: ``gear run``: one application in this process, until its input ends.
- `plan`: ``gear plan``: how a program will run, and what becomes of its state in another one.
- `verify`: ``gear verify``: runs a program here and as a Spark query, and tells what differs.
"""
