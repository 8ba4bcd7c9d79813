"""Stores of keyed state, in memory or on disk, and the changes of an epoch."""
