"""One authenticated connection on a socket, and connections that are made again."""
