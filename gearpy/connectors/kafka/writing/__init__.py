"""The sink for Kafka topics.

- `sink`: the function that users call, and the sink.
- `outgoing`: records on their way to topics, as columns, and what brokers would refuse.
- `values`: the bytes of their values.
- `topics`: what is known of topics that are written.
- `writers`: writers of a task: records go out when their epoch is complete, or at once.
- `epochs`: the thread that sends complete epochs, as `gearpy.core.handover.transactions` decides.
- `lane`: the transactions of one task, and their markers.

Start with `sink`.
"""
