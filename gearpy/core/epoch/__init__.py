"""Epochs of one attempt: where they end, when they are complete, which are kept.

- `epochs`: the epochs of one attempt: when one is complete, given up or committed, and its files.
- `history`: the complete epochs of one region, and which files nobody needs any more.
- `compared`: differences between the outputs of two versions of a step.
- `pace`: when a region ends an epoch, often enough for restarts and seldom enough for the work;
  and at which event time, if its sources are to agree on one.
- `kept`: epochs that stay although newer ones are complete.
- `recorded`: which recordings of a task lead from a stored epoch to another.
- `share`: of how many epochs one is recorded, by what that has cost.
"""
