"""The answers of Gearpump's routes, field by field, with its names."""
