"""The stream language: from what users write to the graph that runs.

What users write:
- `application`: an application, which reads sources into streams.
- `stream`: a stream of records, and its steps; `asynchronous`: those with coroutines; `branches`:
  a stream taken apart.
- `keyed`: a stream grouped by key, `keys`: by what; `joined`: its joins with another one.
  `table_join`: joins with a table, for both; `table_mistakes`: what schemas tell about these.
- `windowed`: a stream in windows.

What comes of it:
- `plan`: the steps as they were written. `program`: gathers them. `grouped`: adds those of streams
  by key or in windows. `names`: what steps are called, and mistakes in what they are given.
- `physical`: the plan that runs. `columns`: which of its steps run on columns.
- `order`: which steps see the order of records, and which order that is.
- `lower`: the graph of that plan; `stages`: what its processors consist of.
- `operator_ids`: ids that steps keep while a program changes; `kept`: what a step keeps over
  restarts, as text. `step_specs`: what there is to tell of each step. `describe`: the plan that
  runs, as data.
- `linear`: the plan from a source to a sink, for a query of Spark; `rewired`: the program with
  other sources, and sinks that gather. Both need Spark to be installed.

Start with `application.StreamApp`. May be imported by entry points only; uses the task layer below.
"""
