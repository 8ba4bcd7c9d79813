"""SQL over streams: a text becomes a tree, and the tree calls of the stream language.

- `parse`: the text: its tokens, its tree, errors that show a place in it.
- `names`: what types, functions and aggregates of SQL are here.
- `plan`: the tree becomes steps: names, groups, joins, order.

`streams` has a query as a stream, `job` whole files of statements.
"""
