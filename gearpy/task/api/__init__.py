"""The classes that users write and get: tasks, sources, sinks, the graph."""
