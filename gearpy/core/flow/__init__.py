"""One link, and one task between its links: credit, loss, epochs, and who gets which record.

- `link`: flow control and loss detection of one link, both ends.
- `alignment`: epochs of the links into one task, brought into line.
- `partition`: which task of a downstream processor gets which record of a batch.
- `table_partition`: which task gets which rows of a table, without looking at each row.
- `async_window`: the records of a stage whose results come later: in which order, and how far event
  time is.
- `lookup_cache`: what was looked up lately, and who waits for what is being looked up.
"""
