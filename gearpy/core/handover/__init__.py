"""Finished results on their way out: window logs, batches, commits of tables."""
