"""The app master: one application from its slots to its end.

- `changes`: changes that clients, or autoscale, ask for.
- `actor`: AppMasterActor: one application from its slots to its end.
- `actor_app`: ActorAppMaster: the app master of an application of actors, around the user's.
- `contacts`: the way of an app master to its master, and to the executors of its application.
- `events`: from the messages that an app master gets to the events of its core.
- `quarantine`: the records of one application that went into quarantine, until the master has
  stored them.
- `config`: the settings of an application, and the keys that it may set.
- `checkpoints`: the stored epochs of an application: its coordinator log, and its files.
- `opening`: the opening of the coordinator log, tried again while its store is away.
- `savepoints`: savepoints of an application that goes on; the epochs before failures, which stay.
- `versions`: the versions of an application's program: planned, put in place, tried, gone back to.
- `metrics`: what executors measure, and the answers about it.
- `standing`: how an application is, as the master and people are told.
- `answers`: the answers of an app master to clients, while it runs and after its end.
- `describe`: the description of an application for people.
"""
