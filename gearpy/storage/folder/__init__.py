"""One folder with durable files, wherever it is: everything that stores files stands on it.

- `api`: the steps, small enough to think about a crash between any two of them. Start here.
- `local`: on a disk; `url`: on any system that fsspec knows; `memory`: in memory, where it can
  lose power.
- `promises`: the table of what stores promise; `retries`: when a step is tried again.
- `webhdfs`: HDFS by its web interface. `kafka`: compacted topics, for checkpoints and logs, whose
  records `topics` sends and reads.
- `files`: single files of a disk, with errors that name the file and a remedy.
- `pending`: prepared files, which readers see later, once.
- `at`: the folder that a path or URL names.
"""
