"""The decisions of a master: applications, slots, and the state that its log keeps.

- `app_masters`: which app masters run, which have to be launched again, and when one is given up.
- `commands`: what changes a `MasterState`: the records of the master's log, as objects and as
  bytes.
- `state`: what a master must not forget, as a state machine that a log can be replayed into.
- `registry`: the master's applications and the states they go through. Gearpump: `AppManager`.
- `scheduling`: requests for slots, and the workers that have them. Gearpump: `PriorityScheduler`.
- `slots`: who has the slots of each worker, and for whom they are kept.
- `checkpoint_names`: below which names of a checkpoint store the applications of a cluster keep
  what they store.
"""
