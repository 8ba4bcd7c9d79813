"""Stages that fold records by key: running, or per window; rows and columns."""
