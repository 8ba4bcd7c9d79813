"""The decisions of an app master: start, restart, epochs, clock, end.

- `regions`: one region at work, its epochs, and all regions of an application.
- `deadly`: input that ends the processes that work on it.
"""
