"""Folders in which readers see each record once."""
