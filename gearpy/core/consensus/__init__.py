"""Consensus of several masters about one log, by Raft: what one has promised, all will have.

A `Replica` is one member's part. It is told what happens (messages, ticks, finished writes) and
returns what should happen; it has no clock, socket, thread or file.

- `replica`: the roles of a member, elections, and what a follower does.
- `leadership`: the leader's part: replication, commits, reads, changes of members.
- `progress`: what a leader knows of one other member, and what it sends to it next.
- `entry_log`: the entries that a member holds, behind a snapshot of those before.
- `stored`: what a member has on disk, and the writes that change it.
- `messages`: what members say to each other.
- `actions`: what a replica asks of its shell.
- `limits`: times and sizes.
- `fence`: the fence against orders of masters that do not lead any more.

The paper is Ongaro's *Consensus: Bridging Theory and Practice* (2014). Elections are asked for on
trial first (9.6), a leader without a majority steps down (6.2), reads take a round of the majority
(6.4), members are added and removed one at a time (4.1).
"""
