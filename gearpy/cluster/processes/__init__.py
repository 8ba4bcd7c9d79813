"""Processes that others start: in a group of their own, with an end that is noticed."""
