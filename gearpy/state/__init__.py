"""Keyed state of tasks: values kept for each key between records, and across restarts.

- `kinds`: the states that a task can keep, and how their values become bytes.
- `stores`: places of keyed state, in memory or on disk, and its changes.
- `encoding`: keys and values as bytes.

May be imported by task and above.
"""
