"""What actors and tasks say to each other: plain data, no behaviour.

- `data`: task to task (records, acks). One object per batch, never one per record.
- `app`: app master and executors.
- `cluster`: client, master and workers.

Everything in `app` and `cluster` is a frozen dataclass of plain values, registered by its
class name with `wire.codec`, and can cross a process boundary. Any layer above may import this.
"""
