"""Commands about a program: run it, draw its plan, compare it with Spark.

- `project`: the files of a new project.
"""
