"""The executor: tasks of one application, their transport, their epochs."""
