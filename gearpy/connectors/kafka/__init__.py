"""Kafka topics as a source and as a sink.

- `reading`: the source.
- `writing`: the sink.

Start with `cluster`. The client library is imported in this room only, and when it is needed.
"""
