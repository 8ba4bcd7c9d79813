"""Measures gearpy's speed on this machine: `bin/bench`. Not imported by anything else.

- `__main__`, `main`: the command.
- `sol`: messages per second and latency; `pair`: its two tasks in one process or in two.
- `start`: start-up times and memory; `slow_sink`: back-pressure over a minute.
- `measure`: percentiles, memory.
"""
