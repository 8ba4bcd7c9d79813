"""Expressions: what is computed of a record, as data that runs over columns and over rows.

`expr` and `methods` have what users write, which makes trees of `nodes`. `functions` is the one
table of what a tree may call: a rule for types, a kernel over columns, a function for rows.
`binding` makes of a tree what evaluates it over columns of one schema, `rows` a Python function of
one record.
"""
