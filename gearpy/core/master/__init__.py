"""The decisions of a master: applications, slots, and the state that its log keeps.

- `app_masters`: which app masters run, which have to be launched again, and when one is given up.
- `commands`: changes of a `MasterState`: the records of the master's log, as objects and as bytes.
- `state`: the durable facts of a master, as a state machine that a log can be replayed into.
- `registry`: the master's applications and the states they go through. Gearpump: `AppManager`.
- `scheduling`: requests for slots, and the workers that have them. Gearpump: `PriorityScheduler`.
- `waiting`: the requests that wait for slots, in lines of those that are alike.
- `requests`: requests for slots: how many, for whom, and the places that they may be at.
- `placing`: the choice of a worker for an executor, and the order of requests, as policies.
- `quotas`: the slots that all applications of a user may have together.
- `slots`: the holders of the slots of each worker, and the applications they are kept for.
- `flapping`: workers that are lost again and again: put aside, and let back when they stay.
- `programs`: programs that no application needs any more: when they go, and what is said of those
  that stay.
- `rights`: the rule whose application a user may change.
- `checkpoint_names`: names in a checkpoint store, below which applications of a cluster keep their
  files.
"""
