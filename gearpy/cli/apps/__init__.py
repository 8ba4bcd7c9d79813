"""Commands about applications and workers of a running cluster."""
