"""Several masters with one log, of which one leads. See ADR 0058."""
