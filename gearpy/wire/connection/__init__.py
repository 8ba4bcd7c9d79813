"""One authenticated connection, without a socket."""
