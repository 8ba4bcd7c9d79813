"""Turns the plan into the graph that runs."""
