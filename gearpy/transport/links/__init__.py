"""Batches between tasks: over TCP, or by reference within a process."""
