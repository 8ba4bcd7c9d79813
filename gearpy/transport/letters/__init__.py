"""Letters between the actors of different processes, and questions of clients.

- `peers`: letters between the actors of different processes, over TCP: `Peers`.
- `peer`: letters to one other node: the connection, and whether anybody is there.
- `server`: what other peers say to this one: letters are handed on, pings answered, zombies
  refused.
- `answers`: questions of other processes, answered on threads of their own; those of clients.
- `client`: a client of a cluster: a blocking socket, without an event loop.
"""
