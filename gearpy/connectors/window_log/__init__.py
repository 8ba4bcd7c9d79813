"""Window logs as a sink and as a source."""
