"""A task of an application of a cluster, run once more in this process.

- `stored`: what is stored of the task: its state, its recorded input.
- `again`: runs it, and says whether the same came of it.
- `shadow`: runs it in two versions, and compares what they put out.
"""
