"""The operators of the stream language: one class for each, which says all about it."""
