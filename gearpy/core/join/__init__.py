"""Joins of two streams by key, one module for each kind."""
