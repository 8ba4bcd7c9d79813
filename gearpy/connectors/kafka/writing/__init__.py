"""The sink for Kafka topics.

Start with `sink`.
"""
