"""Several masters with one log, of which one leads. See ADR 0066.

- `open`: opens a master's part in the log of all: its disk, its actor, and the desk for clients.
- `member`: ReplicaActor: a master's part in the log of all: messages, disk, ticks.
- `log`: the log that a leader writes, and where this master stands.
- `disks`: the folders of masters, by name: one that has lost its folder is not listened to.
- `mail`: messages between masters, in parts that fit a letter.
- `desk`: the answers of one of several masters to clients.
- `member_disks`: what all masters have on their disks, as each tells it itself.
- `moved`: the logs of masters that are all away, for masters that begin over them elsewhere.
- `spread`: programs on their way from the leader to a majority.
"""
