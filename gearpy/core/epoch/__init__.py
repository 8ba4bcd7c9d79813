"""Epochs of one attempt: where they end, when they are complete, which are kept.

- `epochs`: the epochs of one attempt: when one is complete, given up or committed, and its files.
- `cut`: at which event time the sources of a region end an epoch, if they are to agree on one.
- `history`: the complete epochs of one region, and which files nobody needs any more.
- `pace`: how often a region ends an epoch: often enough for restarts, seldom enough for the work.
"""
