"""A program as a query of Spark."""
