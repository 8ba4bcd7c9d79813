"""Stages that fold records by key: running, or per window; rows and columns.

- `fold`: stages that fold records by key: running, or per window.
- `rows`: aggregates over rows: one generated loop for all aggregates of a step.
- `row_count`: counts of rows in two parts: some where the rows are, merged where their key belongs.
- `columns`: aggregates over windows where records are columns: tables in, results in rows out.
- `partials`: what the rows of one table come to, by group, as columns of Arrow, and on as
  accumulators.
- `windows`: the stage for windows of any kind, with any trigger.
- `pane_store`: panes of windows as keyed state: what has changed since the last epoch, what has
  gone.
- `top_n`: the records that are largest by something: an aggregate for the stages that fold.
"""
