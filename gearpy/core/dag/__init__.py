"""The graph of an application, and all that is derived from it."""
