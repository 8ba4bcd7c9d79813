"""One folder with durable files, wherever it is: everything that stores files stands on it.

- `api`: the steps, small enough to think about a crash between any two of them. Start here.
- `local`: on a disk; `url`: whatever fsspec knows; `memory`: in memory, where it can lose power.
- `files`: single files of a disk, and errors that name them and say what to do.
- `at`: the folder that a path or URL names.
"""

__all__: list[str] = []
