"""Kafka topics as a source and as a sink.

Shared:

- `cluster`: a cluster to connect to: addresses, security, settings of the client.
- `client`: makes clients, and tells errors that pass from those that end an application.
- `values`: forms of values: bytes, text, JSON, MessagePack.
- `avro`, `protobuf`: two more, by schemas; `avro_fit`: a quick test of whether a value fits;
  `protobuf_values`: its messages as values of Python.
- `registry`: asks a schema registry.
- `errands`: a thread for what waits for brokers.

Rooms:

- `reading`: the source.
- `writing`: the sink.

Start with `cluster`. The client library is imported in this room only, and when it is needed.
"""
