"""Security of the services: callers, their rights, and limits."""
