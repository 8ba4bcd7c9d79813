"""A chain of stages in one task: records run through it without a queue between.

- `event_gate`: the gate before a step that judges by time, or sees in which order records come.
- `stage`: the base class of the steps of a chain.
- `chain`: the tasks that the stream language lowers to: a chain of stages, fed by a source or by
  inputs.
- `fused`: functions made of generated source, and by them one loop for a chain of row operators:
  map, filter, flat_map.
- `step_state`: what the steps of a chain keep: keyed state below the id of the step, and the
  changes of a dict since the end of the last epoch.
- `held`: a dict that stands still while it is copied, and what its owner changes meanwhile.
"""
