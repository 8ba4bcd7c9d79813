"""The parser: tokens, expressions, queries and statements; it knows of no stream."""
