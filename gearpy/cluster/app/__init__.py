"""The app master: one application from its slots to its end.

- `actor`: AppMasterActor: one application from its slots to its end.
- `contacts`: the way of an app master to its master, and to the executors of its application.
- `events`: from the messages that an app master gets to the events of its core.
- `quarantine`: the records of one application that went into quarantine, until the master has
  stored them.
- `config`: what an application sets of the configuration, and who decides about which key.
- `checkpoints`: what an app master keeps of its application's epochs: the coordinator log, and the
  files.
- `describe`: what an app master tells about its application to whoever asks.
"""
