"""Processes that others start: with a group of their own, an end that is noticed, and nothing left.

- `child_process`: ChildProcess: one child with its process group, its outputs, its end and why.
- `fork_server`: ForkServer: starts a child as a fork of a process that is warm already: `forker`.
- `lifeline`: how a child learns that whoever started it is gone: its standard input ends.
- `oom`: processes that the system has killed for want of memory, and whom it should kill first.
- `spec`: what a child is told on its standard input.
- `trial`: ProgramTrials: loads programs in processes of their own, which may end as they like.
- `trial_child`: the process that does so.
"""
