"""Makes columns of Arrow from records, by one set of rules that refuse what they would change.

- `values`: the rules: which values a column keeps as they are. Start here.
- `reasons`: what is wrong with a value that Arrow has refused, and what helps.
- `types`: the column that keeps the values of a Python type, exactly.
- `row_schema`: the columns of a stream, and the way from rows to columns and back.
- `widening`: types that keep the values of several others.
- `workable`: the types that columns have within a stream, as Arrow can compute with them.
- `texts`: whether columns of text are text.
- `fields`: the fields of records by name.
- `log_columns`: columns of results of windows and joins, and of other records, with types that
  Spark takes, and keeps few records until they are worth columns.
- `spark_types`: types of columns that Spark takes as they are.

May import core and messages. Who needs no columns must not load Arrow: `values`, `types`,
`row_schema` and `workable` import it where it is used.
"""
