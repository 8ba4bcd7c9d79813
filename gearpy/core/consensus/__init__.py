"""Consensus of several masters about one log, by Raft: what one has promised, all will have.

A `Replica` is one member's part. It is told what happens (messages, ticks, finished writes) and
returns what should happen; it has no clock, socket, thread or file.

The paper is Ongaro's *Consensus: Bridging Theory and Practice* (2014). Elections are asked for on
trial first (9.6), a leader without a majority steps down (6.2), reads take a round of the majority
(6.4), members are added and removed one at a time (4.1).
"""
