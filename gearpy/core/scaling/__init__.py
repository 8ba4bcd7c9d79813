"""Decides how many tasks each step should have, by how busy they are.

- `bounds`: what autoscale may choose for a step, as a text and in a graph.
- `autoscale`: the decisions: how many tasks, and why.
- `demand`: the work that one step has had lately, and how many tasks that is worth.
"""
