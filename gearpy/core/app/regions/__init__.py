"""The regions of an application, which start, fail and end each on its own.

- `region`: one region at work: its attempts, one after the other, and the epochs they store.
- `region_epochs`: the epochs of one region, attempt after attempt: begun, stored, committed, gone
  back to.
- `at_time`: a change at an event time: where its sources halt, and when it may be.
- `region_set`: the regions of one application: which one a task or an attempt belongs to, and all
  together.
"""
