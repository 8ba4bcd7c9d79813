"""Functions of the plan of a program."""
