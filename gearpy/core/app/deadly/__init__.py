"""Input that ends the processes that work on it: it is noticed, found, and left out.

- `deaths`: processes that die by themselves: at which place of the input, and what follows.
- `probing`: the search for what ends them.
"""
