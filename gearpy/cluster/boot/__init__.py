"""Whole clusters: daemons, or everything in one process."""
