"""The coordinator log of an application: the memory that its app masters share.

- `log`: the messages of a coordinator log, and the state that they lead to.
- `views`: views: they read and write the messages of each type: epochs, places, configuration,
  graph.
- `savepoints`: epochs that have names, as files; the view of how an application is to end.
- `versions`: view of the versions of the program that an application has had.
- `segments`: the protocol of a coordinator log, in steps: only its latest opening may append.
- `blocks`: checked blocks: the header by which a stored file, also of others, is seen to be whole.
- `codec`: files of a coordinator log as bytes: messages with a checksum each, and marks of an
  opening.
- `repair`: repair of a damaged coordinator log: finds the readable messages and names the lost
  ones.
"""
