"""Delta tables in which readers see each record once."""
