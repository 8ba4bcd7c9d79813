"""The stream language: from the steps of a program to the graph that runs.

- `streams`: streams, and the steps that users write for them.
- `operators`: the operators of the language, one class for each.
- `plan`: functions of the plan of a program.
- `lower`: from the plan to the graph that runs.

Start with `application.StreamApp`. May be imported by entry points only; uses the task layer below.
"""
