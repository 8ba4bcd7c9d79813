"""Stages that fold records by key: running, or per window; rows and columns.

- `fold`: stages that fold records by key: running, or per window.
- `rows`: aggregates over rows: one generated loop for all aggregates of a step.
- `row_count`: counts of rows in two parts: some where the rows are, merged where their key belongs.
- `columns`: aggregates over windows where records are columns: tables in, results in rows out.
- `partials`: partial results of the rows of a table, by group, as columns of Arrow, and from there
  as accumulators.
- `windows`: the stage for windows of any kind, with any trigger.
- `pane_stores`: the panes of such windows as keyed state.
- `top_n`: the records that are largest by something: an aggregate for the stages that fold.
"""
