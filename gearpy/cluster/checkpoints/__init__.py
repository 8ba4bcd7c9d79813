"""Checkpoints of applications, inspected and changed without a cluster."""
