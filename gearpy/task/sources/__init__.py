"""The task that reads a source: its partitions, late records, the end of an epoch."""
