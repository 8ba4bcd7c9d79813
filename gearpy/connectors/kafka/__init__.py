"""Kafka topics as a source and as a sink.

Shared:

- `cluster`: a cluster to connect to: addresses, security, settings of the client.
- `client`: makes clients, and tells errors that pass from those that end an application.
- `values`: forms of values: bytes, text, JSON, MessagePack.
- `avro`, `protobuf`: two more, by schemas.
- `registry`: asks a schema registry.

The sink:

- `sink`: the function that users call, and the sink.
- `outgoing`: records on their way to topics, as columns, and what brokers would refuse.
- `topics`: what is known of topics that are written.
- `writers`: writers of a task: records go out when their epoch is complete, or at once.
- `epochs`: the thread that sends complete epochs, as `gearpy.core.handover.transactions` decides.
- `lane`: the transactions of one task, and their markers.

Start with `cluster`. The client library is imported in this room only, and when it is needed.
"""
