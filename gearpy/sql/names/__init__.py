"""Tables of names in SQL: types, functions, aggregates, each with what it is in gearpy."""
