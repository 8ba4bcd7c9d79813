"""A chain of stages in one task: records run through it without a queue between.

- `event_gate`: the gate before a step that judges by time, or sees in which order records come.
- `chain`: the tasks that the stream language lowers to: a chain of stages, fed by a source or by
  inputs.
- `fused`: one loop for a chain of row operators: map, filter, flat_map.
- `generated`: functions made of generated source: loops that do the work of a step for each record.
- `step_state`: where in the keyed state of a task the steps of a chain keep theirs: below the id of
  the step.
- `changes`: the changes of a dict since the end of the last epoch.
"""
