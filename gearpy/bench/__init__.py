"""Measures gearpy's speed on this machine: `bin/bench`. Not imported by anything else.

- `__main__`, `main`: the command.
- `sol`: messages per second and latency of one hop, in one process or between two.
- `start`: start-up times and memory; `slow_sink`: back-pressure over a minute.
- `process_cluster`: a real cluster in a folder; `recovery`: how long records stop flowing when
  something fails; `chaos`: a word count whose processes are killed, compared with the answer.
- `simulate`: thousands of clusters in virtual time, each with faults of its own.
- `measure`: percentiles, memory.
"""
