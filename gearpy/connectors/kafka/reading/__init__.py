"""Topics of Kafka as a source.

Start with `positions`.
"""
