"""Stages of single steps: stateless, with state, asynchronous, over columns, and sinks."""
