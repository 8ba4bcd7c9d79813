"""Stages that join two streams, or a stream with a table."""
