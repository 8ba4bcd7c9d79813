"""The plan of a program as immutable nodes, and what is to tell about it.

- `nodes`: what a user wrote, as immutable nodes; inputs come before what reads them.
- `operator_ids`: ids of steps, which stay the same while a program changes around them; functions
  of the plan.
- `step_specs`: what there is to tell of each step of the plan that runs.
- `kept`: what a step is, and what it keeps over restarts, as text that is alike in every process.
- `order`: which steps see the order in which records of a key come, and which order that is.
- `linear`: the way from a source to a sink as a plan that another engine can run, or why it cannot.
- `table_mistakes`: mistakes in joins with tables that the schemas of both sides tell, before
  anything runs.
- `describe`: the physical plan of an application as data, for people and programs that look at it.
- `physical`: from the plan as it was written to the one that runs: conversions, and steps in
  several parts.
- `columns`: which steps of a plan run on columns, and what records are made of; functions of the
  plan.
- `names`: what steps are called, and what is wrong with what they are given.
- `keys`: what a stream is grouped by: a function of the record, or the names of its fields.
"""
