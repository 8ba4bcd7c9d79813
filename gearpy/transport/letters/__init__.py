"""Letters between the actors of different processes.

- `nodes`: letters between the actors of different processes, over TCP: `Nodes`.
- `link`: what this node says to one other: the connection, and whether anybody is there.
- `server`: what other nodes say to this one: letters are handed on, pings answered, zombies
  refused.
"""
