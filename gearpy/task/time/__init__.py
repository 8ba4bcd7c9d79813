"""Event time of one task: waiting for it, late records, promises, timers."""
