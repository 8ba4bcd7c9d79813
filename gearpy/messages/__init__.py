"""Messages of actors and tasks: plain data, no behaviour.

Everything in `actor_app`, `app`, `client`, `cluster`, `masters`, `metrics`, `peer` and `summaries`
is a frozen struct of plain values, registered by its class name with `wire.codec`, and can cross
a process boundary. Any layer above may import this.
"""
