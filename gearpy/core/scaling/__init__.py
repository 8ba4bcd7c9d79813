"""Decides how many tasks each step should have, by how busy they are."""
