"""Links and the tasks between them: credit, loss, alignment of epochs, and partitioning.

- `link`: flow control and loss detection of one link, both ends.
- `pace`: how much may be under way to a task, by how fast it is.
- `read_size`: how many records a source reads at a time, by how long the work for them takes.
- `alignment`: epochs of the links into one task, brought into line.
- `partition`: which task of a downstream processor gets which record of a batch.
- `table_partition`: which task gets which rows of a table, without looking at each row.
- `async_window`: results of a stage that come later: their order, and the progress of event time.
- `lookup_cache`: a cache of lookups, with the waiters for lookups in progress.
"""
