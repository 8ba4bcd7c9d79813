"""Topics of Kafka as a source.

- `source`: the source and its arguments.
- `positions`: which partitions a task reads, where each begins and ends, lost offsets: a core.
- `discovery`: one task's partitions: finds them, reads them, commits how far it is.
- `feed`: records of all partitions of a task, off one client.
- `raw`: records of one partition as the client gave them.
- `decoding`: batches of records: values, event times, the fate of bad ones.
- `brokers`: asks brokers about topics and offsets.

Start with `positions`.
"""
