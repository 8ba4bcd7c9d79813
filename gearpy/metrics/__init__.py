"""Measurements: how they are counted, kept and added up, as plain values and classes.

Counting itself is where work is done, once for each batch or turn: see `task.runtime.metering`.
"""
