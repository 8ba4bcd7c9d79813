"""The states that a task can keep, and how their values become bytes."""
