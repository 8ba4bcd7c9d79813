"""Runs one task: its inputs and outputs, time, epochs, state."""
